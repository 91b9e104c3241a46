"""What the runs of an experiment say: summaries, paired gains, and a verdict beside every number of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everynode.experiments.experiment import Cell, Experiment, Over
from everynode.experiments.run_spec import Run
from everynode.experiments.statistics import Paired, Summary, compare_paired, holm, summarise
from everynode.objective_names import has_only_paper_terms, remark

#: Less than this is no difference: 100 * 0.811 is a little more than 81.1.
ROUNDING = 1e-9
#: Below this, a corrected p-value is called significant.
SIGNIFICANT = 0.05
#: With fewer runs an interval is so wide that it holds almost any number of the paper. Of folds all are needed: its means are of all ten.
ENOUGH = 5


@dataclass(frozen=True)
class CellOutcome:
    """One number of a table or figure, and where it comes from. Accuracies and their differences are in percent."""

    cell: Cell
    #: How many runs it should have, how many it must have to be judged, and whether those that it has are the first of these.
    planned: int
    needed: int
    in_order: bool
    #: The keys of the runs that it has, in order; those that diverged are among them.
    keys: tuple[str, ...]
    values: tuple[float, ...]
    #: How many of the runs diverged and have no value.
    diverged: int
    summary: Summary | None
    #: Over the best *test* epochs, on these very seeds or folds: what selection by test would have shown. A diagnostic, not a result.
    oracle: Summary | None
    #: Against the cell's ``against``, over the runs that both have.
    gain: Paired | None
    #: The gain's p-value after Holm's correction over the whole experiment, what has not been run included; None if it cannot be judged.
    p_holm: float | None
    #: What its objective's name does not say of its terms: see :func:`everynode.objective_names.remark`.
    remark: str = ""
    #: Whether its objective is that of the paper's row: not if it has no term, and then is cross-entropy's, or one that the paper has not.
    comparable: bool = True
    #: What the paper's numbers say of the gain; None where it has not both.
    published_gain: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all planned runs are there."""
        return len(self.keys) == self.planned

    @property
    def judged(self) -> bool:
        """Whether there are runs enough, the first of the plan and none diverged, to say how it compares."""
        return self.in_order and not self.diverged and len(self.values) >= self.needed

    @property
    def on_these(self) -> Summary | None:
        """The summary on these very seeds or folds. The paper's mean is of the same ten folds, so its verdict is by this interval, which is
        not widened for what other folds would have given, as that of ``summary`` is.
        """
        return summarise(self.values) if self.values else None

    @property
    def verdict(self) -> str:
        """Beside the paper's number: ``reproduced`` (it lies in our interval), ``better by x``, ``short by x``; for counts, ``same``.

        Empty where there is nothing to compare: a cell of too few runs, or not of the first ones, or of which a run diverged; or another
        objective than the paper's. The paper's number counts as exact, which a mean of runs is not: were it one of ten seeds like ours, it
        would lie outside our interval in about one cell of seven by chance.
        """
        paper, found = self.cell.published, self.on_these
        if paper is None or found is None or self.cell.task == "time" or not self.comparable:
            return ""
        if self.cell.task == "describe":
            half = 0.005 if found.mean % 1 else 0.0  # as the paper rounds homophily
            digits = 0 if float(paper).is_integer() else 2
            return (
                "same"
                if abs(found.mean - paper) <= half + ROUNDING
                else f"differs by {found.mean - paper:+,.{digits}f}"
            )
        if not self.judged:
            return ""
        if found.low > paper + ROUNDING:
            return f"better by {found.mean - paper:.1f}"
        return (
            f"short by {paper - found.mean:.1f}" if found.high < paper - ROUNDING else "reproduced"
        )

    @property
    def significant(self) -> bool:
        """Whether the gain is: it has a star."""
        return self.p_holm is not None and self.p_holm < SIGNIFICANT

    @property
    def short_at_any_epoch(self) -> bool:
        """Whether the verdict would be ``short`` even if of every run's epochs that were trained the best on test nodes were chosen."""
        paper, best = self.cell.published, self.oracle
        return (
            self.verdict.startswith("short")
            and paper is not None
            and best is not None
            and best.high < paper - ROUNDING
        )


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

    @property
    def each(self) -> int:
        """How many runs a cell should have; those for which the preset has no settings have none."""
        return max(
            (cell.planned for cell in self.cells if cell.planned), default=self.experiment.count
        )

    def panels(self) -> dict[str, list[CellOutcome]]:
        """The cells of each table or plot."""
        found: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            found.setdefault(cell.cell.panel, []).append(cell)
        return found


