"""The graph: checked once, immutable, with the operators that depend on it alone."""

from everynode.graph.graph import Graph
from everynode.graph.validation import UNLABELLED, Split

__all__ = ["UNLABELLED", "Graph", "Split"]
