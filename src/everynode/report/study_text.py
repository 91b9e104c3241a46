"""The result of ``everynode tune`` as text for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from everynode.evaluation.metrics import LOSSES
from everynode.report.text import count
from everynode.selection.study_storage import Trials


def study_lines(journal: Trials, result: dict[str, Any]) -> Iterator[str]:
    """Yield the best settings of a study and the importance of each parameter.

    Parameters
    ----------
    journal : Trials
        The study.
    result : dict
        Its result (:func:`everynode.selection.tuning.result`).
    """
    study, importance = journal.study, result["importance"]
    runs = count(study.count, study.over.removesuffix("s"))
    trials = f"{count(result['trials'], 'trial')} of {runs} ({result['pruned']} pruned)"
    place = f"{study.dataset}, {study.backbone}, {study.objective}, split {study.split}"
    yield f"{place}: {trials}, {result['seconds']:.0f} s"
    metric = result.get("monitor", "accuracy").replace("_", " ")
    score = result["val_accuracy" if metric == "accuracy" else "val_score"]
    best = f"{100 * score:.1f} % (trial {result['best_trial']})"
    if result.get("monitor") in LOSSES:
        best = f"{-math.log(max(score, 1e-300)):.3f} (trial {result['best_trial']})"
    yield f"  best mean validation {metric}  {best}"
    # The switch of a term has its own importance.
    for parameter in dict.fromkeys([*study.space, *importance]):
        value = result["parameters"].get(parameter, "")
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        line = f"  {parameter:13} {shown:>12}"
        if parameter in importance:
            weight = importance[parameter]
            line += f"   importance {weight:.2f} {'#' * round(20 * weight)}"
        yield line
