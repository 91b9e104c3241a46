"""Plan the runs of a command and estimate their times. This module does not import PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from everynode.datasets.files import Root
from everynode.errors import DataError, UsageError, unknown
from everynode.experiments.experiment import (
    REAL,
    Cell,
    Experiment,
    experiments_for,
    find,
    fitting_count,
    versions_of,
)
from everynode.experiments.run_spec import Run
from everynode.experiments.runtime_model import Speed, seconds_left
from everynode.experiments.store import records_at, state_path
from everynode.machine import cores, versions

#: The attribute of a cell that each entry of a filter matches, and its name in a message.
PLACES = {
    "graphs": ("dataset", "graph"),
    "rows": ("row", "row"),
    "columns": ("column", "column"),
    "panels": ("panel", "panel"),
}


@dataclass(frozen=True)
class CellFilter:
    """A filter of cells. Every entry is a list such as ``cora,citeseer``; None means any.

    Parameters
    ----------
    graphs, rows, columns, panels : str, optional
        Names of graphs, rows, columns, and tables or plots, in upper or lower case.
    """

    graphs: str | None = None
    rows: str | None = None
    columns: str | None = None
    panels: str | None = None

    def select(self, name: str, cells: Sequence[Cell]) -> set[Cell]:
        """Return the matching cells; ``name`` is the name of the experiment for an error."""
        selected = set(cells)
        used = {f.name: getattr(self, f.name) for f in fields(self)}
        used = {entry: words for entry, words in used.items() if words is not None}
        for entry, words in used.items():
            attribute, noun = PLACES[entry]
            choices = {getattr(cell, attribute).lower(): getattr(cell, attribute) for cell in cells}
            if not any(choices):
                raise UsageError(f"{name} has only one table or plot: leave out --panels.")
            names = [word.strip() for word in words.split(",") if word.strip()] or [words]
            for word in names:
                if word.lower() not in choices:
                    unknown(f"{noun} of {name}", word, choices.values())
            places = {word.lower() for word in names}
            selected = {cell for cell in selected if getattr(cell, attribute).lower() in places}
        if not selected:
            flags = " and ".join(f"--{entry}" for entry in used)
            raise UsageError(f"No cell of {name} matches all filters: leave out one of {flags}.")
        return selected


@dataclass(frozen=True)
class Plan:
    """The runs of one or several experiments.

    Parameters
    ----------
    cells : dict of Experiment to dict of Cell to list of Run
        Every cell of the experiments with its runs.
    runs : dict of str to Run
        The runs to execute, by key.
    notes : list of str
        Messages about cells that were left out.
    """

    cells: dict[Experiment, dict[Cell, list[Run]]]
    runs: dict[str, Run]
    notes: list[str]


def plan_runs(
    name: str,
    preset: str,
    root: Root,
    *,
    seeds: int | None = None,
    folds: int | None = None,
    only: CellFilter = CellFilter(),  # noqa: B008 - frozen
    stand_in: str | None = None,
) -> Plan:
    """Plan the runs of an experiment, or of ``all``.

    Parameters
    ----------
    name, preset : str
        The experiment's id and the preset.
    root : Root
        Folder of the graphs.
    seeds, folds : int, optional
        Runs per cell; None: as declared.
    only : CellFilter
        The cells to run.
    stand_in : str, optional
        A generated graph that replaces ogbn-arxiv.
    """
    chosen = experiments_for(preset) if name == "all" else [find(name)]
    for experiment in chosen:
        if not experiment.is_for(preset):
            presets = " or ".join(experiment.presets or ())
            raise UsageError(f"{name} has no runs with preset {preset}: give --preset {presets}.")
    if stand_in is not None:
        chosen = [experiment.on_stand_in(stand_in) for experiment in chosen]
    selected = only.select(name, [cell for one in chosen for cell in one.cells()])
    plan = Plan({}, {}, [])
    for experiment in chosen:
        count = fitting_count(experiment, seeds, folds, strict=name != "all")
        cells, missing = experiment.plan(preset, count, root)
        wanted = {cell: runs for cell, runs in cells.items() if cell in selected}
        plan.notes.extend(_left_out(experiment, preset, wanted, missing, strict=name != "all"))
        plan.cells[experiment] = cells
        plan.runs.update(
            (run.key, run)
            for cell, runs in wanted.items()
            if cell.dataset not in missing
            for run in runs
        )
    return plan


def _left_out(
    experiment: Experiment,
    preset: str,
    wanted: Mapping[Cell, Sequence[Run]],
    missing: Mapping[str, str],
    *,
    strict: bool,
) -> list[str]:
    """Return messages about cells without runs; ``strict`` refuses an experiment without any."""
    graphs = {cell.dataset for cell in wanted}
    absent = {graph: reason for graph, reason in missing.items() if graph in graphs}
    if absent and graphs == absent.keys() and strict:
        reason = next(iter(absent.values()))
        remedy = " Or use --stand-in generated for a generated graph." if REAL in absent else ""
        raise DataError(
            f"{experiment.id} cannot be run: {reason}. `everynode data list` shows the graphs "
            f"whose files are here.{remedy}"
        )
    notes = [f"{experiment.id}: left out {graph}: {reason}." for graph, reason in absent.items()]
    unset = sum(not runs and cell.dataset not in absent for cell, runs in wanted.items())
    if unset and not any(wanted.values()) and strict:
        raise UsageError(
            f"The preset {preset} has no settings for these cells of {experiment.id}: "
            "choose another preset, or a file of `everynode tune`."
        )
    if unset:
        notes.append(
            f"{experiment.id}: left out {unset} cells without settings in the preset {preset}."
        )
    return notes


@dataclass(frozen=True)
class Schedule:
    """Runs in the order of their execution, the shortest first.

    Parameters
    ----------
    runs : list of Run
        Finished and unfinished runs.
    left : dict of str to float
        Estimated seconds of each unfinished run, by key.
    notes : list of str
        Messages about runs that were left out.
    """

    runs: list[Run]
    left: dict[str, float]
    notes: list[str]

    @property
    def done(self) -> int:
        """Number of finished runs."""
        return len(self.runs) - len(self.left)

    def at_once(self, workers: int | None) -> int:
        """Return the number of parallel runs."""
        return min(workers or cores(), max(1, len(self.left)))

    def describe(self) -> list[dict[str, Any]]:
        """Return every run for JSON, with its key and whether it is done."""
        return [
            run.describe() | {"key": run.key, "done": run.key not in self.left} for run in self.runs
        ]


def schedule(
    runs: Mapping[str, Run], store: Path, *, max_run_minutes: float | None = None
) -> Schedule:
    """Order runs by estimated time; leave out long runs that have not begun."""
    records = records_at(store)
    notes = []
    if (most := versions_of(records.values())) != versions():
        stored, current = (
            ", ".join(f"{name} {number}" for name, number in some.items())
            for some in (most, versions())
        )
        notes.append(
            f"Most runs in {store} were made with {stored}; `everynode report` shows them. "
            f"They are repeated with {current}."
        )
    left = seconds_left(runs.values(), records)
    if max_run_minutes is not None:
        # Estimates change as runs finish: the same command must not abandon a run that it began.
        begun = {key for key in left if state_path(store, key).exists()}
        long = {key for key, seconds in left.items() if seconds > 60 * max_run_minutes} - begun
        if long:
            notes.append(f"Left out {len(long)} runs of more than {max_run_minutes:g} minutes.")
        runs = {key: run for key, run in runs.items() if key not in long}
        left = {key: seconds for key, seconds in left.items() if key not in long}
    return Schedule(sorted(runs.values(), key=lambda run: left.get(run.key, 0.0)), left, notes)


def overview(
    preset: str, root: Root, records: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each experiment: its runs, the finished runs, and the time left."""
    speed = Speed(records.values())
    rows: list[dict[str, Any]] = []
    for experiment in experiments_for(preset):
        plan, missing = experiment.plan(preset, None, root)
        runs = {
            run.key: run
            for cell, planned in plan.items()
            if cell.dataset not in missing
            for run in planned
        }
        left = sum(speed.seconds(run) for key, run in runs.items() if key not in records)
        rows.append(
            {
                "id": experiment.id,
                "title": experiment.title,
                "reference": experiment.reference,
                "runs": len(runs),
                "done": sum(key in records for key in runs),
                "seconds_left": round(left / cores()),
                "missing": sorted(missing),
            }
        )
    return rows
