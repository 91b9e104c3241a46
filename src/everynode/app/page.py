"""The page: one tab for each step, and the training above them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from nicegui import ui

from everynode.app.answers_tab import AnswersTab
from everynode.app.data_tab import DataTab
from everynode.app.journal import Entry
from everynode.app.label_tab import LabelTab
from everynode.app.quality_tab import QualityTab
from everynode.app.workspace import Workspace
from everynode.errors import EverynodeError
from everynode.progress import duration

#: Seconds between two looks at what others changed.
LOOK_EVERY = 0.4
#: The tabs in their order.
TABS = {"data": "Data", "label": "Map", "answers": "Answers", "quality": "Quality"}


class Tab(Protocol):
    """What the page needs of a tab."""

    def draw(self) -> None:
        """Draw the tab from the beginning."""

    def refresh(self) -> None:
        """Show what changed."""


class Page:
    """The page of one browser.

    Parameters
    ----------
    work : Workspace
        What all browsers share.
    person : str
        The person in front of this browser.

    Attributes
    ----------
    work, person
        The arguments.
    tab : str
        The tab in sight.
    tabs : dict of str to Tab
        All tabs.
    label, data : LabelTab, DataTab
        Two of them.
    rounds : int
        The number of rounds that the page knows.
    title, status, body
        The elements that show the graph's name, the training and the tab.
    buttons : dict of str to Button
        The buttons of the tabs.
    seen : tuple
        The state of the workspace that the page shows.
    """

    def __init__(self, work: Workspace, person: str):
        self.work, self.person = work, person
        self.tab = "label" if work.rounds or work.project.answers.log else "data"
        self.seen: Any = None
        self.rounds = len(work.rounds)
        self._bar()
        self.status = ui.element("div")
        self.body = ui.element("div").classes("tab")
        self.label = LabelTab(self)
        self.data = DataTab(self)
        self.tabs: dict[str, Tab] = {
            "data": self.data,
            "label": self.label,
            "answers": AnswersTab(self),
            "quality": QualityTab(self),
        }
        self.open(self.tab)
        ui.timer(LOOK_EVERY, self.look)
        ui.keyboard(self._key, ignore=["input", "select", "textarea"])

    # ------------------------------------------------------------------ frame

    def _bar(self) -> None:
        with ui.element("header").classes("bar"):
            ui.label("everynode").classes("brand")
            self.title = ui.label("").classes("graph-name")
            with ui.element("nav").classes("tabs"):
                self.buttons = {
                    name: ui.button(text, on_click=lambda name=name: self.open(name), color=None)
                    .props("flat no-caps")
                    .props(f"data-do=tab-{name}")
                    for name, text in TABS.items()
                }
            name = self.work.project.answers.names.get(self.person, "")
            ui.input(placeholder="Your name", value=name).props(
                "outlined dense maxlength=40 aria-label='Your name'"
            ).classes("who").on("change", self._rename)

    def _rename(self, event: Any) -> None:
        name = str(event.sender.value or "").strip()
        if name and name != self.work.project.answers.names.get(self.person):
            self.answer("name", label=name)

    def open(self, tab: str) -> None:
        """Show a tab."""
        self.tab = tab
        for name, button in self.buttons.items():
            button.classes(add="here" if name == tab else "", remove="" if name == tab else "here")
        self.body.clear()
        with self.body:
            self.tabs[tab].draw()
        self.look(force=True)

    # ------------------------------------------------------------------ what changes

    def look(self, *, force: bool = False) -> None:
        """Show what changed since the last look."""
        self._show_status()
        work = self.work
        if len(work.rounds) > self.rounds:
            self.rounds = len(work.rounds)
            if self.tab == "data":
                self.open("label")
                return
        state = work.version, work.reading, work.trainer.running
        if force or state != self.seen:
            self.seen = state
            self.title.text = work.project.source.name if work.view else ""
            self.tabs[self.tab].refresh()

    def _show_status(self) -> None:
        trainer = self.work.trainer
        state = (
            trainer.running, trainer.error, trainer.title, trainer.done, trainer.total,
            trainer.note, trainer.stopping, int(time.monotonic() - trainer.started),
        ) if trainer.running else (False, trainer.error)  # fmt: skip
        if state == getattr(self, "_status", None):
            return
        self._status = state
        self.status.clear()
        with self.status:
            if trainer.running:
                self._draw_progress()
            elif trainer.error:
                with ui.element("div").classes("progress"):
                    ui.label(trainer.error).classes("problem grow")

    def _draw_progress(self) -> None:
        trainer = self.work.trainer
        spent = duration(time.monotonic() - trainer.started)
        parts = [trainer.title]
        if trainer.total:
            parts.append(f"{trainer.done} of {trainer.total}")
        if trainer.left is not None:
            parts.append(f"about {duration(trainer.left)} left")
        parts += [trainer.note] if trainer.note else []
        with ui.element("div").classes("progress").props("data-do=progress"):
            share = trainer.done / trainer.total if trainer.total else 0
            bar = ui.linear_progress(share, show_value=False, size="8px")
            bar.props("" if trainer.total else "indeterminate")
            ui.label(f"{', '.join(parts)} ({spent})").classes("words small")
            stop = ui.button(
                "Stopping" if trainer.stopping else "Stop", on_click=trainer.stop, color=None
            )
            stop.props("flat no-caps").classes("plain").props("data-do=stop")
            stop.set_enabled(not trainer.stopping)

    # ------------------------------------------------------------------ actions

    def answer(self, action: Any, node: str = "", label: str = "") -> Entry | None:
        """Save an action; None if the disk refused it."""
        try:
            entry = self.work.answer(Entry(action, self.person, node, label))
        except EverynodeError as error:
            ui.notify(str(error), type="negative", timeout=0, close_button="Close")
            return None
        return entry

    async def run(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run an action that takes time, and show why it failed."""
        try:
            await task()
        except EverynodeError as error:
            ui.notify(str(error), type="negative", timeout=0, close_button="Close")
        self.look(force=True)

    def _key(self, event: Any) -> None:
        if not event.action.keydown or event.action.repeat or self.tab != "label":
            return
        if event.modifiers.ctrl or event.modifiers.alt or event.modifiers.meta:
            return
        self.label.key(str(event.key.name))
