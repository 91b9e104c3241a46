"""``everynode results``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.experiments.analysis import ExperimentResult
    from everynode.experiments.store import Merged, Store

#: Where `compare` and `reproduce` keep runs by default.
STORE = Path("runs/runs.db")
#: The fields that `results show` counts runs by.
KIND = ("preset", "task", "dataset", "split", "backbone", "num_layers", "objective")


def results_show(
    key: str | None = None,
    /,
    *,
    store: Path = STORE,
    curve: bool = False,
    json_output: JsonFlag = False,
) -> int:
    """Show the runs of a store, or everything about one run.

    Parameters
    ----------
    key
        The first characters of a run's key; without it, runs are counted by kind.
    store
        The store of runs.
    curve
        Also show the terms and metrics after every epoch.
    """
    from everynode.experiments.store import Store

    opened = Store(store, must_exist=True)
    runs = opened.runs()
    if key is None:
        _print_kinds(opened, [record for _, record in runs.values()], json_output)
        return 0
    keys = [full for full in runs if full.startswith(key.lower())]
    if len(keys) != 1:
        raise UsageError(
            f"{len(keys) or 'No'} runs in {store} have a key that starts with {key!r}: "
            "`everynode results export` lists all."
        )
    specification, record = runs[keys[0]]
    whole = {"specification": json.loads(specification), "record": record}
    if curve:
        whole["curve"] = opened.curve(keys[0])
    print(json.dumps(whole, indent=None if json_output else 2))
    return 0


def _print_kinds(store: Store, records: list[dict[str, Any]], json_output: bool) -> None:
    counts = Counter(tuple(record[name] for name in KIND) for record in records)
    rows = [
        {**dict(zip(KIND, kind, strict=True)), "runs": count}
        for kind, count in sorted(counts.items())
    ]
    if json_output:
        print(json.dumps(rows))
        return
    for row in rows:
        model = f"{row['backbone']}-{row['num_layers']}"
        where = f"{row['preset']:8} {row['task']:10} {row['dataset']:14} {row['split']:9}"
        print(f"{where} {model:8} {row['objective']:8} {row['runs']:5} runs")
    print(f"{len(records)} runs in {store.path}; `everynode results export` writes all of them.")
    if states := store.states():
        # A run may end meanwhile and remove its state.
        size = sum(state.stat().st_size for state in states if state.exists()) / 1e6
        print(f"Unfinished trainings: {len(states)} ({store.path}.*.state, {size:.0f} MB).")
        print("The same command continues them. Remove the states of abandoned trainings.")


def results_export(
    file: Path,
    /,
    *,
    preset: str | None = None,
    experiment: str | None = None,
    add: Annotated[bool, Parameter(negative="")] = False,
    store: Path = STORE,
    data_dir: Path | None = None,
    quiet: QuietFlag = False,
) -> int:
    """Write the runs of a store as a table (.csv), or as a list with everything but curves (.json).

    Parameters
    ----------
    file
        Ends in .csv, which leaves out maps of nodes, or in .json.
    preset
        Only runs that were done with this preset.
    experiment
        Only runs of this table or figure with that preset (default: paper), of all seeds, folds
        and versions.
    add
        Keep runs of the file that the store does not have, such as times of another machine.
    store
        The store of runs.
    data_dir
        Where the public graphs are; only needed for ogbn-arxiv.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.exports import add_records
    from everynode.experiments.planning import select_records
    from everynode.experiments.store import Store
    from everynode.report.export import runs_csv, runs_json
    from everynode.report.text import count
    from everynode.storage.atomic import write_atomically
    from everynode.storage.locks import changing

    writers = {".csv": runs_csv, ".json": runs_json}
    ending = file.suffix.lower()
    if ending not in writers:
        raise UsageError(f"{file} must end in .csv or .json, which decides the format.")
    opened = Store(store, must_exist=True)
    runs = opened.runs()
    records = select_records(runs, Root.find(data_dir), preset=preset, experiment=experiment)
    if not records:
        presets = _presets(record for _, record in runs.values())
        others = f", which has runs of {', '.join(presets)}" if presets else ""
        raise UsageError(f"There is no such run in {opened.path}{others}: nothing was written.")
    with changing(file) if add else nullcontext():
        if add and file.exists():
            records, left_out = add_records(file, records)
            if left_out:
                say(
                    f"Left out {count(left_out, 'time')} of {opened.path}, since {file} has times "
                    "of other runs too."
                )
        write_atomically(file, writers[ending](records).encode())
    say(f"{len(records)} runs in {file}.", quiet)
    return 0


