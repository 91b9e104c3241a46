"""ENC against plain cross-entropy: the same network, optimiser, seeds and folds; only the objective differs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from everynode.errors import EverynodeError
from everynode.experiments.analysis import test_share
from everynode.experiments.experiment import Over
from everynode.experiments.statistics import Paired, Summary, compare_paired, summarise

BASELINE = "ce"


@dataclass(frozen=True)
class Comparison:
    """The records of both objectives over the same seeds or folds, and what they say."""

    records: list[dict[str, Any]]
    #: How many seeds or folds were left out because a run of theirs diverged.
    diverged: int
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
            "diverged": self.diverged,
            "summary": {
                "test_accuracy": {name: s.to_dict() for name, s in self.test.items()},
                "val_accuracy": {name: s.to_dict() for name, s in self.val.items()},
                "gain": self.gain.to_dict(),
            },
        }


def conclude(
    records: Sequence[dict[str, Any]], objective: str, *, over: Over = "seeds"
) -> Comparison:
    """Summaries and the paired gain over the seeds, or the folds, of which neither run diverged.

    If one did, there is no p-value: what is left was not chosen at random.
    """
    places: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
    for record in records:
        places.setdefault((record["fold"], record["seed"]), {})[record["objective"]] = record
    pairs = [
        places[place]
        for place in sorted(places)
        if not any("error" in record for record in places[place].values())
    ]
    if not pairs:
        raise EverynodeError(next(record["error"] for record in records if "error" in record))
    share = test_share(over, [pair[objective] for pair in pairs])
    names = (BASELINE, objective)
    test, val = (
        {name: [pair[name][metric] for pair in pairs] for name in names}
        for metric in ("test_accuracy", "val_accuracy")
    )
    gain = compare_paired(test[objective], test[BASELINE], test_share=share)
    return Comparison(
        list(records),
        len(places) - len(pairs),
        {name: summarise(test[name], test_share=share) for name in names},
        {name: summarise(val[name], test_share=share) for name in names},
        gain if len(pairs) == len(places) else replace(gain, p_value=math.nan),
    )
