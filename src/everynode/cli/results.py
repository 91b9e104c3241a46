"""``everynode results``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError, unknown

#: Where `compare` and `reproduce` keep runs unless told otherwise.
STORE = Path("runs/runs.db")


def results_show(
    key: str | None = None,
    /,
    *,
    store: Path = STORE,
    curve: bool = False,
    json_output: JsonFlag = False,
) -> int:
    """Show what is in a store; or everything about one run.

    Parameters
    ----------
    key
        The first characters of a run's key; without it, the runs are counted by kind.
    store
        The store of runs.
    curve
        The terms and metrics after every epoch too.
    """
    from everynode.experiments.store import Store

    opened = Store(store, must_exist=True)
    runs = opened.runs()
    if key is None:
        rows = _kinds(record for _, record in runs.values())
        if json_output:
            print(json.dumps(rows))
            return 0
        for row in rows:
            network = f"{row['backbone']}-{row['layers']}"
            where = f"{row['preset']:8} {row['task']:10} {row['dataset']:14} {row['split']:9}"
            print(f"{where} {network:8} {row['objective']:8} {row['runs']:5} runs")
        print(
            f"{len(runs)} runs in {store}; `everynode results export` writes every run with its key."
        )
        if states := opened.states():
            size = (
                sum(state.stat().st_size for state in states if state.exists()) / 1e6
            )  # a run may just have ended
            print(
                f"Trainings that have not ended: {len(states)}, whose states are {opened.path}.*.state ({size:.0f} MB). The same command"
            )
            print("goes on from them; those that nobody will go on with may be removed.")
        return 0
    found = [full for full in runs if full.startswith(key.lower())]
    if len(found) != 1:
        raise UsageError(
            f"{len(found) or 'No'} runs in {store} have a key that starts with {key!r}: `everynode results export` lists all."
        )
    specification, record = runs[found[0]]
    whole = {"specification": json.loads(specification), "record": record}
    if curve:
        whole["curve"] = opened.curve(found[0])
    print(json.dumps(whole, indent=None if json_output else 2))
    return 0


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
    """Write the runs of a store as a table (.csv) or as a list with everything but the curves (.json).

    Parameters
    ----------
    file
        Ends in .csv, which has no room for maps of nodes, or .json.
    preset
        Only the runs that had this preset.
    experiment
        Only the runs of this table or figure with that preset (default: paper), whatever their seeds, folds and versions.
    add
        Keep what the file has and the store has not, such as the times of another machine, which merging leaves out.
    store
        The store of runs.
    data_dir
        Only for ogbn-arxiv, if its archive was unpacked there by hand.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.experiment import experiments
    from everynode.experiments.exports import added
    from everynode.experiments.store import Store
    from everynode.report.export import runs_csv, runs_json
    from everynode.report.text import count
    from everynode.storage.atomic import write_atomically
    from everynode.storage.locks import changing

    writers = {".csv": runs_csv, ".json": runs_json}
    ending = file.suffix.lower()
    if ending not in writers:
        raise UsageError(f"{file} must end in .csv or .json: that decides the format.")
    opened = Store(store, must_exist=True)
    runs = opened.runs()
    records = {key: record for key, (_, record) in runs.items()}
    presets = _presets(records.values())
    if experiment is not None:
        if experiment not in experiments():
            unknown("experiment", experiment, experiments())
        plan, _ = experiments()[experiment].plan(preset or "paper", 1, Root.find(data_dir))
        kinds = {_kind(run.specification) for made in plan.values() for run in made}
        records = {
            key: record
            for key, (specification, record) in runs.items()
            if _kind(specification) in kinds
        }
    if preset is not None:
        records = {
            key: record for key, record in records.items() if record["preset"] == Path(preset).name
        }
    if not records:
        which = (
            f"There is no such run in {opened.path}, which has runs of {', '.join(presets)}"
            if presets
            else f"There is no run in {opened.path}"
        )
        raise UsageError(f"{which}: nothing was written.")
    with changing(file) if add else nullcontext():
        if add and file.exists():
            records, left_out = added(file, records, Root.find(data_dir))
            if left_out:
                say(
                    f"Left out {count(left_out, 'time')}: {file} has others, of runs that {opened.path} has none of."
                )
        write_atomically(file, writers[ending](records).encode())
    say(f"{len(records)} runs in {file}.", quiet)
    return 0


