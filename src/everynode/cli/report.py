"""``everynode report``."""

from __future__ import annotations

import json
from pathlib import Path

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.cli.results import STORE, nothing_of
from everynode.errors import UsageError
from everynode.say import say


def report(
    store: Path = STORE,
    /,
    *,
    out: Path = Path("report.html"),
    preset: str = "paper",
    seeds: int | None = None,
    folds: int | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Write the runs of a store as one HTML page: tables, figures, curves, and the runs behind every number. It loads nothing.

    Parameters
    ----------
    store
        The run store of `everynode reproduce`, or its folder.
    out
        The page.
    preset
        Whose runs: those with the paper's settings, or with another preset: default, tuned, authors, or a file of `everynode tune`.
    seeds
        How many seeds (or random splits) a cell has, if other than ten.
    folds
        How many of the ten folds.
    data_dir
        Where the public graphs are; only for ogbn-arxiv, if its archive was unpacked there by hand.
    """
    from everynode.data.files import Root
    from everynode.experiments.store import Store, store_path
    from everynode.report.page import page_of_store

    if (store / "fit.json").is_file() and not store_path(store).is_file():
        raise UsageError(f"{store} is the folder of a fit, whose page is {store / 'report.html'}: open that file.")
    there = Store(store, must_exist=True)
    if out.resolve() == there.path.resolve():
        raise UsageError(f"--out {out} is the store itself: name another file.")
    named = None if there.path.resolve() == STORE.resolve() else there.path
    text, outcomes = page_of_store(there, preset, Root.find(data_dir), seeds=seeds, folds=folds, named=named)
    from everynode.training.checkpoint import write_atomically

    runs = len({key for outcome in outcomes for cell in outcome.cells for key in cell.keys})
    if not runs and ((records := there.records()) or out.is_file()):  # the page of an empty store says what to run, and replaces none
        raise nothing_of(preset, store, records.values())
    write_atomically(out, text.encode())
    if json_output:
        print(json.dumps({"page": str(out), "preset": preset, "runs": runs, "experiments": [o.experiment.id for o in outcomes]}))
    else:
        say(f"{out}: {runs} runs in {len(outcomes)} tables and figures.", quiet)
    return 0
