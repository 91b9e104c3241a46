"""The named graphs, splits, and what a graph hides."""

from everynode.data.catalogue import CATALOGUE, Entry, check_named, is_present, load
from everynode.data.check import Finding, Report, check
from everynode.data.generate import generate
from everynode.data.splits import hold_out, random_split, stratified_split

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
