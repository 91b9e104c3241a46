"""The named graphs, splits, and what a graph hides."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.data.catalogue import check_named, load
    from everynode.data.defects import Finding, Report, check
    from everynode.data.entries import CATALOGUE, Entry, is_present
    from everynode.data.splits import hold_out, random_split, stratified_split
    from everynode.data.synthetic import generate

_HOME = {
    "CATALOGUE": "entries",
    "Entry": "entries",
    "Finding": "defects",
    "Report": "defects",
    "check": "defects",
    "check_named": "catalogue",
    "generate": "synthetic",
    "hold_out": "splits",
    "is_present": "entries",
    "load": "catalogue",
    "random_split": "splits",
    "stratified_split": "splits",
}

__all__ = [
    "CATALOGUE",
    "Entry",
    "Finding",
    "Report",
    "check",
    "check_named",
    "generate",
    "hold_out",
    "is_present",
    "load",
    "random_split",
    "stratified_split",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
