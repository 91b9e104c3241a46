"""The named graphs, splits, and what a graph hides."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.data.catalogue import check_named, load
    from everynode.data.defects import Finding, Report, check
    from everynode.data.entries import CATALOGUE, Entry, is_present
    from everynode.data.reading import read, read_csv
    from everynode.data.recipe import Recipe
    from everynode.data.splits import cross_validation, hold_out, random_split, stratified_split
    from everynode.data.synthetic import generate
    from everynode.data.understood import Understood

_HOME = {
    "CATALOGUE": "entries",
    "Entry": "entries",
    "Finding": "defects",
    "Recipe": "recipe",
    "Report": "defects",
    "Understood": "understood",
    "check": "defects",
    "check_named": "catalogue",
    "cross_validation": "splits",
    "generate": "synthetic",
    "hold_out": "splits",
    "is_present": "entries",
    "load": "catalogue",
    "random_split": "splits",
    "read": "reading",
    "read_csv": "reading",
    "stratified_split": "splits",
}

__all__ = [
    "CATALOGUE",
    "Entry",
    "Finding",
    "Recipe",
    "Report",
    "Understood",
    "check",
    "check_named",
    "cross_validation",
    "generate",
    "hold_out",
    "is_present",
    "load",
    "random_split",
    "read",
    "read_csv",
    "stratified_split",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
