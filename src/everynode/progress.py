"""Progress on stderr: a live bar in a terminal, a plain line now and then elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from everynode.console import say

#: Seconds between two plain lines where there is no terminal.
PLAIN_EVERY = 5.0
#: After the first step, which compiles and warms up, a pace is told by so many steps or seconds.
PACE_STEPS, PACE_SECONDS = 10, 3.0


class Bar:
    """One bar over ``total`` steps, each with a short note.

    ``unit`` names a step. ``show`` None means: only in a terminal. ``done``: steps that were done before. ``seconds``: how long all
    others would probably take one after the other, if some take longer than others; ``at_once`` of them are done at a time. ``early``: the
    steps are those of one training, which patience may end before. Use it as a context manager and call ``advance``.
    """

    def __init__(
        self, title: str, total: int, *, unit: str, show: bool | None = True, done: int = 0, seconds: float | None = None,
        at_once: int = 1, early: bool = False,
    ):  # fmt: skip
        console = Console(stderr=True)
        #: ``begun``: the step from which on the pace is taken, once there is one.
        self.title, self.total, self.unit, self.done = title, total, unit, done
        self.begun: int | None = None
        self.early = early
        self.expected = None if seconds is None else seconds / at_once
        self.at_once, self.behind = at_once, 0.0
        self.live = console.is_terminal and show is not False
        self.plain = bool(show) and not self.live
        self.started = self.latest = self.said = time.monotonic()
        wide = (
            console.width >= 110
        )  # else the bar is shorter and tells only the time left, so that the note has room
        columns = (
            TextColumn("{task.description}"),
            BarColumn(24 if wide else 12),
            TextColumn("{task.fields[count]} " + unit),
        )
        clocks = (
            *[TimeElapsedColumn()] * wide,
            TextColumn("at most" if early else "left"),
            _Left(self),
        )
        note = TextColumn(
            "{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True)
        )  # has what is left, and alone is cut
        self.progress = Progress(
            *columns,
            *clocks,
            note,
            console=console,
            transient=True,
            disable=not self.live,
            expand=True,
        )
        self.task = self.progress.add_task(
            title, total=self.expected or total, note="", count=f"{done}/{total}"
        )

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def advance(self, note: str = "", *, to: int | None = None, seconds: float = 0.0) -> None:
        """One step further (or to step ``to``), which was to take so many seconds (none if it had been done before)."""
        another = to is not None and to < self.done  # another training begins: the pace is its own
        self.done = self.done + 1 if to is None else to
        self.behind += seconds / self.at_once
        self.latest = time.monotonic()
        if self.expected is None and (self.begun is None or another):
            self.begun, self.started = self.done, self.latest
        if self.live:
            completed = self.behind if self.expected else self.done
            self.progress.update(
                self.task, completed=completed, note=note, count=f"{self.done}/{self.total}"
            )
        elif self.plain and self.latest - self.said >= PLAIN_EVERY:
            left = self.left()
            more = (
                ""
                if left is None
                else f", this training at most {duration(left)} more"
                if self.early
                else f", {duration(left)} left"
            )
            say(
                f"{self.title}: {self.done}/{self.total} {self.unit}{more}{f', {note}' if note else ''}"
            )
            self.said = self.latest

    def left(self) -> float | None:
        """Seconds that are probably left, or None if there is nothing to tell by.

        By the pace since the first step. Where it was said beforehand how long the steps take, they are weighed by that, and it counts
        as if one average step more had taken just so long: at first it is all there is to tell by.
        """
        taken, waited = self.latest - self.started, time.monotonic() - self.latest
        if self.expected is None:
            steps = 0 if self.begun is None else self.done - self.begun
            told = steps >= PACE_STEPS or (steps > 0 and taken >= PACE_SECONDS)
            return max(0.0, taken / steps * (self.total - self.done) - waited) if told else None
        step = self.expected / max(self.total, 1)
        pace = (taken + step) / (self.behind + step) if step else 0.0
        return max(0.0, pace * (self.expected - self.behind) - waited)


class _Left(ProgressColumn):
    """The time left by a bar's own reckoning: rich's forgets a step after half a minute, so that of longer ones it says nothing."""

    def __init__(self, bar: Bar):
        super().__init__()
        self.bar = bar

    def render(self, task: Task) -> Text:
        """As rich shows times."""
        left = self.bar.left()
        return Text(
            "-:--:--" if left is None else str(timedelta(seconds=round(left))),
            style="progress.remaining",
        )


def describe(row: dict[str, float]) -> str:
    """An epoch's validation accuracy and terms, for the end of a bar; what matters most comes first, for it may be cut.

    >>> describe({"ce": 0.5, "total": 0.5, "val_loss": 1.0, "val_accuracy": 0.8})
    'val 80.0% | ce 0.500'
    """
    terms = " ".join(
        f"{name} {value:.3f}"
        for name, value in row.items()
        if name != "total" and not name.startswith(("val_", "test_"))
    )
    return f"val {100 * row['val_accuracy']:.1f}% | {terms}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
