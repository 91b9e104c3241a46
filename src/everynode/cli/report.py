"""``everynode report``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.cli.results import STORE, nothing_of
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.experiments.store import Store


def report(
    *sources: Path,
    out: Path = Path("report.html"),
    preset: str | None = None,
    seeds: int | None = None,
    folds: int | None = None,
    data_dir: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Write the runs of a store as one HTML page: tables, figures, curves, and the runs behind every number. It loads nothing.

    Parameters
    ----------
    sources
        The run store of `everynode reproduce`, or its folder (default: runs); or files of `everynode results export`, with their times.
    out
        The page.
    preset
        Whose runs: those with the paper's settings (paper), or with another preset: default, tuned, authors, or a file of `everynode tune`.
        Without it: paper, unless all runs had the same other one.
    seeds
        How many seeds (or random splits) a cell has, if other than ten.
    folds
        How many of the ten folds.
    data_dir
        Where the public graphs are; only for ogbn-arxiv, if its archive was unpacked there by hand.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.exports import Exports, is_export
    from everynode.presets import PRESETS
    from everynode.report.page import is_page, page_of_store
    from everynode.storage.atomic import write_atomically

    root = Root.find(data_dir)
    named: Path | None = None
    there: Store | Exports
    if sources and all(map(is_export, sources)):
        there = Exports(sources, root)
    elif len(sources) > 1:
        raise UsageError(
            "A page is of one store, or of exports (.csv, .json): `everynode results merge` makes one store of several."
        )
    else:
        there = _store(sources[0] if sources else STORE)
        if out.resolve() == there.path.resolve():
            raise UsageError(f"--out {out} is the store itself: name another file.")
        named = None if there.path.resolve() == STORE.resolve() else there.path
    records, shown = there.records(), ", ".join(map(str, sources or [STORE]))
    if preset is None:
        preset, *others = sorted({record["preset"] for record in records.values()}) or ["paper"]
        if others or not (
            preset in PRESETS or Path(preset).is_file()
        ):  # of a file only the name is known
            preset = "paper"
        elif preset != "paper":
            say(
                f"All runs in {shown} had the preset {preset}: the page is of --preset {preset}.",
                quiet,
            )
    text, outcomes = page_of_store(there, preset, root, seeds=seeds, folds=folds, named=named)
    runs = len({key for outcome in outcomes for cell in outcome.cells for key in cell.keys})
    if not runs and (
        records or out.is_file()
    ):  # the page of an empty store says what to run, and replaces none
        raise nothing_of(preset, shown, records.values())
    if out.is_file() and not is_page(out):
        raise UsageError(
            f"{out} is no page of everynode, and is not replaced: name another file with --out, or move it away."
        )
    write_atomically(out, text.encode())
    if json_output:
        print(
            json.dumps(
                {
                    "page": str(out),
                    "preset": preset,
                    "runs": runs,
                    "experiments": [o.experiment.id for o in outcomes],
                }
            )
        )
    else:
        say(f"{out}: {runs} runs in {len(outcomes)} tables and figures.", quiet)
    return 0


def _store(path: Path) -> Store:
    """The store at a path, which may be its folder; who has none there is told how to name another."""
    from everynode.experiments.store import NoStore, Store, store_path

    if (path / "fit.json").is_file() and not store_path(path).is_file():
        raise UsageError(
            f"{path} is the folder of a fit, whose page is {path / 'report.html'}: open that file."
        )
    try:
        return Store(path, must_exist=True)
    except NoStore as error:
        if path != STORE:
            raise
        raise NoStore(
            f"{error} One that is elsewhere is named first, such as `everynode report runs/demo`."
        ) from None
