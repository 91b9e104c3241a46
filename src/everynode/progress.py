"""Progress on stderr: a live bar in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from everynode.console import say

#: Seconds between two plain lines where there is no terminal.
PLAIN_EVERY = 5.0
#: Steps or seconds after the first step until a pace is known. The first step compiles.
PACE_STEPS, PACE_SECONDS = 10, 3.0
#: Columns of a terminal that has room for a long bar and the elapsed time.
WIDE = 110


class Step(NamedTuple):
    """The state of a bar after a step.

    Attributes
    ----------
    title : str
        The text in front of the bar.
    done, total : int
        The number of finished steps, and of all.
    unit : str
        The name of a step, in the plural.
    left : float or None
        The seconds probably left; None: unknown.
    note : str
        The note of the step.
    """

    title: str
    done: int
    total: int
    unit: str
    left: float | None
    note: str


_follower: ContextVar[Callable[[Step], None] | None] = ContextVar("follower", default=None)


@contextmanager
def following(report: Callable[[Step], None]) -> Iterator[None]:
    """Call a function after every step of every bar, whether the bar is shown or not.

    >>> with following(lambda step: print(step.title, step.done, step.total)):
    ...     with Bar("epochs", 2, unit="epochs", show=False) as bar:
    ...         bar.advance()
    epochs 1 2
    """
    token = _follower.set(report)
    try:
        yield
    finally:
        _follower.reset(token)


class Bar:
    """Progress bar over ``total`` steps, each with a short note.

    Use it as a context manager and call :meth:`advance`.

    Parameters
    ----------
    title
        Text in front of the bar.
    total
        Number of steps.
    unit
        Name of a step, in the plural.
    show
        True: always. None: only in a terminal. False: never.
    done
        Steps that were done before.
    seconds
        Expected time of all remaining steps together, if steps differ in length.
    at_once
        Steps that run at the same time.
    early
        Whether the steps are epochs of one training, which early stopping may end sooner.

    Attributes
    ----------
    spent : float
        Expected seconds of the steps done so far.
    expected : float or None
        Expected seconds of all remaining steps.
    first : int or None
        The step at which the measurement of the pace began.
    last : int or None
        The probable last step, where early stopping may end the training.
    started, latest, printed : float
        The time of the first step that counts, of the latest step, and of the latest printed line.
    live, plain : bool
        Whether a bar is drawn in a terminal, and whether lines are printed instead.
    progress, task : rich.progress.Progress, TaskID
        The bar in a terminal.
    """

    def __init__(
        self,
        title: str,
        total: int,
        *,
        unit: str,
        show: bool | None = True,
        done: int = 0,
        seconds: float | None = None,
        at_once: int = 1,
        early: bool = False,
    ):
        console = Console(stderr=True)
        self.title, self.total, self.unit, self.done = title, total, unit, done
        self.first: int | None = None
        self.early = early
        self.last: int | None = None
        self.expected = None if seconds is None else seconds / at_once
        self.at_once, self.spent = at_once, 0.0
        self.live = console.is_terminal and show is not False
        self.plain = bool(show) and not self.live
        self.started = self.latest = self.printed = time.monotonic()
        self.progress = Progress(
            *self._columns(wide=console.width >= WIDE),
            console=console,
            transient=True,
            disable=not self.live,
            expand=True,
        )
        self.task = self.progress.add_task(
            title, total=self.expected or total, note="", count=f"{done}/{total}"
        )

    def _columns(self, *, wide: bool) -> list[ProgressColumn]:
        return [
            TextColumn("{task.description}"),
            BarColumn(24 if wide else 12),
            TextColumn("{task.fields[count]} " + self.unit),
            *[TimeElapsedColumn()] * wide,
            TextColumn("about" if self.early else "left"),
            _Left(self),
            # The note takes the rest of the line, and only the note is cut.
            TextColumn("{task.fields[note]}", table_column=Column(ratio=1, no_wrap=True)),
        ]

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

    def advance(
        self, note: str = "", *, to: int | None = None, seconds: float = 0.0,
        total: int | None = None, last: int | None = None,
    ) -> None:  # fmt: skip
        """Advance by one step, or to step ``to``.

        ``seconds`` is the expected time of the step; 0 if it had been done before. ``total`` is
        the new number of steps, if it has changed. ``last`` is the step at which early stopping
        probably ends the training.
        """
        self.last = last
        if total is not None and total != self.total:
            self.total = total
            self.progress.update(self.task, total=self.expected or total)
        restarted = to is not None and to < self.done  # another training has its own pace
        self.done = self.done + 1 if to is None else to
        self.spent += seconds / self.at_once
        self.latest = time.monotonic()
        if self.expected is None and (self.first is None or restarted):
            self.first, self.started = self.done, self.latest
        if follower := _follower.get():
            follower(Step(self.title, self.done, self.total, self.unit, self.left(), note))
        if self.live:
            completed = self.spent if self.expected else self.done
            self.progress.update(
                self.task, completed=completed, note=note, count=f"{self.done}/{self.total}"
            )
        elif self.plain and self.latest - self.printed >= PLAIN_EVERY:
            self._print(note)

    def _print(self, note: str) -> None:
        parts = [f"{self.title}: {self.done}/{self.total} {self.unit}"]
        left = self.left()
        if left is not None:
            more = f"this training about {duration(left)} more"
            parts.append(more if self.early else f"{duration(left)} left")
        say(", ".join([*parts, *([note] if note else [])]))
        self.printed = self.latest

    def left(self) -> float | None:
        """Return the seconds probably left, or None if nothing is known yet.

        The pace since the first step counts. If the expected times were given, they weigh the
        steps, and count like one more average step: at first nothing else is known.
        """
        taken, waited = self.latest - self.started, time.monotonic() - self.latest
        if self.expected is None:
            steps = 0 if self.first is None else self.done - self.first
            if steps < PACE_STEPS and not (steps > 0 and taken >= PACE_SECONDS):
                return None
            remaining = (self.total if self.last is None else self.last) - self.done
            return max(0.0, taken / steps * remaining - waited)
        step = self.expected / max(self.total, 1)
        pace = (taken + step) / (self.spent + step) if step else 0.0
        return max(0.0, pace * (self.expected - self.spent) - waited)


class StopEstimate:
    """Estimates when early stopping ends a training: after the patience, if nothing improves.

    Parameters
    ----------
    epochs, patience : int
        The most epochs, and those without an improvement that end the training.
    monitor : str
        The validation metric; ties go to the lower loss.

    Examples
    --------
    >>> estimate = StopEstimate(300, 40, "loss")
    >>> estimate("gcn", 0, {"val_loss": 1.0}), estimate("gcn", 9, {"val_loss": 2.0})
    (41, 41)
    >>> estimate("gcn", 280, {"val_loss": 0.5})
    300
    """

    def __init__(self, epochs: int, patience: int, monitor: str):
        self.epochs, self.patience, self.monitor = epochs, patience, monitor
        self._best: dict[str, tuple[float, float, int]] = {}

    def __call__(self, training: str, epoch: int, row: Mapping[str, float]) -> int:
        """Return the probable number of epochs of a training, after one more of its epochs."""
        metric = 0.0 if self.monitor == "loss" else row.get(f"val_{self.monitor}", 0.0)
        key = metric, -row["val_loss"]
        if training not in self._best or key > self._best[training][:2]:
            self._best[training] = (*key, epoch)
        return min(self.epochs, self._best[training][2] + self.patience + 1)


class _Left(ProgressColumn):
    """Column with the time left; rich's own forgets steps longer than half a minute."""

    def __init__(self, bar: Bar):
        super().__init__()
        self.bar = bar

    def render(self, task: Task) -> Text:
        """Return the time in rich's format."""
        left = self.bar.left()
        text = "-:--:--" if left is None else str(timedelta(seconds=round(left)))
        return Text(text, style="progress.remaining")


def describe(row: dict[str, float]) -> str:
    """Return an epoch's validation accuracy and terms as a note; the end may be cut.

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
    """Return a duration in a readable unit.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
