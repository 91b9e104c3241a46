"""All answers: conflicts to settle, who said what, and the table to take away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from everynode.app.parts import table

if TYPE_CHECKING:
    from everynode.app.page import Page

#: The list shows this many of the latest entries.
LATEST = 100
#: The entries in words.
VERBS = {
    "label": "labeled", "skip": "skipped", "settle": "settled", "undo": "took the last one back",
    "class": "added the class", "name": "is the name of",
}  # fmt: skip


class AnswersTab:
    """The answers of all people.

    Parameters
    ----------
    page : Page
        The page.

    Attributes
    ----------
    page : Page
        The page.
    """

    def __init__(self, page: Page):
        self.page = page
        self._box: Any = None

    def draw(self) -> None:
        """Draw the tab."""
        self._box = ui.element("div").classes("screen")

    def refresh(self) -> None:
        """Draw the answers."""
        if self._box is None:
            return
        answers = self.page.work.project.answers
        self._box.clear()
        with self._box:
            with ui.element("div").classes("row"):
                with ui.element("div").classes("grow"):
                    ui.label("Answers").classes("title")
                    agreed, differ = len(answers.labels), len(answers.conflicts)
                    ui.label(
                        f"{agreed:,} nodes have an answer; on {differ:,} people differ. "
                        "Every answer is on the disk."
                    ).classes("quiet")
                ui.link("Labels (CSV)", "/labels.csv").props("download data-do=labels")
            self._conflicts()
            self._log()

    def _name(self, node: str) -> str:
        view = self.page.work.view
        place = view.place.get(node) if view else None
        return node if view is None or place is None else view.name(place)

    def _conflicts(self) -> None:
        answers = self.page.work.project.answers
        for node, given in answers.conflicts.items():
            with ui.element("div").classes("card"):
                ui.label(f"People differ about {self._name(node)}").classes("wrap").style(
                    "font-weight: 650"
                )
                for person, label in given.items():
                    ui.label(f"{answers.names[person]}: {label}").classes("wrap")
                with ui.element("div").classes("row"):
                    for label in dict.fromkeys(given.values()):
                        button = ui.button(f"It is {label}", color=None).props(
                            "flat data-do=settle"
                        )
                        button.classes("plain").on_click(
                            lambda node=node, label=label: self._settle(node, label)
                        )
                    place = self.page.work.view.place.get(node) if self.page.work.view else None
                    if place is not None:
                        ui.button(
                            "Show it", on_click=lambda place=place: self._show(place), color=None
                        ).props("flat").classes("plain")

    def _settle(self, node: str, label: str) -> None:
        if self.page.answer("settle", node, label) is not None:
            self.page.look(force=True)

    def _show(self, node: int) -> None:
        self.page.open("label")
        self.page.label.pick(node, center=True)

    def _log(self) -> None:
        answers = self.page.work.project.answers
        latest = [entry for entry in answers.log if entry.action != "name"][-LATEST:]
        if not latest:
            ui.label("Nobody has answered yet.").classes("quiet")
            return
        with ui.element("div").classes("card"):
            ui.label("The latest").classes("over")
            rows = []
            for entry in reversed(latest):
                who = "You" if entry.person == self.page.person else answers.names[entry.person]
                what = self._name(entry.node) if entry.node else ""
                time = entry.time[:19].replace("T", " ")
                rows.append((time, who, VERBS[entry.action], what, entry.label))
            table(("time (UTC)", "who", "", "node", "class"), rows)
