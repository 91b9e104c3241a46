"""``everynode compare``."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import (
    OUTPUT,
    DataOptions,
    EngineOptions,
    JsonFlag,
    ModelOptions,
    QuietFlag,
)
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.experiments.run_spec import Run


def compare(
    name: str,
    /,
    *,
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
    """Compare the objective with plain cross-entropy, paired, with intervals.

    All other settings are the same, unless the preset has settings for cross-entropy of its own:
    tuned, a file of `everynode tune`, and the paper's depth of GCNII on Citeseer and Pubmed.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
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

    from everynode.cli.running import RunBar
    from everynode.experiments.compare import BASELINE, compare_records, pairs_of
    from everynode.experiments.planning import Schedule
    from everynode.experiments.runner import Graphs, do_runs
    from everynode.experiments.runtime_model import seconds_left
    from everynode.experiments.store import Store, store_path
    from everynode.objective_names import objective_name
    from everynode.report.text import count

    model.load_plugins()
    torch.set_num_threads(1)
    objective = objective_name(model.objective)
    if objective == BASELINE:
        raise UsageError("Cross-entropy cannot be compared with itself: choose an --objective.")
    do_many = engine.start()
    if engine.engine == "ray" and data.device != "cpu":
        raise UsageError("--engine ray runs on CPUs: leave out --device.")
    graph, split = data.load(name)
    over, pairs = pairs_of(seeds, folds, fold, seed, len(graph.splits))
    runs = [
        model.run(name, graph, split, data, fold=f, seed=s, objective=either)
        for f, s in pairs
        for either in (BASELINE, objective)
    ]
    graphs = Graphs(data.data_dir)
    graphs.add(runs[0], graph)
    store = Store(store_path(out))
    schedule = Schedule(runs, seconds_left(runs, store.records(), again=not resume), [])
    bar = RunBar(
        f"{name} {model.backbone}", schedule, _progress, workers=engine.workers, quiet=quiet
    )
    try:
        with bar:
            records = do_runs(
                runs,
                graphs,
                store,
                workers=engine.workers,
                engine=do_many,
                on_record=bar.on_record,
                again=not resume,
            )
    except KeyboardInterrupt:
        rest = "continues" if resume else "repeats all runs; the others keep their old record"
        say(f"\nInterrupted: finished runs are in {store.path}. The same command {rest}.")
        return INTERRUPTED
    if bar.known:
        say(f"{bar.known} of {len(runs)} runs were in {store.path} already.", quiet)
    result = compare_records(records, objective, over=over)
    if result.diverged:
        say(f"Left out {count(result.diverged, result.unit)} because a training diverged.")
    if json_output:
        print(json.dumps({"command": shlex.join(["everynode", *sys.argv[1:]]), **result.to_dict()}))
        return 0
    from rich.console import Console

    from everynode.report.terminal import comparison_table, gain_sentence

    settings = {run.objective: run.settings for run in runs}
    where = f"{name}, {model.backbone}, split {split}"
    Console().print(comparison_table(result, settings, where))
    print(gain_sentence(result, objective))
    if "stand_in" in records[0]:
        print(records[0]["stand_in"])
    return 0


def _progress(run: Run, record: dict[str, Any]) -> str:
    from everynode.experiments.run_spec import short

    score = "diverged" if "error" in record else f"test {short(record['test_accuracy'])}"
    return f"{run.objective} fold {run.fold} seed {run.seed}: {score}"
