"""``everynode report``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everynode.cli.options import JsonFlag, QuietFlag
from everynode.cli.results import STORE
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.experiments.exports import ExportedRuns
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
    """Write an HTML page about the runs of a store: tables, figures, curves, and every run.

    Parameters
    ----------
    sources
        The run store of `everynode reproduce`, or its folder (default: runs); or files of
        `everynode results export`, with their times.
    out
        The page.
    preset
        The preset of the runs: paper, default, tuned, authors, or a file of `everynode tune`.
        Default: paper, or the single preset of all runs.
    seeds
        Number of seeds (or random splits) per cell, if not ten.
    folds
        Number of folds.
    data_dir
        Folder of the public graphs; only needed for ogbn-arxiv.
    """
    from everynode.datasets.files import Root
    from everynode.experiments.record_selection import has_runs_of, nothing_of
    from everynode.report.page import is_page, page_of_store
    from everynode.storage.atomic import write_atomically

    store, named = _open(sources, out)
    records, shown = store.records(), ", ".join(map(str, sources or [STORE]))
    if preset is None:
        preset = _only_preset(records.values())
        if preset != "paper":
            say(f"All runs in {shown} had the preset {preset}, which the page shows.", quiet)
    root = Root.find(data_dir)
    text, results = page_of_store(store, preset, root, seeds=seeds, folds=folds, named=named)
    runs = len({key for result in results for cell in result.cells for key in cell.keys})
    # The page of an empty store explains what to run, and replaces no file.
    if not has_runs_of(preset, results, records) and (records or out.is_file()):
        raise nothing_of(preset, shown, records.values())
    if out.is_file() and not is_page(out):
        raise UsageError(
            f"{out} is not a page of everynode and is not replaced: "
            "name another file with --out, or move it away."
        )
    write_atomically(out, text.encode())
    if json_output:
        ids = [result.experiment.id for result in results]
        print(json.dumps({"page": str(out), "preset": preset, "runs": runs, "experiments": ids}))
    else:
        say(f"{out}: {runs} runs in {len(results)} tables and figures.", quiet)
    return 0


def _open(sources: Sequence[Path], page: Path) -> tuple[Store | ExportedRuns, Path | None]:
    """Open the store or the exports, and return the path that the commands of the page name.

    It is None for the default store, which commands need not name, and for exports.
    """
    from everynode.experiments.exports import ExportedRuns, is_export

    if sources and all(map(is_export, sources)):
        return ExportedRuns(sources), None
    if len(sources) > 1:
        raise UsageError(
            "A page shows one store, or several exports (.csv, .json): "
            "`everynode results merge` joins stores."
        )
    store = _store(sources[0] if sources else STORE)
    if page.resolve() == store.path.resolve():
        raise UsageError(f"--out {page} is the store itself: name another file.")
    return store, None if store.path.resolve() == STORE.resolve() else store.path


def _only_preset(records: Iterable[dict[str, Any]]) -> str:
    """Return the preset that all runs share, if it can be read; else paper."""
    from everynode.presets import PRESETS

    preset, *others = sorted({record["preset"] for record in records}) or ["paper"]
    return preset if not others and (preset in PRESETS or Path(preset).is_file()) else "paper"


def _store(path: Path) -> Store:
    """Open the store at a path or in a folder."""
    from everynode.experiments.store import NoStore, Store, store_path

    if (path / "fit.json").is_file() and not store_path(path).is_file():
        raise UsageError(
            f"{path} is the folder of a fit: its page is {path / 'report.html'}, open that file."
        )
    try:
        return Store(path, must_exist=True)
    except NoStore as error:
        if path != STORE:
            raise
        raise NoStore(f"{error} Or name another store: `everynode report runs/demo`.") from None
