"""``everynode results``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError

#: Where `compare` and `reproduce` keep runs by default.
STORE = Path("runs/runs.db")


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
    from everynode.experiments.record_selection import count_kinds, find_key
    from everynode.experiments.store import Store
    from everynode.report.run_text import kind_lines, state_lines

    opened = Store(store, must_exist=True)
    runs = opened.runs()
    if key is None:
        kinds = count_kinds(record for _, record in runs.values())
        lines = [*kind_lines(kinds, opened.path), *state_lines(opened.states(), opened.path)]
        print(json.dumps(kinds) if json_output else "\n".join(lines))
        return 0
    key = find_key(runs, key, store)
    specification, record = runs[key]
    whole = {"specification": json.loads(specification), "record": record}
    if curve:
        whole["curve"] = opened.curve(key)
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
    """Export the runs of a store as a table (.csv), or as complete records without curves (.json).

    Parameters
    ----------
    file
        Ends in .csv, which leaves out maps of nodes, or in .json.
    preset
        Only runs with this preset.
    experiment
        Only runs of this table or figure with that preset (default: paper), of all seeds, folds
        and versions.
    add
        Keep runs of the file that the store does not have, such as times of another machine.
    store
        The store of runs.
    data_dir
        Folder of the public graphs; only needed for ogbn-arxiv.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.record_selection import nothing_selected, select_records
    from everynode.experiments.store import Store
    from everynode.report.export import check_ending, write_runs
    from everynode.report.text import count

    check_ending(file)
    opened = Store(store, must_exist=True)
    runs = opened.runs()
    records = select_records(runs, Root.find(data_dir), preset=preset, experiment=experiment)
    if not records:
        raise nothing_selected(opened.path, (record for _, record in runs.values()))
    written, left_out = write_runs(file, records, add=add)
    if left_out:
        times = count(left_out, "time")
        say(f"Left out {times} of {opened.path}, since {file} has times of other runs too.")
    say(f"{written} runs in {file}.", quiet)
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
    """Write every table and figure of `reproduce` as JSON, from stored runs only.

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
        Folder of the public graphs; only needed for ogbn-arxiv.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.analysis import analyze_all
    from everynode.experiments.exports import has_runs, load_records
    from everynode.experiments.record_selection import has_runs_of, nothing_of
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

    A run with training curves replaces the same run without curves. The records of an export (.csv,
    .json) have no curves. They are checked against their keys, but their results cannot be checked.
    Times are left out, since times of two machines must not be averaged.

    Parameters
    ----------
    sources
        Stores of runs, or files of `everynode results export`.
    into
        The target store or its folder; it is created if needed.
    """
    from everynode.experiments.exports import merge, merge_target
    from everynode.report.run_text import merged_line

    if not sources:
        raise UsageError("Name at least one store or export to merge.")
    into = merge_target(into)
    for path, (merged, left_out) in zip(sources, merge(sources, into), strict=True):
        say(merged_line(path, into, merged, left_out), quiet)
    return 0


results_app = App(name="results", help="The stored runs of compare and reproduce.")
results_app.command(results_show, name="show")
results_app.command(results_export, name="export")
results_app.command(results_merge, name="merge")
results_app.command(results_tables, name="tables")
