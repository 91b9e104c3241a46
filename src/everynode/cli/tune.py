"""``everynode tune``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import DataOptions, JsonFlag, ModelOptions, QuietFlag, say
from everynode.errors import UsageError

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


def tune(
    name: str,
    /,
    *,
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    trials: int = 50,
    seeds: int = 3,
    folds: int | None = None,
    workers: int | None = None,
    out: Path = Path("runs"),
    export: Path | None = None,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Find settings for a graph, a backbone and an objective, on validation nodes only: test nodes are never looked at.

    The study is kept in --out: interrupted, or killed, the same command goes on; with more --trials it goes further. Give cross-entropy
    (--objective ce) as many trials as the objective that it is compared with.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    trials
        How many settings are tried in all, those of earlier calls included.
    seeds
        How many runs judge a trial; bad trials are given up after the first ones.
    folds
        Instead of several seeds on one fold: one seed on each of the first so many folds.
    workers
        How many processes; default: one per core.
    out
        The folder of the studies.
    export
        Write the best settings to this file, which --preset then takes.
    """
    import torch

    from everynode.experiments import tune as tuning
    from everynode.experiments.run import short
    from everynode.progress import Bar
    from everynode.training.checkpoint import write_atomically

    if trials < 1 or seeds < 1 or (folds is not None and folds < 1) or (workers is not None and workers < 1):
        raise UsageError("--trials, --seeds, --folds and --workers must be at least 1.")
    torch.set_num_threads(1)
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer --folds.")
    runs = tuple((0, seed) for seed in range(seeds)) if folds is None else tuple((fold, 0) for fold in range(folds))
    base = model.settings(name, split, "enc" if model.objective == "ce" else model.objective)
    study = tuning.Study(name, split, model.backbone, model.objective, runs, base, out / "tune.journal")
    known = model.known_settings(name, split)
    done = len(tuning.ended(study.open()))
    try:
        with ctrl_c_raises(), Bar(f"{name} {model.backbone} {model.objective}", trials, unit="trials", show=not quiet) as bar:
            bar.advance(to=min(done, trials))

            def on_trial(trial: FrozenTrial, opened: optuna.Study) -> None:
                bar.advance(f"best {short(opened.best_value)}")

            opened = tuning.tune(study, graph, trials, known=known, workers=workers, on_trial=on_trial)
    except KeyboardInterrupt:
        say(f"\nInterrupted: the trials that have ended are in {study.journal}, and the same command goes on from there.", quiet)
        return INTERRUPTED
    best = opened.best_trial
    if export:
        write_atomically(export, tuning.as_preset(study, opened).encode())
        say(f"The best settings are in {export}.", quiet)
    counted = tuning.ended(opened)
    result = {
        "dataset": name, "split": split, "backbone": model.backbone, "objective": model.objective, "trials": len(counted),
        "pruned": sum(trial.value is None for trial in counted), "seconds": round(sum(t.user_attrs["seconds"] for t in counted), 1),
        "best_trial": best.number, "val_accuracy": best.value, "validation": best.user_attrs["validation"], "parameters": best.params,
        "importance": tuning.importance(opened),
    }  # fmt: skip
    if json_output:
        print(json.dumps(result))
        return 0
    print(f"{name}, {model.backbone}, {model.objective}, split {split}: {len(counted)} trials ({result['pruned']} given up early)")
    print(f"  best mean validation accuracy  {short(best.value)} % (trial {best.number})")
    for parameter, value in best.params.items():
        weight = result["importance"].get(parameter)
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"  {parameter:13} {shown!s:>10}" + (f"   importance {'#' * round(20 * weight)} {weight:.2f}" if weight is not None else ""))
    return 0
