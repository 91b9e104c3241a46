"""The map of the nodes as an element of the page; ``assets/node_map.js`` draws it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui.element import Element


class NodeMap(Element, component="assets/node_map.js"):
    """A canvas with one dot per node.

    Parameters
    ----------
    on_pick : callable
        Called with the number of the node that was clicked.
    on_drawn : callable
        Called with the number of nodes when a new picture has been drawn.
    """

    def __init__(self, on_pick: Callable[[int], Any], on_drawn: Callable[[int], Any]):
        super().__init__()
        self.on("pick", lambda event: on_pick(int(event.args)))
        self.on("drawn", lambda event: on_drawn(int(event.args)))

    def load(self, source: str, titles: str, names: Sequence[str]) -> None:
        """Show another round: the addresses of its numbers and of the names of the nodes."""
        self.props["titles"], self.props["names"] = titles, list(names)
        self.props["src"] = source
        self.update()

    def filter(self, **choices: Any) -> None:
        """Fade the nodes out that a filter leaves out, and choose the meaning of the colors.

        ``color``: ``predicted``, ``label`` or ``certainty``. ``classes``, ``nodes``, ``low``,
        ``high`` and ``differs`` filter.
        """
        self.run_method("apply", choices)

    def select(self, node: int, neighbors: Sequence[int], *, center: bool) -> None:
        """Mark a node and its neighbors; ``center`` brings it to the middle."""
        self.run_method("select", node, list(neighbors), center)

    def relabel(self, labels: Sequence[tuple[int, int]]) -> None:
        """Change the labels of some nodes."""
        self.run_method("relabel", [list(pair) for pair in labels])
