"""``everynode compare``."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
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

    Everything else is the same, but where a preset has other settings for cross-entropy: tuned, or a file of `everynode tune`, those that
    were found for it; paper, GCNII's own depth on Citeseer and Pubmed.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    seeds
        How many seeds, on one fold; default: 10.
    folds
        Instead of several seeds on one fold: one seed on each of the first so many folds, with intervals corrected for their overlap.
    fold
        Which fold the seeds are run on; default: the first, 0.
    seed
        The first seed.
    out
        The folder of the run store; runs that are in it are not done again.
    resume
        --no-resume does these runs again; the old record of each stays until its new one is there.
    """
    import torch

    from everynode.experiments.compare import BASELINE, conclude
    from everynode.experiments.experiment import Over
    from everynode.experiments.run_spec import Run, short
    from everynode.experiments.runner import Graphs, do_runs
    from everynode.experiments.runtime_model import seconds_left
    from everynode.experiments.store import Store, store_path
    from everynode.machine import cores
    from everynode.objective_names import objective_name, remark
    from everynode.progress import Bar
    from everynode.report.text import DASH, count

    model.load_plugins()
    torch.set_num_threads(1)
    objective = objective_name(model.objective)
    if objective == BASELINE:
        raise UsageError(
            "Cross-entropy cannot be compared with itself: choose another --objective."
        )
    if any(given is not None and given < 1 for given in (seeds, folds)):
        raise UsageError("--seeds and --folds must be at least 1.")
    if folds is not None and (seeds, fold) != (None, None):
        raise UsageError(
            "--folds goes over the first folds with one seed each: give neither --seeds nor --fold."
        )
    do_many = engine.start()
    if engine.engine == "ray" and data.device != "cpu":
        raise UsageError("--engine ray runs on CPUs: leave out --device.")
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(
            f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer --folds or another --split."
        )
    pairs = (
        [(fold or 0, seed + i) for i in range(seeds or 10)]
        if folds is None
        else [(f, seed) for f in range(folds)]
    )
    runs = [
        model.run(name, graph, split, data, fold=f, seed=s, objective=either)
        for f, s in pairs
        for either in (BASELINE, objective)
    ]
    graphs = Graphs(data.data_dir)
    graphs.add(runs[0], graph)
    path = store_path(out)
    store = Store(path)
    known, left = 0, seconds_left(runs, store.records(), again=not resume)
    title, work, at_once = (
        f"{name} {model.backbone}",
        sum(left.values()),
        min(engine.workers or cores(), max(1, len(left))),
    )
    try:
        with (
            ctrl_c_raises(),
            Bar(
                title, len(runs), unit="runs", show=not quiet, seconds=work, at_once=at_once
            ) as bar,
        ):

            def on_record(run: Run, record: dict[str, Any], fresh: bool) -> None:
                nonlocal known
                known += not fresh
                where = f"fold {record['fold']}" if folds else f"seed {record['seed']}"
                got = "diverged" if "error" in record else f"test {short(record['test_accuracy'])}"
                bar.advance(f"{record['objective']} {where}: {got}", seconds=left.get(run.key, 0.0))

            records = do_runs(
                runs,
                graphs,
                store,
                workers=engine.workers,
                engine=do_many,
                on_record=on_record,
                again=not resume,
            )
    except KeyboardInterrupt:
        how = (
            "and the same command goes on from there"
            if resume
            else "of the others the old record stays; the same command does all again"
        )
        say(f"\nInterrupted: what has ended is in {path}, {how}.")
        return INTERRUPTED
    if known:
        say(f"{known} of {len(runs)} runs were in {path} already.", quiet)
    over: Over = "seeds" if folds is None else "folds"
    result = conclude(records, objective, over=over)
    if result.diverged:
        say(
            f"Left out {count(result.diverged, over[:-1])}: a training diverged. What is said is of the other {result.gain.count}."
        )
    if json_output:
        print(json.dumps({"command": shlex.join(["everynode", *sys.argv[1:]]), **result.to_dict()}))
        return 0
    from rich.console import Console
    from rich.table import Table

    which = (
        f"{result.gain.count} of {count(len(pairs), over[:-1])}"
        if result.diverged
        else count(len(pairs), over[:-1])
    )
    title = f"{name}, {model.backbone}, split {split}, {which}: accuracy in %"
    table = Table(title=title, title_justify="left")
    for heading in (
        "objective",
        "test mean",
        "std",
        "95% interval",
        "validation mean",
        "s per run",
    ):
        table.add_column(heading, justify="left" if heading == "objective" else "right")
    settings = {
        either: next(run.settings for run in runs if run.objective == either)
        for either in result.test
    }
    depths = len({found.num_layers for found in settings.values()}) > 1
    for either, test in result.test.items():
        took = [r.get("seconds") for r in records if r["objective"] == either and "error" not in r]
        seconds = [
            one for one in took if one is not None
        ]  # runs that came from an export may not say it
        interval = "-" if math.isnan(test.low) else f"{short(test.low)} to {short(test.high)}"
        note = remark(settings[either], either)
        depth = f", {settings[either].num_layers} layers" if depths else ""
        table.add_row(
            f"{'cross-entropy' if either == BASELINE else either}{f' ({note})' if note else ''}{depth}",
            short(test.mean), short(test.std), interval, short(result.val[either].mean),
            f"{sum(seconds) / len(seconds):.1f}" if seconds else DASH,
        )  # fmt: skip
    Console().print(table)
    gain = result.gain
    print(f"{objective} minus cross-entropy, paired: {100 * gain.mean:+.2f} points", end="")
    p_value = "" if math.isnan(gain.p_value) else f" (p = {gain.p_value:.2g})"
    print(
        f", 95% interval {100 * gain.low:+.2f} to {100 * gain.high:+.2f}{p_value}"
        if gain.count > 1
        else f"; one {over[:-1]} tells nothing of chance: give more"
    )
    if "stand_in" in records[0]:
        print(records[0]["stand_in"])
    return 0