def conclude(
    experiment: Experiment,
    preset: str,
    plan: Mapping[Cell, Sequence[Run]],
    records: Mapping[str, dict[str, Any]],
) -> Outcome:
    """What the records (by key) say about the cells of the plan."""
    made = [_outcome(experiment, cell, runs, records) for cell, runs in plan.items()]
    by_place = {
        (m.cell.panel, m.cell.row, m.cell.column): (m, runs)
        for m, runs in zip(made, plan.values(), strict=True)
    }
    p_values: dict[int, float] = {}
    for index, (outcome, runs) in enumerate(zip(made, plan.values(), strict=True)):
        if outcome.cell.against is None:
            continue
        other, others = by_place[outcome.cell.panel, outcome.cell.against, outcome.cell.column]
        if not runs or not others or [run.key for run in runs] == [run.key for run in others]:
            continue  # for one of them the preset has no settings, or they are the same runs: see Cell.runs
        gain = _gain(experiment.over, outcome.cell, runs, others, records)
        made[index] = replace(
            outcome,
            gain=gain,
            published_gain=_published_gain(outcome, other) if experiment.of_the_paper else None,
        )
        whole = all(one.judged and len(one.values) >= experiment.count for one in (outcome, other))
        told = gain is not None and whole and not math.isnan(gain.p_value)
        p_values[index] = gain.p_value if gain is not None and told else math.nan
    # A star that is given is not taken back when more cells have been run, since what cannot be judged yet counts as a test all the same;
    # and it is of as many runs as are declared, not of the first five, where one would look until it shines.
    corrected = holm([1.0 if math.isnan(p_value) else p_value for p_value in p_values.values()])
    for (index, p_value), p_holm in zip(p_values.items(), corrected, strict=True):
        made[index] = replace(made[index], p_holm=None if math.isnan(p_value) else p_holm)
    return Outcome(experiment, preset, tuple(made))


def _outcome(
    experiment: Experiment, cell: Cell, runs: Sequence[Run], records: Mapping[str, dict[str, Any]]
) -> CellOutcome:
    there = [records[run.key] for run in runs if run.key in records]
    fine = [record for record in there if "error" not in record]
    keys = tuple(record["key"] for record in there)
    note = remark(runs[0].settings, cell.objective) if runs else ""
    comparable = note != "no term" and (not runs or has_only_paper_terms(runs[0].settings))
    needed = experiment.count if experiment.over == "folds" else ENOUGH
    values = (
        tuple(value(record, cell.metric) for record in fine) if cell.metric != "positions" else ()
    )  # of a picture
    summary = summarise(values, test_share=test_share(experiment.over, fine)) if values else None
    oracles = [
        100 * record["test_oracle_accuracy"]
        for record in fine
        if record.get("test_oracle_accuracy") is not None
    ]
    oracle = summarise(oracles) if oracles and cell.metric == "test_accuracy" else None
    # Else those that are there may be the ones that ended soonest, which may have to do with what they got.
    in_order = [run.key for run in runs[: len(there)]] == list(keys)
    return CellOutcome(
        cell, planned=len(runs), needed=needed, in_order=in_order, keys=keys, values=values, diverged=len(there) - len(fine),
        summary=summary, oracle=oracle, gain=None, p_holm=None, remark=note, comparable=comparable,
    )  # fmt: skip


def _published_gain(one: CellOutcome, other: CellOutcome) -> float | None:
    """The difference of the paper's numbers."""
    a, b = one.cell.published, other.cell.published
    return None if a is None or b is None else a - b


def _gain(
    over: Over,
    cell: Cell,
    runs: Sequence[Run],
    others: Sequence[Run],
    records: Mapping[str, dict[str, Any]],
) -> Paired | None:
    pairs = [(records.get(a.key), records.get(b.key)) for a, b in zip(runs, others, strict=True)]
    both = [
        (a, b)
        for a, b in pairs
        if a is not None and b is not None and "error" not in a and "error" not in b
    ]
    if not both:
        return None
    share = test_share(over, [a for a, _ in both])
    return compare_paired(
        [value(a, cell.metric) for a, _ in both],
        [value(b, cell.metric) for _, b in both],
        test_share=share,
    )


def test_share(over: Over, records: Sequence[dict[str, Any]]) -> float | None:
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
