"""A progress bar over many runs, for ``compare`` and ``reproduce``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from everynode.cli.interrupt import ctrl_c_raises
from everynode.progress import Bar

if TYPE_CHECKING:
    from everynode.experiments.planning import Schedule
    from everynode.experiments.run_spec import Run

#: With more other threads than this, on average, measured times are unreliable.
BUSY = 0.5


class RunBar:
    """A bar that advances with every record. Inside it, Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    title : str
        The title of the bar.
    schedule : Schedule
        The runs.
    describe : callable
        Returns a few words about a run and its record.
    workers : int, optional
        Number of parallel runs; None: one per core.
    quiet : bool
        Show nothing.

    Attributes
    ----------
    stored : int
        Records that were in the store already.
    busy : int
        New records whose times were measured beside other programs.
    """

    def __init__(
        self,
        title: str,
        schedule: Schedule,
        describe: Callable[[Run, dict[str, Any]], str],
        *,
        workers: int | None,
        quiet: bool,
    ):
        self.stored = self.busy = 0
        self._left, self._describe = schedule.left, describe
        self._bar = Bar(
            title,
            len(schedule.runs),
            unit="runs",
            show=not quiet,
            seconds=sum(schedule.left.values()),
            at_once=schedule.at_once(workers),
        )

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(ctrl_c_raises())
        self._stack.enter_context(self._bar)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def on_record(self, run: Run, record: dict[str, Any], fresh: bool) -> None:
        """Advance the bar by one run."""
        self.stored += not fresh
        self.busy += fresh and record.get("others", 0.0) > BUSY
        self._bar.advance(self._describe(run, record), seconds=self._left.get(run.key, 0.0))