def results_tables(
    file: Path,
    /,
    *,
    preset: str = "paper",
    seeds: int | None = None,
    folds: int | None = None,
    store: Path = STORE,
    data_dir: Path | None = None,
    quiet: QuietFlag = False,
) -> int:
    """Write every table and figure of `reproduce` as JSON, from stored runs. Nothing is run.

    Parameters
    ----------
    file
        The file to write.
    preset
        The preset of the runs.
    seeds
        Number of seeds (or random splits) per cell, if not ten.
    folds
        Number of folds.
    store
        The store of runs, or a file of `everynode results export`, with its times.
    data_dir
        Where the public graphs are; only needed for ogbn-arxiv.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.analysis import analyze_all
    from everynode.experiments.exports import has_runs, load_records
    from everynode.report.export import tables_json
    from everynode.storage.atomic import write_atomically

    if has_runs(file):
        raise UsageError(f"{file} is an export of runs and is not replaced: name another file.")
    if file.suffix.lower() == ".csv":
        raise UsageError(f"The tables are JSON: name a file that ends in .json, not {file}.")
    records = load_records(store)
    results = analyze_all(preset, records, Root.find(data_dir), seeds=seeds, folds=folds)
    if not has_runs_of(preset, results, records):
        raise nothing_of(preset, store, records.values())
    write_atomically(file, tables_json(results).encode())
    done = sum(result.done > 0 for result in results)
    say(f"{done} of {len(results)} experiments have runs; written to {file}.", quiet)
    return 0


def results_merge(*sources: Path, into: Path = STORE, quiet: QuietFlag = False) -> int:
    """Add the runs of other stores, or of exports, to a store. Its own runs stay.

    A run without training curves is replaced by one with curves. The records of an export (.csv,
    .json) are checked against their keys; their results cannot be checked. They have no training
    curves. Times are left out, since times of two machines must not be averaged.

    Parameters
    ----------
    sources
        Stores of runs, or files of `everynode results export`.
    into
        The store that gets the runs, or its folder; it is created if needed.
    """
    from everynode.experiments.exports import is_export, merge
    from everynode.experiments.store import store_path

    if not sources:
        raise UsageError("Name at least one store or export to merge.")
    if is_export(into):
        raise UsageError(f"--into {into} has the name of an export: name a file that ends in .db.")
    into = store_path(into) if into.is_dir() or not (into.suffix or into.exists()) else into
    for path, (merged, left_out) in zip(sources, merge(sources, into), strict=True):
        say(_merged_text(path, into, merged, left_out), quiet)
    return 0


def _merged_text(path: Path, into: Path, merged: Merged, left_out: int) -> str:
    from everynode.report.text import count

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


def has_runs_of(
    preset: str, results: Iterable[ExperimentResult], records: Mapping[str, dict[str, Any]]
) -> bool:
    """Whether a result is of the preset: statistics of a graph are the same with any preset."""
    from everynode.experiments.run_spec import WITH_MODEL

    cells = [cell for result in results for cell in result.cells]
    return any(cell.keys and cell.cell.task in WITH_MODEL for cell in cells) or any(
        records[key]["preset"] == Path(preset).name for cell in cells for key in cell.keys
    )


def nothing_of(preset: str, store: Path | str, records: Iterable[dict[str, Any]]) -> UsageError:
    """Return the error for a store without runs of any table or figure of a preset."""
    presets = _presets(records)
    if not presets:
        return UsageError(f"There is no run in {store}: nothing was written.")
    if Path(preset).name in presets:
        return UsageError(
            f"The runs in {store} with --preset {preset} belong to no table or figure: their "
            "settings, graphs, splits or seeds differ. `everynode results export` writes them, "
            "`everynode reproduce` does the runs of a table. Nothing was written."
        )
    return UsageError(
        f"No run in {store} belongs to a table or figure with --preset {preset} (it has runs of "
        f"{', '.join(presets)}): nothing was written."
    )


def _presets(records: Iterable[dict[str, Any]]) -> list[str]:
    return sorted({record["preset"] for record in records})
