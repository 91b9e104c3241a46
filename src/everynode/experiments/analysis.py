"""Results of experiments: summaries, paired gains, and verdicts on the published numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everynode.datasets.files import Root
from everynode.experiments.experiment import Cell, Experiment, Over, plan_all, versions_of
from everynode.experiments.run_spec import Run
from everynode.experiments.statistics import Paired, Summary, compare_paired, holm, summarize
from everynode.objective_names import has_only_paper_terms, remark

#: Smaller differences are rounding: 100 * 0.811 is a little more than 81.1.
ROUNDING = 1e-9
#: A corrected p-value below this is called significant.
SIGNIFICANT = 0.05
#: Runs that a verdict needs. With fewer, the interval would contain almost any published number.
#: Experiments over folds need all folds, since the paper averages all ten.
ENOUGH = 5

Records = Mapping[str, dict[str, Any]]


@dataclass(frozen=True)
class CellResult:
    """One number of a table or figure, with its origin. Accuracies and gains are in percent.

    Parameters
    ----------
    cell : Cell
        The declaration of the number.
    planned, needed : int
        Runs of the plan, and runs that a verdict needs.
    in_order : bool
        Whether the finished runs are the first of the plan.
    keys : tuple of str
        Keys of the finished runs, including diverged ones.
    values : tuple of float
        The number in each run that did not diverge.
    diverged : int
        Number of diverged runs. They have no value.
    summary : Summary, optional
        Mean and interval of the values.
    oracle : Summary, optional
        The same with the best *test* epoch of each run: a diagnostic, not a result.
    gain : Paired, optional
        Difference from the cell's ``against``, over the runs of both.
    p_holm : float, optional
        P-value of the gain after Holm's correction over the whole experiment, unfinished cells
        included; None if the gain cannot be judged yet.
    remark : str
        The terms that the name of the objective does not state, see
        :func:`everynode.objective_names.remark`.
    comparable : bool
        Whether the objective is the one of the paper's row.
    published_gain : float, optional
        Difference of the published numbers.
    """

    cell: Cell
    planned: int
    needed: int
    in_order: bool
    keys: tuple[str, ...]
    values: tuple[float, ...]
    diverged: int
    summary: Summary | None
    oracle: Summary | None
    gain: Paired | None
    p_holm: float | None
    remark: str = ""
    comparable: bool = True
    published_gain: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all planned runs are finished."""
        return len(self.keys) == self.planned

    @property
    def judged(self) -> bool:
        """Whether there are enough runs for a verdict, in order and none diverged."""
        return self.in_order and not self.diverged and len(self.values) >= self.needed

    @property
    def on_these(self) -> Summary | None:
        """The summary conditional on these seeds or folds, not widened for other folds.

        The paper averages the same ten folds, so the verdict uses this interval.
        """
        return summarize(self.values) if self.values else None

    @property
    def verdict(self) -> str:
        """The comparison with the published number.

        ``reproduced`` (the published number lies in our interval), ``better by x`` or ``short by
        x``; for counts, ``same`` or ``differs by x``. Empty without a valid comparison: too few
        runs, runs out of order, a diverged run, or another objective.

        The published number is taken as exact. If it is a mean of ten seeds like ours, about one
        cell in seven lies outside our interval by chance.
        """
        paper, measured = self.cell.published, self.on_these
        if paper is None or measured is None or self.cell.task == "time" or not self.comparable:
            return ""
        if self.cell.task == "describe":
            half = 0.005 if measured.mean % 1 else 0.0  # the paper rounds homophily to two digits
            digits = 0 if float(paper).is_integer() else 2
            same = abs(measured.mean - paper) <= half + ROUNDING
            return "same" if same else f"differs by {measured.mean - paper:+,.{digits}f}"
        if not self.judged:
            return ""
        if measured.low > paper + ROUNDING:
            return f"better by {measured.mean - paper:.1f}"
        if measured.high < paper - ROUNDING:
            return f"short by {paper - measured.mean:.1f}"
        return "reproduced"

    @property
    def significant(self) -> bool:
        """Whether the gain is significant; tables mark it with a star."""
        return self.p_holm is not None and self.p_holm < SIGNIFICANT

    @property
    def short_at_any_epoch(self) -> bool:
        """Whether the result is short even when the epoch is chosen on the test set."""
        paper, best = self.cell.published, self.oracle
        return (
            self.verdict.startswith("short")
            and paper is not None
            and best is not None
            and best.high < paper - ROUNDING
        )


@dataclass(frozen=True)
class ExperimentResult:
    """The results of all cells of an experiment, in the order of its declaration.

    Parameters
    ----------
    experiment : Experiment
        The declaration.
    preset : str
        The preset of the runs.
    cells : tuple of CellResult
        The results.
    """

    experiment: Experiment
    preset: str
    cells: tuple[CellResult, ...]

    @property
    def done(self) -> int:
        """Number of different finished runs."""
        return len({key for cell in self.cells for key in cell.keys})

    @property
    def each(self) -> int:
        """Number of runs that a cell should have."""
        return max(
            (cell.planned for cell in self.cells if cell.planned), default=self.experiment.count
        )

    def panels(self) -> dict[str, list[CellResult]]:
        """Return the cells of each table or plot."""
        panels: dict[str, list[CellResult]] = {}
        for cell in self.cells:
            panels.setdefault(cell.cell.panel, []).append(cell)
        return panels


