"""The panel of a node: answers, probabilities, neighbors, columns, and the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from everynode.app.parts import color, dot, facts, percent
from everynode.errors import EverynodeError

if TYPE_CHECKING:
    from everynode.app.graph_view import GraphView
    from everynode.app.label_tab import LabelTab
    from everynode.explanations.explanation import Explanation

#: The panel lists this many classes, neighbors and reasons.
CLASSES, NEIGHBORS, REASONS = 8, 12, 6
#: Keys answer with the first classes.
KEYS = 9


class NodePanel:
    """The side of the map.

    Parameters
    ----------
    tab : LabelTab
        The tab, which knows the selected node.

    Attributes
    ----------
    tab : LabelTab
        The tab.
    saved : str
        What happened last, once the disk has it.
    """

    def __init__(self, tab: LabelTab):
        self.tab = tab
        self.saved = ""
        self._explained: tuple[tuple[int, int], Explanation] | None = None
        self._box: Any = None

    def draw(self) -> None:
        """Draw an empty panel."""
        self._box = ui.element("div").style("display: contents")

    def refresh(self) -> None:
        """Draw the selected node."""
        if self._box is None:
            return
        work, page = self.tab.page.work, self.tab.page
        self._box.clear()
        with self._box:
            if work.view is None:
                ui.label("Reading the files" if work.reading else "No graph yet").classes("quiet")
                return
            queue = work.queue(page.person, at_most=500)
            self._draw_queue(queue)
            self._draw_retrain()
            if self.tab.node < 0:
                ui.label("Click a dot of the map to see its node.").classes("quiet")
                return
            self._draw_head(work.view, queue)
            self._draw_answers(work.view)
            self._draw_chances()
            self._draw_neighbors(work.view)
            cells = work.view.cells(self.tab.node)
            if cells:
                with ui.element("section"):
                    ui.label("Columns").classes("over")
                    facts(cells)

    # ------------------------------------------------------------------ queue

    def _draw_queue(self, queue: list[int]) -> None:
        tab = self.tab
        with ui.element("div").classes("row"):
            ui.label("Label next").style("font-weight: 650").classes("grow")
            left = f"{len(queue):,} in the queue" if queue else "The queue is empty"
            ui.label(left).classes("quiet small").props("data-do=left")
        with ui.element("div").classes("row"):
            for text, key, action in (
                ("Next", "n", tab.next), ("Skip", "s", tab.skip), ("Undo", "u", tab.undo),
            ):  # fmt: skip
                with ui.button(on_click=action, color=None).props(
                    f"flat dense no-caps data-do={text.lower()}"
                ) as b:
                    b.classes("plain").style("padding: 0 .5rem")
                    ui.label(text).style("margin-right: .4rem")
                    ui.label(key).classes("key")
        if self.saved:
            ui.label(self.saved).classes("quiet small wrap").props("data-do=saved role=status")

    def _draw_retrain(self) -> None:
        work, page = self.tab.page.work, self.tab.page
        waiting = work.untrained()
        if not waiting or work.trainer.running:
            return
        with ui.element("div").classes("row"):
            noun = "answer" if waiting == 1 else "answers"
            ui.label(f"{waiting:,} new {noun}").classes("grow")

            async def retrain() -> None:
                await page.run(lambda: work.train(page.data.effort))

            text = "Train" if work.round is None else "Retrain"
            button = (
                ui.button(text, on_click=retrain, color=None)
                .classes("main")
                .props("data-do=retrain")
            )
            button.set_enabled(len(set(work.labels()) - {-1}) > 1)

    # ------------------------------------------------------------------ the node

    def _draw_head(self, view: GraphView, queue: list[int]) -> None:
        node = self.tab.node
        with ui.element("div"):
            if node in queue:
                ui.label(f"Number {queue.index(node) + 1:,} of the queue").classes("over")
                ui.label(self.tab.page.work.reasons[node].capitalize()).classes("quiet small wrap")
            ui.label(view.name(node)).classes("title wrap").props("data-do=name")
            if view.name(node) != view.ids[node]:
                ui.label(view.ids[node]).classes("quiet small wrap")

    def _draw_answers(self, view: GraphView) -> None:
        page, node = self.tab.page, self.tab.node
        answers = page.work.project.answers
        given = answers.of(view.ids[node])
        with ui.element("section"):
            with ui.element("div").classes("answers-row"):
                for place, name in enumerate(page.work.classes):
                    button = ui.element("button").classes("answer")
                    button.classes("mine" if given.get(page.person) == name else "")
                    button.on("click", lambda name=name: self.tab.give(name))
                    button.props(f"data-do=answer-{place + 1}")
                    with button:
                        dot(place)
                        ui.label(name).classes("text")
                        if place < KEYS:
                            ui.label(str(place + 1)).classes("key")
            with ui.input(placeholder="Another class").props(
                "outlined dense data-do=class"
            ) as field:
                field.on("keydown.enter", lambda: self._add_class(field.value))
            if view.labels[node] >= 0:
                ui.label(f"The file says {view.classes[view.labels[node]]}.").classes(
                    "quiet small wrap"
                )
            for person, label in given.items():
                who = "You" if person == page.person else answers.names[person]
                ui.label(f"{who}: {label}").classes("quiet small wrap")
            if len(set(given.values())) > 1:
                ui.label(
                    "The answers differ: this node teaches nothing until they agree (tab Answers)."
                ).classes("problem")

    def _add_class(self, name: str | None) -> None:
        name = (name or "").strip()
        page = self.tab.page
        if name and name not in page.work.classes and page.answer("class", label=name):
            page.look(force=True)

    def _draw_chances(self) -> None:
        latest, node = self.tab.page.work.round, self.tab.node
        if latest is None:
            return
        classes, names = self.tab.page.work.classes, latest.facts.classes
        chances = latest.probabilities[node]
        with ui.element("section"):
            ui.label("What the model says").classes("over")
            for code in (-chances).argsort()[:CLASSES].tolist():
                share = float(chances[code])
                with ui.element("div").classes("chance"):
                    ui.label(names[code]).classes("wrap")
                    with ui.element("span").classes("track"):
                        place = classes.index(names[code])
                        ui.element("span").classes("fill").style(
                            f"--c: {color(place)}; width: {100 * share:.1f}%"
                        )
                    ui.label(percent(share))
            inside = latest.set_of(node)
            if inside is not None and latest.facts.coverage:
                text = " or ".join(names[code] for code in inside) or "none of the classes"
                ui.label(f"With {percent(latest.facts.coverage)} coverage: {text}.").classes(
                    "quiet small wrap"
                )
            if node in latest.judged:
                ui.label(
                    f"Networks that had not seen its label say {names[latest.judged[node]]}."
                ).classes("quiet small wrap")

        with ui.element("section"):
            if self._explained is not None and self._explained[0] == (latest.number, node):
                self._draw_reasons(self._explained[1])
                return
            button = ui.button("Why?", on_click=self._explain, color=None)
            button.classes("plain").props("flat no-caps data-do=why").style("align-self: start")
            button.set_enabled((latest.folder / "model" / "model.json").exists())

    async def _explain(self, event: Any) -> None:
        """Ask for the reason of the prediction, which takes some time."""
        work, node = self.tab.page.work, self.tab.node
        event.sender.props("loading")
        latest = work.round
        try:
            found = await work.explain(node)
        except EverynodeError as error:
            ui.notify(str(error), type="negative")
            return
        if found is not None and latest is not None:
            self._explained = (latest.number, node), found
            self.refresh()

    def _draw_reasons(self, one: Explanation) -> None:
        ui.label("Why").classes("over")
        ui.label(one.sentence).classes("small wrap").props("data-do=reason")
        rows = [
            (reason.part.text, f"{percent(reason.without)} ({100 * reason.change:+.0f} points)")
            for reason in one.reasons[:REASONS]
        ]
        if rows:
            ui.label(f"Probability of {one.label} without:").classes("quiet small")
            facts(rows)

    def _draw_neighbors(self, view: GraphView) -> None:
        work, node = self.tab.page.work, self.tab.node
        near = view.neighbors(node)
        classes, latest = work.classes, work.round
        labels = work.labels()
        with ui.element("section"):
            noun = "neighbor" if len(near) == 1 else "neighbors"
            ui.label(f"{len(near):,} {noun}").classes("over")
            for other in sorted(near, key=lambda other: labels[other] < 0)[:NEIGHBORS]:
                with ui.element("button").classes("near") as line:
                    line.on("click", lambda other=other: self.tab.pick(other, center=True))
                    known = labels[other] >= 0
                    name = classes[labels[other]] if known else ""
                    if not known and latest is not None:
                        name = latest.facts.classes[latest.predicted[other]]
                    dot(classes.index(name) if name else -1)
                    ui.label(view.name(other)).classes("text")
                    tail = name if known else f"{name}?" if name else "no label"
                    ui.label(tail).classes("quiet small")
