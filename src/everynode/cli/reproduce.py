"""``everynode reproduce``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from everynode.cli.engine_options import EngineOptions
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import DeviceFlag, JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.datasets.files import Root
    from everynode.experiments.analysis import ExperimentResult
    from everynode.experiments.planning import Plan, Schedule

#: Columns of a table in a file or a pipe.
WIDE = 200


@Parameter(name="*")
@dataclass(frozen=True)
class RunFlags:
    """The runs of an experiment.

    Parameters
    ----------
    seeds : int, optional
        Number of seeds (or random splits) per cell.
    folds : int, optional
        Number of folds, of ten, for experiments over folds.
    preset : str
        The settings: paper, default, tuned (by graph and objective), authors (GCNII's), systems
        (for the experiments systems and systems-folds), or a file of `everynode tune`.
    graphs : str, optional
        Run only these graphs, such as cora,citeseer. The table also shows the stored runs of the
        others.
    rows : str, optional
        Run only these rows of the table, such as GCNII,ENC-GCNII.
    columns : str, optional
        Run only these columns, such as 16,32 of depth.
    panels : str, optional
        If an experiment has several tables or plots, run only these, such as GCN of mi-vs-tv.
    stand_in : str, optional
        For arxiv: use this generated graph (generated, generated-1000x5000, ...), apart from the
        published numbers.
    max_run_minutes : float, optional
        Leave out runs with a longer estimated time, unless they have begun.
    dry_run : bool
        Only list the runs.
    """

    seeds: int | None = None
    folds: int | None = None
    preset: str = "paper"
    graphs: str | None = None
    rows: str | None = None
    columns: str | None = None
    panels: str | None = None
    stand_in: str | None = None
    max_run_minutes: float | None = None
    dry_run: bool = False

    def check(self) -> None:
        """Refuse numbers that describe no runs."""
        from everynode.experiments.experiment import check_counts

        check_counts(self.seeds, self.folds)
        minutes = self.max_run_minutes
        if minutes is not None and not minutes >= 0:  # NaN is refused too
            raise UsageError(f"--max-run-minutes must be at least 0. Got {minutes}.")

    def plan(self, name: str, root: Root) -> Plan:
        """Return the cells and runs of an experiment."""
        from everynode.experiments.planning import CellFilter, plan_runs

        only = CellFilter(self.graphs, self.rows, self.columns, self.panels)
        return plan_runs(
            name, self.preset, root, seeds=self.seeds, folds=self.folds, only=only,
            stand_in=self.stand_in,
        )  # fmt: skip


def reproduce(
    name: str = "list",
    /,
    *,
    runs: RunFlags = RunFlags(),  # noqa: B008 - frozen
    engine: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    device: DeviceFlag = "cpu",
    out: Path = Path("runs"),
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Reproduce a table or figure of the paper, and show it beside the published numbers.

    Finished runs are not repeated: after an interruption, the same command continues. Times are
    measured on the CPU, also with another --device.

    Parameters
    ----------
    name
        An experiment of `everynode reproduce list`; or all.
    out
        The folder of the run store.
    data_dir
        Folder of the public graphs. Default: $EVERYNODE_DATA, else a cache for downloads.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.planning import schedule
    from everynode.experiments.store import Store, store_path
    from everynode.report.run_text import schedule_lines

    runs.check()
    if out.is_file():
        raise UsageError(f"--out names a folder, and {out} is a file: give --out {out.parent}")
    root, path = Root.find(data_dir), store_path(out)
    if name == "list":
        if runs != RunFlags(preset=runs.preset):
            raise UsageError("`everynode reproduce list` takes no choice of runs: use --dry-run.")
        return _list(runs.preset, root, path, json_output)
    plan = runs.plan(name, root)
    work = schedule(plan.runs, path, max_run_minutes=runs.max_run_minutes)
    for note in (*plan.notes, *work.notes):
        say(note, quiet)
    if runs.dry_run:
        _print(work.describe(), schedule_lines(work), json_output)
        return 0
    from everynode.experiments.analysis import analyze  # needs SciPy

    code = _do(name, work, path, data_dir, engine, device, quiet)
    records = Store(path).records()
    results = [analyze(one, runs.preset, cells, records) for one, cells in plan.cells.items()]
    _print_results(results, json_output)
    return code


def _list(preset: str, root: Root, path: Path, json_output: bool) -> int:
    """Print the experiments of a preset; return the exit code."""
    from everynode.experiments.planning import overview
    from everynode.experiments.store import records_at
    from everynode.report.run_text import overview_lines

    records = records_at(path)
    experiments = overview(preset, root, records)
    _print(experiments, overview_lines(experiments, len(records), path), json_output)
    return 0


def _do(
    name: str,
    work: Schedule,
    path: Path,
    data_dir: Path | None,
    engine: EngineOptions,
    device: str,
    quiet: bool,
) -> int:
    """Execute the runs with a progress bar; return the exit code."""
    import torch

    from everynode.cli.running import RunBar
    from everynode.experiments.runner import Graphs, do_timed_last
    from everynode.experiments.store import Store
    from everynode.machine import usable_device
    from everynode.report.run_text import run_of_table, start_line
    from everynode.report.text import count

    do_many, workers = engine.start(device), engine.workers_on(device)
    graphs = Graphs(data_dir, device=usable_device(device))
    torch.set_num_threads(1)
    store = Store(path)
    say(start_line(work, path, workers), quiet)
    bar = RunBar(name, work, run_of_table, workers=workers, quiet=quiet)
    try:
        with bar:
            do_timed_last(
                work.runs, graphs, store, workers=workers, engine=do_many,
                on_record=bar.on_record,
                on_wait=lambda: say(f"Waiting: another process measures times for {path}.", quiet),
            )  # fmt: skip
    except KeyboardInterrupt:
        say(f"\nInterrupted: finished runs are in {path}. The same command continues.")
        return INTERRUPTED
    if bar.busy:
        runs = count(bar.busy, "run")
        say(f"Times may be too long: other programs ran beside {runs} (others, in the records).")
    return 0


def _print(values: Any, lines: Iterable[str], json_output: bool) -> None:
    print(json.dumps(values) if json_output else "\n".join(lines))


def _print_results(results: list[ExperimentResult], json_output: bool) -> None:
    from rich.console import Console

    from everynode.report.export import to_json
    from everynode.report.terminal import experiment_tables

    if json_output:
        print(json.dumps([to_json(result) for result in results]))
        return
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    for result in results:
        for table in experiment_tables(result):
            console.print(table)