def analyze(
    experiment: Experiment,
    preset: str,
    plan: Mapping[Cell, Sequence[Run]],
    records: Records,
) -> ExperimentResult:
    """Analyze the records (by key) of the planned runs of an experiment."""
    results = [_summarize_cell(experiment, cell, runs, records) for cell, runs in plan.items()]
    by_place = {
        (result.cell.panel, result.cell.row, result.cell.column): (result, runs)
        for result, runs in zip(results, plan.values(), strict=True)
    }
    p_values: dict[int, float] = {}
    for index, (result, runs) in enumerate(zip(results, plan.values(), strict=True)):
        if result.cell.against is None:
            continue
        other, others = by_place[result.cell.panel, result.cell.against, result.cell.column]
        if not runs or not others or [run.key for run in runs] == [run.key for run in others]:
            continue  # the preset has no settings for one of them, or both are the same runs
        gain = _gain(experiment.over, result.cell, runs, others, records)
        published = _published_gain(result, other) if experiment.in_paper else None
        results[index] = replace(result, gain=gain, published_gain=published)
        whole = all(one.judged and len(one.values) >= experiment.count for one in (result, other))
        p_values[index] = gain.p_value if gain is not None and whole else math.nan
    # A gain without a verdict counts as a test, so no star disappears when more cells are run. A
    # star needs all declared runs; otherwise one could stop at a favorable number of them.
    corrected = holm([1.0 if math.isnan(p_value) else p_value for p_value in p_values.values()])
    for (index, p_value), p_holm in zip(p_values.items(), corrected, strict=True):
        results[index] = replace(results[index], p_holm=None if math.isnan(p_value) else p_holm)
    return ExperimentResult(experiment, preset, tuple(results))


def analyze_all(
    preset: str, records: Records, root: Root, *, seeds: int | None = None, folds: int | None = None
) -> list[ExperimentResult]:
    """Analyze every experiment of a preset with the versions that most records have."""
    plans = plan_all(preset, seeds, folds, root, versions_of(records.values()))
    return [analyze(experiment, preset, plan, records) for experiment, plan in plans.items()]


def _summarize_cell(
    experiment: Experiment, cell: Cell, runs: Sequence[Run], records: Records
) -> CellResult:
    finished = [records[run.key] for run in runs if run.key in records]
    fine = [record for record in finished if "error" not in record]
    keys = tuple(run.key for run in runs if run.key in records)
    note = remark(runs[0].settings, cell.objective) if runs else ""
    values: tuple[float, ...] = ()
    if cell.metric != "positions":  # a picture has no number
        values = tuple(value(record, cell.metric) for record in fine)
    oracles = [
        100 * record["test_oracle_accuracy"]
        for record in fine
        if record.get("test_oracle_accuracy") is not None
    ]
    return CellResult(
        cell,
        planned=len(runs),
        needed=experiment.count if experiment.over == "folds" else ENOUGH,
        # Otherwise the finished runs may be the shortest ones, which biases the mean.
        in_order=[run.key for run in runs[: len(finished)]] == list(keys),
        keys=keys,
        values=values,
        diverged=len(finished) - len(fine),
        summary=summarize(values, test_share=test_share(experiment.over, fine)) if values else None,
        oracle=summarize(oracles) if oracles and cell.metric == "test_accuracy" else None,
        gain=None,
        p_holm=None,
        remark=note,
        # Another system's terms are its own; only the paper's rows must keep to the paper's terms.
        comparable=note != "no term"
        and (not runs or bool(cell.preset) or has_only_paper_terms(runs[0].settings)),
    )


def _published_gain(one: CellResult, other: CellResult) -> float | None:
    a, b = one.cell.published, other.cell.published
    return None if a is None or b is None else a - b


def _gain(
    over: Over, cell: Cell, runs: Sequence[Run], others: Sequence[Run], records: Records
) -> Paired | None:
    pairs = [(records.get(a.key), records.get(b.key)) for a, b in zip(runs, others, strict=True)]
    both = [
        (a, b)
        for a, b in pairs
        if a is not None and b is not None and "error" not in a and "error" not in b
    ]
    if not both:
        return None
    return compare_paired(
        [value(a, cell.metric) for a, _ in both],
        [value(b, cell.metric) for _, b in both],
        test_share=test_share(over, [a for a, _ in both]),
    )


def test_share(over: Over, records: Sequence[dict[str, Any]]) -> float | None:
    """Return test nodes / training nodes for folds of one graph, which overlap; else None."""
    if over != "folds" or not records:
        return None
    return sum(r["nodes"]["test"] for r in records) / sum(r["nodes"]["train"] for r in records)


def value(record: dict[str, Any], metric: str) -> float:
    """Return a number of a record by its dotted name; accuracies in percent."""
    entry: Any = record
    for name in metric.split("."):
        entry = entry[name]
    return 100.0 * entry if metric.endswith("accuracy") else float(entry)
