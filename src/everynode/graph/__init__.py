"""The graph: checked once, immutable, with cached operators."""

from everynode.graph.graph import Graph
from everynode.graph.validation import UNLABELLED, Split

__all__ = ["UNLABELLED", "Graph", "Split"]
