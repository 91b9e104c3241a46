"""The graph: checked once, immutable, with cached operators."""

from everynode.graph.graph import Graph
from everynode.graph.validation import UNLABELED, Split

__all__ = ["UNLABELED", "Graph", "Split"]
