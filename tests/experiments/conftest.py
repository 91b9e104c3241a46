"""A graph on which a run takes milliseconds, and runs on it."""

from helpers.runs import graph, make_run

__all__ = ["graph", "make_run"]
