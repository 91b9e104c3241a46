"""``everynode compare``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.engine_options import EngineOptions
from everynode.cli.files import OwnGraph, open_graph
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import (
    OUTPUT,
    DataOptions,
    JsonFlag,
    ModelOptions,
    QuietFlag,
)
from everynode.console import say

if TYPE_CHECKING:
    from everynode.experiments.compare import Comparison
    from everynode.experiments.run_spec import Run
    from everynode.experiments.runner import Graphs
    from everynode.experiments.store import Store
    from everynode.training.process_pool import Engine


def compare(
    name: str | None = None,
    /,
    *,
    own: OwnGraph = OwnGraph(),  # noqa: B008 - frozen
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    engine: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    seeds: int | None = None,
    folds: int | None = None,
    fold: int | None = None,
    seed: int = 0,
    out: Annotated[Path, Parameter(group=OUTPUT)] = Path("runs"),
    resume: Annotated[bool, Parameter(group=OUTPUT)] = True,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Compare the objective with plain cross-entropy on the same seeds or folds.

    All other settings are the same, unless the preset has separate settings for cross-entropy:
    tuned, a file of `everynode tune`, and the paper's depth of GCNII on Citeseer and Pubmed.

    Parameters
    ----------
    name
        A graph of `everynode data list`. Or give your own: --nodes and --edges.
    seeds
        Number of seeds on one fold; default: 10.
    folds
        Run one seed on each of the first folds instead of several seeds on one fold. Intervals
        are corrected for the overlap of folds.
    fold
        The fold of the seeds; default: the first, 0.
    seed
        The first seed.
    out
        The folder of the run store; its runs are not repeated.
    resume
        --no-resume repeats the runs; an old record stays until the new one is stored.
    """
    import torch

    from everynode.experiments.compare import compare_records, objectives_of, pairs_of
    from everynode.experiments.runner import Graphs
    from everynode.experiments.store import Store, store_path

    model.load_plugins()
    torch.set_num_threads(1)
    objectives = objectives_of(model.objective)
    do_many = engine.start(data.device)
    name, graph, split, _digest = open_graph(name, own, data, quiet or json_output)
    over, pairs = pairs_of(seeds, folds, fold, seed, len(graph.splits))
    runs = [
        model.run(name, graph, split, data, fold=f, seed=s, objective=objective)
        for f, s in pairs
        for objective in objectives
    ]
    graphs, store = Graphs(data.data_dir), Store(store_path(out))
    graphs.add(runs[0], graph)
    workers = engine.workers_on(data.device)
    title = f"{name} {model.backbone}"
    records = _do(title, runs, graphs, store, do_many, workers, resume=resume, quiet=quiet)
    if records is None:
        return INTERRUPTED
    result = compare_records(records, objectives[1], over=over)
    _print_comparison(result, runs, f"{name}, {model.backbone}, split {split}", json_output)
    return 0


def _do(
    title: str,
    runs: Sequence[Run],
    graphs: Graphs,
    store: Store,
    engine: Engine,
    workers: int | None,
    *,
    resume: bool,
    quiet: bool,
) -> list[dict[str, Any]] | None:
    """Execute the runs with a progress bar; return their records, or None after Ctrl-C."""
    from everynode.cli.running import RunBar
    from everynode.experiments.planning import Schedule
    from everynode.experiments.runner import do_runs
    from everynode.experiments.runtime_model import seconds_left
    from everynode.report.run_text import run_of_comparison

    work = Schedule(list(runs), seconds_left(runs, store.records(), again=not resume), [])
    bar = RunBar(title, work, run_of_comparison, workers=workers, quiet=quiet)
    try:
        with bar:
            records = do_runs(
                runs, graphs, store, workers=workers, engine=engine,
                on_record=bar.on_record, again=not resume,
            )  # fmt: skip
    except KeyboardInterrupt:
        rest = "continues" if resume else "repeats all runs; the others keep their old record"
        say(f"\nInterrupted: finished runs are in {store.path}. The same command {rest}.")
        return None
    if bar.stored:
        say(f"{bar.stored} of {len(runs)} runs were in {store.path} already.", quiet)
    return records


def _print_comparison(
    result: Comparison, runs: Sequence[Run], where: str, json_output: bool
) -> None:
    from everynode.report.text import count

    if result.diverged:
        say(f"Left out {count(result.diverged, result.unit)} because a training diverged.")
    if json_output:
        print(json.dumps({"command": shlex.join(["everynode", *sys.argv[1:]]), **result.to_dict()}))
        return
    from rich.console import Console

    from everynode.report.terminal import comparison_table, gain_sentence

    settings = {run.objective: run.settings for run in runs}
    Console().print(comparison_table(result, settings, where))
    print(gain_sentence(result, runs[-1].objective))
    if "stand_in" in result.records[0]:
        print(result.records[0]["stand_in"])