def results_tables(
    file: Path,
    /,
    *,
    preset: str = "paper",
    named: str | None = None,
    seeds: int | None = None,
    folds: int | None = None,
    store: Path = STORE,
    data_dir: Path | None = None,
    quiet: QuietFlag = False,
) -> int:
    """Write what the runs of a store, or of an export, say about every table and figure of `reproduce`, as JSON. Nothing is run.

    Parameters
    ----------
    file
        Where to.
    preset
        The preset that the runs had.
    named
        What it was called when they were done, if otherwise: a file may be what `tuned` was once.
    seeds
        How many seeds (or random splits) a cell has, if other than ten.
    folds
        How many of the ten folds.
    store
        The store of runs, or a file of `everynode results export`, with its times.
    data_dir
        Only for ogbn-arxiv, if its archive was unpacked there by hand.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.analysis import conclude
    from everynode.experiments.experiment import plan_all, versions_of
    from everynode.experiments.exports import has_runs, is_export, read_runs
    from everynode.experiments.store import Store
    from everynode.report.export import tables_json
    from everynode.storage.atomic import write_atomically

    if has_runs(file):
        raise UsageError(
            f"{file} has runs, which the tables would replace: name another file that ends in .json."
        )
    if file.suffix.lower() == ".csv":
        raise UsageError(f"The tables are JSON: name a file that ends in .json, not {file}.")
    root = Root.find(data_dir)
    if is_export(store):
        records = {key: record for key, (_, record) in read_runs(store, root)[0].items()}
    else:
        records = Store(store, must_exist=True).records()
    plans = plan_all(preset, seeds, folds, root, versions_of(records.values()))
    if named is not None:
        plans = {
            e: {cell: [replace(run, preset=named) for run in runs] for cell, runs in plan.items()}
            for e, plan in plans.items()
        }
    outcomes = [conclude(experiment, preset, plan, records) for experiment, plan in plans.items()]
    if not any(outcome.done for outcome in outcomes):
        raise nothing_of(preset, store, records.values())
    write_atomically(file, tables_json(outcomes).encode())
    say(
        f"{sum(outcome.done > 0 for outcome in outcomes)} of {len(outcomes)} experiments have runs; written to {file}.",
        quiet,
    )
    return 0


def results_merge(
    *sources: Path, into: Path = STORE, data_dir: Path | None = None, quiet: QuietFlag = False
) -> int:
    """Take the runs of other stores, or of exports, over; those that are known stay as they are, unless only the other has their curves.

    Of an export (.csv, .json) it is checked that every record is of the run that its key names, not what that run got. Such runs have no
    training curves, and maps are left out where they are not in the file. Times of run-times are left out of exports and stores, since
    they may be of another machine, and times of two machines have no mean.

    Parameters
    ----------
    sources
        Stores of runs, or files of `everynode results export`.
    into
        The store that gets them, or its folder; made if it is not there (a name without an ending is a folder's).
    data_dir
        Only for runs on ogbn-arxiv, if its archive was unpacked there by hand.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.exports import Export, is_export
    from everynode.experiments.store import Store, store_path
    from everynode.report.text import count

    if not sources:
        raise UsageError("Name at least one store, or export, to merge.")
    if is_export(into):
        raise UsageError(
            f"--into is a store of runs: {into} would be taken for an export. Name a file that ends in .db."
        )
    into = store_path(into) if into.is_dir() or not (into.suffix or into.exists()) else into
    root = Root.find(data_dir)
    # All of them are read before anything is written.
    read = [
        Export.read(path, root)
        if is_export(path)
        else Export.of_store(Store(path, must_exist=True))
        for path in sources
    ]
    target = Store(into)
    for path, source in zip(sources, read, strict=True):
        merged = target.put_all(source.rows)
        rest = (
            f" Left out: {count(source.left_out, 'record')} (maps, times, or without settings)."
            if source.left_out
            else ""
        )
        if merged.replaced:
            rest += f" {merged.replaced} without a curve gave way to those of {path}, {merged.changed} of which say something else."
        if merged.kept:
            rest += f" Of {merged.kept} {path} says something else, as another machine may: what {into} says stays."
        say(
            f"{path}: {count(merged.added, 'new run')}, {count(merged.known, 'known one')}.{rest}",
            quiet,
        )
    return 0


def nothing_of(preset: str, store: Path | str, records: Iterable[dict[str, Any]]) -> UsageError:
    """The refusal to write about a preset of which a store has no run, or none with the settings that it has."""
    there = _presets(records)
    if not there:
        return UsageError(f"There is no run in {store}: nothing was written.")
    if Path(preset).name in there:
        return UsageError(
            f"The runs in {store} with --preset {preset} belong to no table or figure: flags changed their settings, or they are of other "
            "graphs, splits or seeds. `everynode results export` writes them as they are, `everynode reproduce` does those of a table: "
            "nothing was written."
        )
    has = f"it has runs of {', '.join(there)}"
    return UsageError(
        f"No run in {store} belongs to a table or figure with --preset {preset} ({has}): nothing was written."
    )


def _presets(records: Iterable[dict[str, Any]]) -> list[str]:
    """Which presets the runs had."""
    return sorted({record["preset"] for record in records})


def _kind(specification: str) -> str:
    """What the runs of a cell have in common, whatever they were made with: all but seed, fold, split and versions."""
    fields = json.loads(specification)
    own = ("seed", "fold", "split_seed", "versions")
    return json.dumps(
        {name: value for name, value in fields.items() if name not in own}, sort_keys=True
    )


def _kinds(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many runs there are of each kind."""
    names = ("preset", "task", "dataset", "split", "backbone", "num_layers", "objective")
    counts = Counter(tuple(record[name] for name in names) for record in records)
    return [
        {**dict(zip(names, kind, strict=True)), "runs": count}
        for kind, count in sorted(counts.items())
    ]
