"""ENC against plain cross-entropy: the same network, optimiser, seeds and folds; only the objective differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from everynode.experiments.statistics import Paired, Summary, compare_paired, summarise

BASELINE = "ce"


@dataclass(frozen=True)
class Comparison:
    """The records of both objectives over the same seeds or folds, and what they say."""

    records: list[dict[str, Any]]
    #: Objective to the summary of its test accuracy.
    test: dict[str, Summary]
    #: Objective to the summary of its validation accuracy.
    val: dict[str, Summary]
    #: Test accuracy of the objective minus that of cross-entropy, paired.
    gain: Paired

    def to_dict(self) -> dict[str, Any]:
        """As ``compare --json`` prints it."""
        return {
            "runs": self.records,
            "summary": {
                "test_accuracy": {name: s.to_dict() for name, s in self.test.items()},
                "val_accuracy": {name: s.to_dict() for name, s in self.val.items()},
                "gain": self.gain.to_dict(),
            },
        }


def conclude(records: Sequence[dict[str, Any]], objective: str, *, test_share: float | None = None) -> Comparison:
    """Summaries and the paired gain over the seeds, or over folds when ``test_share`` (test nodes / training nodes) is given."""

    def scores(name: str, metric: str) -> list[float]:
        chosen = sorted((r for r in records if r["objective"] == name), key=lambda r: (r["fold"], r["seed"]))
        return [r[metric] for r in chosen]

    names = (BASELINE, objective)
    return Comparison(
        list(records),
        {name: summarise(scores(name, "test_accuracy"), test_share=test_share) for name in names},
        {name: summarise(scores(name, "val_accuracy"), test_share=test_share) for name in names},
        compare_paired(scores(objective, "test_accuracy"), scores(BASELINE, "test_accuracy"), test_share=test_share),
    )
