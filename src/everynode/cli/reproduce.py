"""``everynode reproduce``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import EngineOptions, JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import DataError, UsageError, unknown

if TYPE_CHECKING:
    from everynode.experiments.analysis import CellOutcome, Outcome
    from everynode.experiments.experiment import Cell, Experiment
    from everynode.experiments.run_spec import Run
    from everynode.experiments.store import Store

#: Columns of a table in a file or a pipe, where nothing need be cut.
WIDE = 200
#: Beside so many other threads, on average, times are not worth much.
BUSY = 0.5
#: What a process claims in the store while it measures time, so that others wait with theirs.
TIMING = "timing"


def reproduce(
    name: str = "list",
    /,
    *,
    seeds: int | None = None,
    folds: int | None = None,
    preset: str = "paper",
    graphs: str | None = None,
    rows: str | None = None,
    columns: str | None = None,
    panels: str | None = None,
    stand_in: str | None = None,
    engine: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    max_run_minutes: float | None = None,
    dry_run: bool = False,
    out: Path = Path("runs"),
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Do the runs of a table or figure of the paper, or about it, and show it beside the paper's numbers.

    Runs that are in the store are not done again: interrupted, or killed, the same command goes on.

    Parameters
    ----------
    name
        An experiment of `everynode reproduce list`; or all.
    seeds
        How many seeds (or random splits) a cell has.
    folds
        How many of the ten folds, where an experiment goes over folds.
    preset
        The paper's settings (paper), everynode's own (default; or tuned, by graph and objective), GCNII's authors' (authors), or those of a
        file of `everynode tune`.
    graphs
        Do the runs on these graphs only, such as cora,citeseer; the table is shown whole, with what the store has of the others.
    rows
        Do the runs of these rows of the table only, such as GCNII,ENC-GCNII.
    columns
        Do the runs of these columns only, such as (of depth) 16,32.
    panels
        Do the runs of these tables or plots only, where an experiment has several, such as (of mi-vs-tv) GCN.
    stand_in
        For arxiv: do its runs on this generated graph (generated, generated-1000x5000, ...), apart from the paper's numbers.
    max_run_minutes
        Leave out runs that will probably take longer than this, by what is known when the command is given; what is begun goes on.
    dry_run
        Only list the runs.
    out
        The folder of the run store.
    data_dir
        Where the public graphs are; default: $EVERYNODE_DATA, else a cache into which they are downloaded.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.experiment import (
        REAL,
        check_counts,
        experiments_for,
        find,
        fitting_count,
        versions_of,
    )
    from everynode.experiments.run_spec import versions
    from everynode.experiments.runtime_model import seconds_left
    from everynode.experiments.store import Store, records_at, state_path, store_path

    check_counts(seeds, folds)
    if max_run_minutes is not None and not max_run_minutes >= 0:  # nor NaN
        raise UsageError("--max-run-minutes must be at least 0.")
    root = Root.find(data_dir)
    if name == "list":
        if dry_run or not all(
            value is None
            for value in (seeds, folds, graphs, rows, columns, panels, stand_in, max_run_minutes)
        ):
            raise UsageError(
                "`everynode reproduce list` tells of everything: of some runs, an experiment with --dry-run does."
            )
        return _list(preset, root, out, json_output)
    chosen = experiments_for(preset) if name == "all" else [find(name)]
    for experiment in chosen:
        if not experiment.is_for(preset):
            raise UsageError(
                f"{name} is for the preset {' or '.join(experiment.presets or ())} alone: leave out --preset {preset}."
            )
    if stand_in is not None:
        chosen = [experiment.on_stand_in(stand_in) for experiment in chosen]
    asked = _asked(
        name,
        [cell for experiment in chosen for cell in experiment.cells()],
        graphs,
        rows,
        columns,
        panels,
    )
    plans: dict[Experiment, dict[Cell, list[Run]]] = {}
    wanted: dict[str, Run] = {}
    for experiment in chosen:
        plan, absent = experiment.plan(
            preset, fitting_count(experiment, seeds, folds, strict=name != "all"), root
        )
        of_these = {cell: runs for cell, runs in plan.items() if cell in asked}
        on = {cell.dataset for cell in of_these}
        missing = {graph: reason for graph, reason in absent.items() if graph in on}
        for graph, reason in missing.items():
            if on == missing.keys() and name != "all":
                other = (
                    " --stand-in generated does its runs on a generated graph."
                    if graph == REAL
                    else ""
                )
                raise DataError(
                    f"{experiment.id} cannot be run: {reason}. `everynode data list` tells what is here.{other}"
                )
            say(f"{experiment.id}: left out {graph}: {reason}.", quiet)
        without = [
            cell for cell, runs in of_these.items() if not runs and cell.dataset not in missing
        ]
        if without and not any(of_these.values()) and name != "all":
            which = "cell" if len(of_these) == len(plan) else "such cell"
            raise UsageError(
                f"The preset {preset} has settings for no {which} of {experiment.id}: take another, or a file of `everynode tune`."
            )
        if without:
            say(
                f"{experiment.id}: left out {len(without)} cells for which the preset {preset} has no settings.",
                quiet,
            )
        plans[experiment] = plan
        wanted |= {
            run.key: run
            for cell, runs in of_these.items()
            if cell.dataset not in missing
            for run in runs
        }
    if out.is_file():
        raise UsageError(
            f"--out is the folder of the store, and {out} is a file: give {out.parent}."
        )
    path = store_path(out)
    there = records_at(path)
    if (most := versions_of(there.values())) != versions():
        made, here = (
            ", ".join(f"{what} {number}" for what, number in found.items())
            for found in (most, versions())
        )
        say(
            f"Most runs in {path} are of {made}, which `everynode report` shows; here is {here}, with which they are done anew.",
            quiet,
        )
    left = seconds_left(wanted.values(), there)
    if max_run_minutes is not None:
        # What is begun goes on: estimates change with what is known, and the same command must not leave it behind.
        begun = {key for key in left if state_path(path, key).exists()}
        long = {key for key, seconds in left.items() if seconds > 60 * max_run_minutes} - begun
        if long:
            say(f"Left out {len(long)} runs of more than {max_run_minutes:g} minutes.", quiet)
        wanted = {key: run for key, run in wanted.items() if key not in long}
        left = {key: seconds for key, seconds in left.items() if key not in long}
    if dry_run:
        return _dry_run([*wanted.values()], left, json_output)
    code = _do(name, [*wanted.values()], left, path, data_dir, engine, quiet)
    from everynode.experiments.analysis import conclude

    records = Store(path).records()
    outcomes = [conclude(experiment, preset, plan, records) for experiment, plan in plans.items()]
    if json_output:
        from everynode.report.export import to_json

        print(json.dumps([to_json(outcome) for outcome in outcomes]))
    else:
        for outcome in outcomes:
            show(outcome)
    return code


def _asked(
    name: str,
    cells: Sequence[Cell],
    graphs: str | None,
    rows: str | None,
    columns: str | None,
    panels: str | None = None,
) -> set[Cell]:
    """The cells on some graphs, in some rows, columns and panels, each a list such as ``cora,citeseer``; None: on, or in, any."""
    found = set(cells)
    places = (
        ("graph", "dataset", graphs),
        ("row", "row", rows),
        ("column", "column", columns),
        ("panel", "panel", panels),
    )
    for what, attribute, given in places:
        if given is None:
            continue
        known = {getattr(cell, attribute).lower(): getattr(cell, attribute) for cell in cells}
        named = [part.strip() for part in given.split(",") if part.strip()] or [given]
        if not any(known):
            raise UsageError(f"{name} has one table or plot alone: leave out --panels.")
        for part in named:
            if part.lower() not in known:
                unknown(f"{what} of {name}", part, known.values())
        found = {
            cell
            for cell in found
            if getattr(cell, attribute).lower() in {part.lower() for part in named}
        }
    if not found:
        flags = " and ".join(f"--{what}s" for what, _, given in places if given is not None)
        raise UsageError(f"No cell of {name} is in all of these: leave out one of {flags}.")
    return found


def _do(
    name: str,
    wanted: list[Run],
    left: Mapping[str, float],
    path: Path,
    data_dir: Path | None,
    engine: EngineOptions,
    quiet: bool,
) -> int:
    """Do the runs, cheapest first; those that measure time come last and alone. ``left``: how long each that is not done will take."""
    import torch

    from everynode.experiments.run_spec import short
    from everynode.experiments.runner import Graphs, do_runs
    from everynode.experiments.store import Store
    from everynode.machine import cores
    from everynode.progress import Bar, duration
    from everynode.report.text import count

    do_many = engine.start()
    torch.set_num_threads(1)
    store = Store(path)
    wanted.sort(key=lambda run: left.get(run.key, 0.0))
    work, at_once = sum(left.values()), min(engine.workers or cores(), max(1, len(left)))
    when = f" About {duration(work / at_once)} left." if left else ""
    say(
        f"{len(wanted)} runs, {len(wanted) - len(left)} of them in {store.path} already.{when}",
        quiet,
    )
    graphs, busy = Graphs(data_dir), 0
    try:
        with (
            ctrl_c_raises(),
            Bar(
                name, len(wanted), unit="runs", show=not quiet, seconds=work, at_once=at_once
            ) as bar,
        ):

            def on_record(run: Run, record: dict[str, Any], fresh: bool) -> None:
                nonlocal busy
                busy += fresh and record.get("others", 0.0) > BUSY
                what = f"{run.dataset} {run.settings.backbone}-{run.settings.num_layers} {run.objective}"
                score = (
                    f": test {short(record['test_accuracy'])}" if "test_accuracy" in record else ""
                )
                bar.advance(f"{what}{score}", seconds=left.get(run.key, 0.0))

            untimed = [run for run in wanted if run.task != "time"]
            do_runs(
                untimed, graphs, store, workers=engine.workers, engine=do_many, on_record=on_record
            )
            timed = [run for run in wanted if run.task == "time"]
            if any(run.key in left for run in timed):
                _wait_to_measure(store, quiet)
            do_runs(timed, graphs, store, workers=1, on_record=on_record)
    except KeyboardInterrupt:
        say(
            f"\nInterrupted: what has ended is in {store.path}, and the same command goes on from there."
        )
        return INTERRUPTED
    if busy:
        say(
            f"Times may be too long: something else was running during {count(busy, 'run')} (others, in their records).",
            quiet,
        )
    return 0


def _wait_to_measure(store: Store, quiet: bool) -> None:
    """Claim the measuring of times, once no other process has."""
    from everynode.experiments.runner import POLL

    try:
        if store.claim(TIMING):
            return
        say(f"Another process measures times for {store.path}: waiting for it.", quiet)
        while not store.claim(TIMING):
            time.sleep(POLL)
    except BaseException:
        store.close()
        raise


def _list(preset: str, root: Any, out: Path, json_output: bool) -> int:
    """Every experiment for the preset: how many runs, how many of them are done, and how long the rest will take."""
    from everynode.experiments.experiment import experiments_for
    from everynode.experiments.runtime_model import Speed
    from everynode.experiments.store import records_at, store_path
    from everynode.machine import cores
    from everynode.progress import duration

    path = store_path(out)
    records = records_at(path)
    speed = Speed(records.values())
    rows: list[dict[str, Any]] = []
    for experiment in experiments_for(preset):
        plan, missing = experiment.plan(preset, None, root)
        runs = {
            run.key: run
            for cell, made in plan.items()
            if cell.dataset not in missing
            for run in made
        }
        left = sum(speed.seconds(run) for key, run in runs.items() if key not in records)
        row: dict[str, Any] = {
            "id": experiment.id,
            "title": experiment.title,
            "reference": experiment.reference,
            "runs": len(runs),
        }
        rows.append(
            row
            | {
                "done": sum(key in records for key in runs),
                "seconds_left": round(left / cores()),
                "missing": sorted(missing),
            }
        )
    if json_output:
        print(json.dumps(rows))
        return 0
    for row in rows:
        without = f"  (without {', '.join(row['missing'])}: not here)" if row["missing"] else ""
        count = f"{row['runs']:5} runs, {row['done']:5} done, about {duration(row['seconds_left']):>8} left"
        print(f"{row['id']:17} {count}  {row['title']}{without}")
    for name in sorted({name for row in rows for name in row["missing"]}):
        print(f"{name} is not here: `everynode data check {name}` gets its files, or says how.")
    source = (
        f"{len(records)} runs in {path}"
        if records
        else "a model that runs on this machine will refine"
    )
    print(f"Times: for {cores()} core(s), from {source}.")
    return 0


def _dry_run(wanted: list[Run], left: Mapping[str, float], json_output: bool) -> int:
    from everynode.progress import duration

    if json_output:
        print(
            json.dumps(
                [run.describe() | {"key": run.key, "done": run.key not in left} for run in wanted]
            )
        )
        return 0
    for run in wanted:
        s = run.settings
        where = (
            run.split
            if run.per_class is None
            else f"{run.split} {run.per_class} a class #{run.split_seed}"
        )
        what = f"{run.dataset:14} {where:22} fold {run.fold} {s.backbone:5} {s.num_layers:2} layers  {run.objective:6} seed {run.seed}"
        state = f"about {duration(left[run.key])}" if run.key in left else "done"
        print(f"{run.key[:12]}  {what}  {run.task:8} {state}")
    print(
        f"{len(wanted)} runs, {len(wanted) - len(left)} done; about {duration(sum(left.values()))} of one core left."
    )
    for said in {run.describe()["stand_in"] for run in wanted if "stand_in" in run.describe()}:
        print(said)
    return 0


def show(outcome: Outcome) -> None:
    """The tables of an experiment on the terminal, the paper's numbers beside ours."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    experiment = outcome.experiment
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    for panel, cells in outcome.panels().items():
        title = f"{experiment.title}{f', {panel}' if panel else ''} ({experiment.reference}, preset {outcome.preset}, over {experiment.over})"
        table = Table(title=escape(title), title_justify="left")
        columns = list(dict.fromkeys(cell.cell.column for cell in cells))
        table.add_column("")
        for column in columns:
            table.add_column(column, justify="right")
        by_place = {(cell.cell.row, cell.cell.column): cell for cell in cells}
        for row in dict.fromkeys(cell.cell.row for cell in cells):
            table.add_row(
                row, *(_cell_text(experiment, by_place.get((row, column))) for column in columns)
            )
        console.print(table)


def _cell_text(experiment: Experiment, cell: CellOutcome | None) -> str:
    from everynode.report.cell import digits_of, printed
    from everynode.report.text import number

    if cell is None or (cell.summary is None and not cell.keys):
        return "-"
    if cell.summary is None:
        return "diverged" if cell.diverged else "there"
    digits = digits_of(experiment, cell)
    text = number(cell.summary.mean, digits)
    if cell.summary.count > 1:
        text += f" ± {number(cell.summary.std, digits)}"
    if cell.cell.published is not None:
        text += f"\npaper {printed(experiment, cell)}" + (
            f": {cell.verdict.replace('-', '−')}" if cell.verdict else ""
        )
    if cell.gain is not None and cell.gain.count > 1:
        text += (
            f"\ngain {number(cell.gain.mean, digits, sign=True)}{' *' if cell.significant else ''}"
        )
        text += f" on {cell.gain.count} pairs" if cell.gain.count < len(cell.keys) else ""
    if cell.remark:
        text += f"\n{cell.remark}"
    if not cell.complete:
        text += f"\n{len(cell.keys)} of {cell.planned} runs"
    if cell.diverged:
        text += f"\n{cell.diverged} diverged"
    return text
