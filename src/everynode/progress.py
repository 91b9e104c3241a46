"""Progress on stderr: a live bar in a terminal, a plain line now and then elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

#: Seconds between two plain lines where there is no terminal.
PLAIN_EVERY = 5.0


class Bar:
    """One bar over ``total`` steps, each with a short note.

    ``unit`` names a step. ``show`` None means: only in a terminal. ``work``: how much work all steps are, if some are more than others;
    the time left is then reckoned by it. Use it as a context manager and call ``advance``.
    """

    def __init__(self, title: str, total: int, *, unit: str, show: bool | None = True, work: float | None = None):
        console = Console(stderr=True)
        self.title, self.total, self.unit, self.done = title, total, unit, 0
        self.live = console.is_terminal and show is not False
        self.plain = bool(show) and not self.live
        self.said = time.monotonic()
        width = 24 if console.width >= 110 else 5  # so that the note has room
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=width), TextColumn("{task.fields[count]} " + unit))
        clocks = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        note = TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True))  # has what is left, and alone is cut
        self.progress = Progress(*columns, *clocks, note, console=console, transient=True, disable=not self.live, expand=True)
        self.task = self.progress.add_task(title, total=total if work is None else work, note="", count=f"0/{total}")

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.progress.stop()

    def advance(self, note: str = "", *, to: int | None = None, work: float | None = None) -> None:
        """One step further (or to step ``to``), which was so much work."""
        before, self.done = self.done, self.done + 1 if to is None else to
        if self.live:
            count = f"{self.done}/{self.total}"
            self.progress.update(self.task, advance=self.done - before if work is None else work, note=note, count=count)
        elif self.plain and time.monotonic() - self.said >= PLAIN_EVERY:
            print(f"{self.title}: {self.done}/{self.total} {self.unit} {note}", file=sys.stderr, flush=True)
            self.said = time.monotonic()


def describe(row: dict[str, float]) -> str:
    """An epoch's validation accuracy and terms, for the end of a bar; what matters most comes first, for it may be cut.

    >>> describe({"ce": 0.5, "total": 0.5, "val_loss": 1.0, "val_accuracy": 0.8})
    'val 80.0% | ce 0.500'
    """
    terms = " ".join(f"{name} {value:.3f}" for name, value in row.items() if name != "total" and not name.startswith(("val_", "test_")))
    return f"val {100 * row['val_accuracy']:.1f}% | {terms}"
