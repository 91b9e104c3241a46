"""``everynode tune``."""

from __future__ import annotations

import json
from pathlib import Path

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_raises
from everynode.cli.options import DataOptions, JsonFlag, ModelOptions, QuietFlag, say
from everynode.errors import UsageError


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

    The study is kept in --out: interrupted, or killed, the same command goes on; with more --trials it goes further; and several such
    commands at once share the work. Give cross-entropy (--objective ce) as many trials as the objective that it is compared with.

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
    from everynode.experiments.study import Journal
    from everynode.progress import Bar

    if trials < 1 or seeds < 1 or (folds is not None and folds < 1) or (workers is not None and workers < 1):
        raise UsageError("--trials, --seeds, --folds and --workers must be at least 1.")
    torch.set_num_threads(1)
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer --folds.")
    study = model.study(name, split, data, over="seeds" if folds is None else "folds", count=folds or seeds)
    journal = Journal(out / "tune" / f"{study.name}.journal", study)
    try:
        with ctrl_c_raises(), Bar(f"{name} {model.backbone} {study.objective}", trials, unit="trials", show=not quiet) as bar:
            bar.advance(to=min(len(journal.ended()), trials))

            def on_trial() -> None:
                best = journal.best()
                bar.advance(f"best {short(best.value)}" if best else "", to=min(len(journal.ended()), trials))

            tuning.tune(journal, graph, trials, workers=workers, on_trial=on_trial)
    except KeyboardInterrupt:
        say(f"\nInterrupted: the trials that have ended are in {journal.path}, and the same command goes on from there.", quiet)
        return INTERRUPTED
    best = journal.best()
    assert best is not None
    counted = journal.ended()
    result = {
        "dataset": name, "split": split, "backbone": model.backbone, "objective": study.objective, "trials": len(counted),
        "pruned": sum(trial.value is None for trial in counted), "seconds": round(sum(t.user_attrs["seconds"] for t in counted), 1),
        "best_trial": best.number, "val_accuracy": best.value, "accuracies": best.user_attrs["accuracies"], "parameters": best.params,
        "importance": tuning.importance(journal),
    }  # fmt: skip
    if json_output:
        print(json.dumps(result))
        return 0
    print(f"{name}, {model.backbone}, {study.objective}, split {split}: {len(counted)} trials ({result['pruned']} given up early)")
    print(f"  best mean validation accuracy  {short(best.value)} % (trial {best.number})")
    for parameter, value in best.params.items():
        weight = result["importance"].get(parameter)
        shown = f"{value:.4g}" if isinstance(value, float) else value
        print(f"  {parameter:13} {shown!s:>10}" + (f"   importance {'#' * round(20 * weight)} {weight:.2f}" if weight is not None else ""))
    return 0
