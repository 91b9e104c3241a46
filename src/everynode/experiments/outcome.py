"""What the runs of an experiment say: summaries, paired gains, and a verdict beside every number of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everynode.experiments.declare import Cell, Experiment, Over
from everynode.experiments.run import Run
from everynode.experiments.statistics import Paired, Summary, compare_paired, holm, summarise

#: Less than this is no difference: 100 * 0.811 is a little more than 81.1.
ROUNDING = 1e-9


@dataclass(frozen=True)
class CellOutcome:
    """One number of a table or figure, and where it comes from. Accuracies and their differences are in percent."""

    cell: Cell
    #: How many runs it should have.
    planned: int
    #: The keys of the runs that it has, in order; those that diverged are among them.
    keys: tuple[str, ...]
    values: tuple[float, ...]
    #: How many of the runs diverged and have no value.
    diverged: int
    summary: Summary | None
    #: The mean over the best *test* epochs: what selection by test would have shown. A diagnostic, not a result.
    oracle: float | None
    #: Against the cell's ``against``, over the runs that both have.
    gain: Paired | None
    #: The gain's p-value after Holm's correction over the whole experiment.
    p_holm: float | None
    #: What its objective's name does not say of its terms: see :meth:`Settings.remark`.
    remark: str = ""
    #: Whether its objective is that of the paper's row: not if it has no term, and then is cross-entropy's, or one that the paper has not.
    comparable: bool = True

    @property
    def complete(self) -> bool:
        """Whether all planned runs are there."""
        return len(self.keys) == self.planned

    @property
    def verdict(self) -> str:
        """Beside the paper's number: ``reproduced`` (it lies in our interval), ``better by x``, ``short by x``; for counts, ``same``.

        The paper's mean is of the same folds, so the interval is not widened for what other folds would have given. Empty where there is
        nothing to compare: one run alone, a cell that is not complete or of which a run diverged, or another objective than the paper's.
        """
        paper, found = self.cell.published, self.summary
        if paper is None or found is None or self.cell.task == "time" or not self.comparable:
            return ""
        if self.cell.task == "describe":
            half = 0.005 if isinstance(found.mean, float) and found.mean % 1 else 0.0  # as the paper rounds homophily
            digits = 0 if float(paper).is_integer() else 2
            return "same" if abs(found.mean - paper) <= half + ROUNDING else f"differs by {found.mean - paper:+,.{digits}f}"
        if found.count < 2 or not self.complete or self.diverged:
            return ""
        found = summarise(self.values)
        if found.low > paper + ROUNDING:
            return f"better by {found.mean - paper:.1f}"
        return f"short by {paper - found.mean:.1f}" if found.high < paper - ROUNDING else "reproduced"


@dataclass(frozen=True)
class Outcome:
    """All cells of an experiment, in the order of its declaration."""

    experiment: Experiment
    preset: str
    cells: tuple[CellOutcome, ...]

    @property
    def done(self) -> int:
        """How many different runs are there."""
        return len({key for cell in self.cells for key in cell.keys})

    def panels(self) -> dict[str, list[CellOutcome]]:
        """The cells of each table or plot."""
        found: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            found.setdefault(cell.cell.panel, []).append(cell)
        return found


def conclude(experiment: Experiment, preset: str, plan: Mapping[Cell, Sequence[Run]], records: Mapping[str, dict[str, Any]]) -> Outcome:
    """What the records (by key) say about the cells of the plan."""
    made = [_outcome(experiment.over, cell, runs, records) for cell, runs in plan.items()]
    by_place = {(m.cell.panel, m.cell.row, m.cell.column): (m, runs) for m, runs in zip(made, plan.values(), strict=True)}
    for index, (outcome, runs) in enumerate(zip(made, plan.values(), strict=True)):
        if outcome.cell.against is not None:
            other = by_place[outcome.cell.panel, outcome.cell.against, outcome.cell.column]
            made[index] = replace(outcome, gain=_gain(experiment.over, outcome.cell, runs, other[1], records))
    judged = [index for index, outcome in enumerate(made) if outcome.gain is not None and outcome.gain.count > 1]
    corrected = holm([gain.p_value for index in judged if (gain := made[index].gain) is not None])
    for index, p_value in zip(judged, corrected, strict=True):
        made[index] = replace(made[index], p_holm=p_value)
    return Outcome(experiment, preset, tuple(made))


def _outcome(over: Over, cell: Cell, runs: Sequence[Run], records: Mapping[str, dict[str, Any]]) -> CellOutcome:
    there = [records[run.key] for run in runs if run.key in records]
    fine = [record for record in there if "error" not in record]
    keys = tuple(record["key"] for record in there)
    remark = runs[0].settings.remark(cell.objective) if runs else ""
    comparable = remark != "no term" and (not runs or runs[0].settings.of_the_paper)
    if cell.metric == "positions":  # a picture
        return CellOutcome(cell, len(runs), keys, (), len(there) - len(fine), None, None, None, None, remark, comparable)
    values = tuple(value(record, cell.metric) for record in fine)
    summary = summarise(values, test_share=_test_share(over, fine)) if values else None
    oracles = [100 * record["test_oracle_accuracy"] for record in fine if record.get("test_oracle_accuracy") is not None]
    oracle = sum(oracles) / len(oracles) if oracles and cell.metric == "test_accuracy" else None
    return CellOutcome(cell, len(runs), keys, values, len(there) - len(fine), summary, oracle, None, None, remark, comparable)


def _gain(over: Over, cell: Cell, runs: Sequence[Run], others: Sequence[Run], records: Mapping[str, dict[str, Any]]) -> Paired | None:
    if not runs or not others:  # for one of them the preset has no settings
        return None
    if [run.key for run in runs] == [run.key for run in others]:  # nothing to compare: see Cell.runs
        return None
    pairs = [(records.get(a.key), records.get(b.key)) for a, b in zip(runs, others, strict=True)]
    both = [(a, b) for a, b in pairs if a is not None and b is not None and "error" not in a and "error" not in b]
    if not both:
        return None
    share = _test_share(over, [a for a, _ in both])
    return compare_paired([value(a, cell.metric) for a, _ in both], [value(b, cell.metric) for _, b in both], test_share=share)


def _test_share(over: Over, records: Sequence[dict[str, Any]]) -> float | None:
    """Test nodes / training nodes where the runs are folds of one graph, whose training nodes overlap."""
    if over != "folds" or not records:
        return None
    return sum(r["nodes"]["test"] for r in records) / sum(r["nodes"]["train"] for r in records)


def value(record: dict[str, Any], metric: str) -> float:
    """A record's number under a dotted name; accuracies in percent."""
    found: Any = record
    for name in metric.split("."):
        found = found[name]
    return 100.0 * found if metric.endswith("accuracy") else float(found)
