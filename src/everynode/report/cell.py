"""The number of a cell as text: digits, interval, the paper's number, and every fact about it."""

from __future__ import annotations

import math
from functools import cache

from everynode.evaluation.metrics import METRICS, RECORDED
from everynode.experiments.analysis import CellOutcome
from everynode.experiments.experiment import Experiment
from everynode.experiments.statistics import Summary
from everynode.report.text import as_printed, decimals, interval, number, p_value

#: The metrics of a record by their key, each with its heading.
SCORES = {
    f"{part}_{name}": (f"{words} {METRICS[name].heading}", METRICS[name])
    for name in RECORDED
    for part, words in {"test": "test", "val": "validation"}.items()
}


def digits_of(experiment: Experiment, cell: CellOutcome) -> int:
    """Return the number of decimals of a cell: none for counts, one for an accuracy."""
    if cell.cell.task == "describe" and not cell.cell.metric.endswith("homophily"):
        return 0
    if cell.cell.metric.endswith("accuracy") and experiment.unit != "%":
        return 1
    return experiment.digits


def printed(experiment: Experiment, cell: CellOutcome) -> str:
    """Format the paper's number of a cell with the decimals of its table."""
    assert cell.cell.published is not None
    in_table = _decimals(experiment, cell.cell.metric)
    return as_printed(cell.cell.published, max(digits_of(experiment, cell), in_table))


@cache
def _decimals(experiment: Experiment, metric: str) -> int:
    return decimals(cell.published for cell in experiment.cells() if cell.metric == metric)


def limits(summary: Summary, cell: CellOutcome) -> tuple[float, float]:
    """Return the ends of a 95% interval, for accuracies within 0 to 100; NaN for a single run."""
    if not cell.cell.metric.endswith("accuracy") or math.isnan(summary.low):
        return summary.low, summary.high
    return max(0.0, summary.low), min(100.0, summary.high)


def mean_and_std(summary: Summary, digits: int) -> str:
    """Format a mean with its standard deviation, which a single run has not."""
    spread = f" ± {number(summary.std, digits)}" if summary.count > 1 else ""
    return f"{number(summary.mean, digits)}{spread}"


def metric_name(metric: str) -> str:
    """Return the name of a metric in words.

    >>> metric_name("test_accuracy"), metric_name("statistics.node_homophily")
    ('test accuracy, %', 'node homophily')
    """
    if metric in SCORES:
        return SCORES[metric][0]
    return metric.rpartition(".")[2].replace("_", " ")


def place_name(experiment: Experiment, cell: CellOutcome) -> str:
    """Return the panel, row and column of a cell."""
    column = f"{experiment.x} {cell.cell.column}" if experiment.x else cell.cell.column
    return " · ".join(part for part in (cell.cell.panel, cell.cell.row, column) if part)


def cell_facts(experiment: Experiment, cell: CellOutcome) -> list[tuple[str, str]]:
    """Return every fact about a number, as pairs of a name and a text."""
    digits, summary, gain = digits_of(experiment, cell), cell.summary, cell.gain
    rows = []
    if summary is not None:
        rows.append((metric_name(cell.cell.metric), number(summary.mean, digits)))
        if summary.count > 1:
            rows.append(("standard deviation", number(summary.std, digits)))
            between = interval(*limits(summary, cell), digits)
            if experiment.over == "folds" and cell.on_these is not None:
                here = interval(*limits(cell.on_these, cell), digits)
                rows.append(("95% interval on these folds", here))
                rows.append(("95% interval for other folds", between))
            else:
                rows.append(("95% interval of the mean", between))
    if cell.cell.published is not None:
        rows.append(("in the paper", printed(experiment, cell)))
    if cell.verdict:
        rows.append(("verdict", cell.verdict))
    if gain is not None and gain.count > 1:
        pairs = f"gain over {cell.cell.against}, {gain.count} pairs"
        rows.append((pairs, number(gain.mean, digits, sign=True)))
        rows.append(("95% interval of the gain", interval(gain.low, gain.high, digits)))
        rows.append(("significance after Holm", p_value(cell.p_holm)))
        if cell.published_gain is not None:
            rows.append(("gain in the paper", number(cell.published_gain, digits, sign=True)))
    if cell.remark:
        rows.append(("objective", cell.remark))
    rows.append(("runs", f"{len(cell.keys)} of {cell.planned}"))
    if cell.diverged:
        rows.append(("diverged, without a value", str(cell.diverged)))
    return rows
