"""Plans, runs and merges as lines of text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from everynode.experiments.planning import Schedule
from everynode.experiments.run_spec import Run, short
from everynode.experiments.store import Merged
from everynode.machine import cores
from everynode.progress import duration
from everynode.report.text import count


def overview_lines(rows: Sequence[Mapping[str, Any]], stored: int, path: Path) -> Iterator[str]:
    """Yield a line for each experiment: its runs and the time left.

    Parameters
    ----------
    rows : sequence of dict
        The experiments (:func:`everynode.experiments.planning.overview`).
    stored : int
        Number of runs in the store; the times are estimated from them.
    path : Path
        The store.
    """
    for row in rows:
        missing = f"  (without {', '.join(row['missing'])}: no files)" if row["missing"] else ""
        left = f"about {duration(row['seconds_left']):>8} left"
        yield (
            f"{row['id']:17} {row['runs']:5} runs, {row['done']:5} done, {left}  "
            f"{row['title']}{missing}"
        )
    for name in sorted({name for row in rows for name in row["missing"]}):
        yield (
            f"The files of {name} are missing: `everynode data check {name}` downloads them, "
            "or says how to get them."
        )
    source = f"{stored} runs in {path}" if stored else "a model, until there are runs"
    yield f"Times: for {cores()} core(s), from {source}."


def schedule_lines(work: Schedule) -> Iterator[str]:
    """Yield a line for each run, whether it is done, and the time left."""
    for run in work.runs:
        random = "" if run.per_class is None else f" {run.per_class} a class #{run.split_seed}"
        model = f"{run.settings.backbone:5} {run.settings.num_layers:2} layers"
        state = f"about {duration(work.left[run.key])}" if run.key in work.left else "done"
        yield (
            f"{run.key[:12]}  {run.dataset:14} {run.split + random:22} fold {run.fold} {model}  "
            f"{run.objective:6} seed {run.seed}  {run.task:8} {state}"
        )
    left = duration(sum(work.left.values()))
    yield f"{len(work.runs)} runs, {work.done} done; about {left} of one core left."
    stand_ins = {run.describe().get("stand_in", "") for run in work.runs}
    yield from stand_ins - {""}


def start_line(work: Schedule, path: Path, workers: int | None) -> str:
    """Return the number of runs, the number of stored ones, and the time that the others take."""
    seconds = sum(work.left.values()) / work.at_once(workers)
    rest = f" About {duration(seconds)} left." if work.left else ""
    return f"{len(work.runs)} runs, {work.done} of them in {path} already.{rest}"


def run_of_table(run: Run, record: Mapping[str, Any]) -> str:
    """Describe a run of an experiment, for a progress bar."""
    score = f": test {short(record['test_accuracy'])}" if "test_accuracy" in record else ""
    model = f"{run.settings.backbone}-{run.settings.num_layers}"
    return f"{run.dataset} {model} {run.objective}{score}"


def run_of_comparison(run: Run, record: Mapping[str, Any]) -> str:
    """Describe a run of a comparison, for a progress bar."""
    score = "diverged" if "error" in record else f"test {short(record['test_accuracy'])}"
    return f"{run.objective} fold {run.fold} seed {run.seed}: {score}"


def kind_lines(kinds: Sequence[Mapping[str, Any]], path: Path) -> Iterator[str]:
    """Yield a line for each kind of run in a store, and their number."""
    for kind in kinds:
        model = f"{kind['backbone']}-{kind['num_layers']}"
        where = f"{kind['preset']:8} {kind['task']:10} {kind['dataset']:14} {kind['split']:9}"
        yield f"{where} {model:8} {kind['objective']:8} {kind['runs']:5} runs"
    total = sum(kind["runs"] for kind in kinds)
    yield f"{total} runs in {path}; `everynode results export` writes all of them."


def state_lines(states: Sequence[Path], path: Path) -> Iterator[str]:
    """Yield the number and size of the states of unfinished trainings, if there are any."""
    if states:
        # A run may end meanwhile and remove its state.
        size = sum(state.stat().st_size for state in states if state.exists()) / 1e6
        yield f"Unfinished trainings: {len(states)} ({path}.*.state, {size:.0f} MB)."
        yield "The same command continues them. Remove the states of abandoned trainings."


def merged_line(path: Path, into: Path, merged: Merged, left_out: int) -> str:
    """Describe what a merge did with the runs of one source.

    Parameters
    ----------
    path, into : Path
        The source, and the store that got its runs.
    merged : Merged
        What happened to its rows.
    left_out : int
        Number of records that were not taken.
    """
    text = f"{path}: {count(merged.added, 'new run')}, {count(merged.known, 'known one')}."
    if left_out:
        text += f" Left out: {count(left_out, 'record')} (maps or times)."
    if merged.replaced:
        text += (
            f" Replaced {merged.replaced} without a curve, {merged.changed} of them with another "
            "result."
        )
    if merged.kept:
        differ = f"{count(merged.kept, 'known run')} differ{'s' if merged.kept == 1 else ''}"
        text += f" {differ}, perhaps from another machine: {into} keeps its own."
    return text
