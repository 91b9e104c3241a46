"""The map with its filters, and beside it the node, its answers and the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from everynode.app.node_map import NodeMap
from everynode.app.node_panel import NodePanel
from everynode.app.parts import dot

if TYPE_CHECKING:
    from everynode.app.page import Page

#: The meanings of the colors of the map.
COLORS = {
    "predicted": "Color: prediction",
    "label": "Color: label",
    "certainty": "Color: certainty",
}
#: Ranges of certainty to filter by.
CERTAINTY = {
    "all": (0.0, 1.0), "under 50 %": (0.0, 0.5), "50 to 80 %": (0.5, 0.8), "over 80 %": (0.8, 1.0),
}  # fmt: skip
#: Special selections of nodes.
ONLY = {
    "all": "All nodes", "differs": "Label and prediction differ", "conflicts": "People differ",
    "labeled": "Labeled", "unlabeled": "Not labeled", "queue": "In the queue",
}  # fmt: skip


class LabelTab:
    """The workbench: map, filters, node panel and queue.

    Parameters
    ----------
    page : Page
        The page.

    Attributes
    ----------
    page : Page
        The page.
    node : int
        The selected node; -1: none.
    search, certainty, only, color : str
        The filters, and the meaning of the colors.
    classes : set of int
        The classes that are picked in the legend; empty: all.
    map : NodeMap or None
        The map; None before the first round.
    """

    def __init__(self, page: Page):
        self.page = page
        self.node = -1
        self.search, self.certainty, self.only, self.color = "", "all", "all", "predicted"
        self.classes: set[int] = set()
        self.map: NodeMap | None = None
        self._panel = NodePanel(self)
        self._round = -1
        self._labels: list[int] = []
        self._legend: Any = None

    # ------------------------------------------------------------------ drawing

    def draw(self) -> None:
        """Draw the tab."""
        self.map, self._round = None, -1
        with ui.element("div").classes("workbench"):
            self._stage = ui.element("div").classes("stage")
            with ui.element("div").classes("side"):
                self._panel.draw()
        self._draw_stage()

    def refresh(self) -> None:
        """Show new rounds and answers."""
        work = self.page.work
        latest = work.round
        if work.view is None:
            self._panel.refresh()
            return
        if latest is not None and self.map is None:
            self._draw_stage()
        if latest is not None and self.map is not None:
            labels = work.labels()
            if latest.number != self._round:
                self._round = latest.number
                address = f"/map/{latest.number}?v={work.version}"
                self.map.load(address, "/names", work.classes)
                self._draw_legend()
                if self.node >= 0:
                    self._mark(center=False)
            elif labels != self._labels:
                self.map.props["names"] = work.classes
                pairs = enumerate(zip(labels, self._labels, strict=True))
                self.map.relabel([(node, new) for node, (new, old) in pairs if new != old])
                self._draw_legend()
            self._labels = labels
        if self.node < 0:
            self.next()
        self._panel.refresh()

    def _draw_stage(self) -> None:
        self._stage.clear()
        with self._stage:
            if self.page.work.round is None:
                self._draw_empty()
                return
            with ui.element("div").classes("tools"):
                search = ui.input(placeholder="Search id or name", value=self.search)
                search.props("outlined dense clearable debounce=200 data-do=search")
                search.classes("search").on_value_change(self._search)
                self._select(ONLY, "only", "Show")
                names = {name: name if name != "all" else "Any certainty" for name in CERTAINTY}
                self._select(names, "certainty", "Certainty")
                self._select(COLORS, "color", "")
                self._hits = ui.label("").classes("quiet small").props("data-do=hits")
            self.map = NodeMap(self.pick, self._drawn)
            self._legend = ui.element("div").classes("legend")

    def _draw_empty(self) -> None:
        with ui.element("div").classes("screen"):
            ui.label("No map yet").classes("title")
            if self.page.work.view is None:
                ui.label("Choose files first: tab Data.").classes("quiet")
            else:
                ui.label(
                    "The map appears after the first training (tab Data). Until then, label the "
                    "nodes at the side: each stands for many that are similar."
                ).classes("quiet")

    def _select(self, options: dict[str, str], name: str, label: str) -> None:
        menu = ui.select(options, value=getattr(self, name))
        menu.props(f"outlined dense options-dense aria-label='{label or name}' data-do={name}")

        def change(event: Any) -> None:
            setattr(self, name, event.value)
            self.filter()

        menu.on_value_change(change)

    def _draw_legend(self) -> None:
        if self._legend is None or self.page.work.round is None:
            return
        latest, classes = self.page.work.round, self.page.work.classes
        names = latest.facts.classes
        counts = {name: int((latest.predicted == code).sum()) for code, name in enumerate(names)}
        self._legend.clear()
        with self._legend:
            for code, name in enumerate(classes):
                chip = (
                    ui.element("button").classes("chip").on("click", lambda c=code: self._toggle(c))
                )
                chip.classes("on" if code in self.classes else "")
                with chip:
                    dot(code)
                    ui.label(name).classes("text")
                    ui.label(f"{counts.get(name, 0):,}")

    # ------------------------------------------------------------------ filters

    def _search(self, event: Any) -> None:
        self.search = str(event.value or "")
        self.filter()
        view = self.page.work.view
        hits = view.search(self.search) if view else []
        if hits:
            self.pick(hits[0])

    def _toggle(self, code: int) -> None:
        self.classes ^= {code}
        self._draw_legend()
        self.filter()

    def _nodes(self) -> list[int] | None:
        """Return the nodes that the search and the special selection leave; None: all."""
        work, view = self.page.work, self.page.work.view
        assert view is not None
        chosen: set[int] | None = None
        if self.only == "conflicts":
            chosen = {view.place[i] for i in work.project.answers.conflicts if i in view.place}
        elif self.only == "queue":
            chosen = set(work.queue(self.page.person))
        elif self.only in ("labeled", "unlabeled"):
            wanted = self.only == "labeled"
            chosen = {node for node, label in enumerate(work.labels()) if (label >= 0) == wanted}
        if self.search.strip():
            hits = set(view.search(self.search))
            chosen = hits if chosen is None else chosen & hits
        return None if chosen is None else sorted(chosen)

    def filter(self) -> None:
        """Apply the filters to the map."""
        if self.map is None or self.page.work.view is None:
            return
        low, high = CERTAINTY[self.certainty]
        nodes = self._nodes()
        self.map.filter(
            color=self.color, low=low, high=high, differs=self.only == "differs",
            classes=sorted(self.classes) or None, nodes=nodes,
        )  # fmt: skip
        self._hits.text = "" if nodes is None else f"{len(nodes):,} nodes"

    def _drawn(self, count: int) -> None:
        self.filter()

    # ------------------------------------------------------------------ nodes

    def pick(self, node: int, *, center: bool = False) -> None:
        """Select a node."""
        self.node = node
        self._mark(center=center)
        self._panel.refresh()

    def _mark(self, *, center: bool) -> None:
        view = self.page.work.view
        if self.map is not None and view is not None and self.node >= 0:
            self.map.select(self.node, view.neighbors(self.node), center=center)

    def next(self) -> None:
        """Select the next node of the queue."""
        queue = self.page.work.queue(self.page.person, at_most=2)
        queue = [node for node in queue if node != self.node] or queue
        if queue:
            self.pick(queue[0], center=self.node >= 0)

    def give(self, label: str) -> None:
        """Answer with a class, and go on to the next node once the disk has it."""
        view = self.page.work.view
        if view is None or self.node < 0:
            return
        name = view.ids[self.node]
        in_queue = self.node in self.page.work.queue(self.page.person)
        if self.page.answer("label", name, label) is not None:
            self._panel.saved = f"Saved: {view.name(self.node)} is {label}"
            if in_queue:
                self.next()
            self.page.look(force=True)

    def skip(self) -> None:
        """Leave the node out of this person's queue, and go on."""
        view = self.page.work.view
        if view is None or self.node < 0:
            return
        if self.page.answer("skip", view.ids[self.node]) is not None:
            self._panel.saved = f"Skipped: {view.name(self.node)}"
            self.next()
            self.page.look(force=True)

    def undo(self) -> None:
        """Take the person's last action back, and show its node again."""
        view, answers = self.page.work.view, self.page.work.project.answers
        last = answers.last_action(self.page.person)
        if view is None or last is None:
            self._panel.saved = "Nothing to undo"
            self._panel.refresh()
        elif self.page.answer("undo") is not None:
            node = view.place.get(last.node, -1)
            self._panel.saved = f"Undone: {view.name(node) if node >= 0 else last.node}"
            if node >= 0:
                self.pick(node, center=True)
            self.page.look(force=True)

    def key(self, name: str) -> None:
        """Act on a key: a digit answers, s skips, u undoes, n goes on."""
        if name in "123456789" and name:
            classes = self.page.work.classes
            if int(name) <= len(classes):
                self.give(classes[int(name) - 1])
        elif name in ("s", "u", "n"):
            {"s": self.skip, "u": self.undo, "n": self.next}[name]()
