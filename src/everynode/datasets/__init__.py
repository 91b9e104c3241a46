"""Public graphs: catalog, readers, splits, generated graphs, and diagnostics."""

from typing import TYPE_CHECKING

from everynode._lazy import lazy

if TYPE_CHECKING:
    from everynode.datasets.catalog import check_named, load
    from everynode.datasets.diagnostics import check
    from everynode.datasets.entries import CATALOG, Entry, is_present
    from everynode.datasets.findings import Finding, Report
    from everynode.datasets.splits import cross_validation, hold_out, random_split, stratified_split
    from everynode.datasets.synthetic import generate

_HOME = {
    "CATALOG": "entries",
    "Entry": "entries",
    "Finding": "findings",
    "Report": "findings",
    "check": "diagnostics",
    "check_named": "catalog",
    "cross_validation": "splits",
    "generate": "synthetic",
    "hold_out": "splits",
    "is_present": "entries",
    "load": "catalog",
    "random_split": "splits",
    "stratified_split": "splits",
}

__all__ = [
    "CATALOG",
    "Entry",
    "Finding",
    "Report",
    "check",
    "check_named",
    "cross_validation",
    "generate",
    "hold_out",
    "is_present",
    "load",
    "random_split",
    "stratified_split",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
