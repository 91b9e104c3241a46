"""Compare an objective with plain cross-entropy: same model, optimizer, seeds and folds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from everynode.errors import EverynodeError, UsageError
from everynode.experiments.analysis import test_share
from everynode.experiments.experiment import Over
from everynode.experiments.statistics import Paired, Summary, compare_paired, summarize
from everynode.objective_names import objective_name

BASELINE = "ce"
#: The default number of seeds of a comparison.
SEEDS = 10


@dataclass(frozen=True)
class Comparison:
    """The records of both objectives over the same seeds or folds, and their summary.

    Parameters
    ----------
    records : list of dict
        The records.
    over : str
        ``seeds`` or ``folds``: what differs between the runs.
    diverged : int
        Seeds or folds that were left out because a run diverged.
    test, val : dict of str to Summary
        Test and validation accuracy by objective.
    gain : Paired
        Test accuracy of the objective minus that of cross-entropy.
    """

    records: list[dict[str, Any]]
    over: Over
    diverged: int
    test: dict[str, Summary]
    val: dict[str, Summary]
    gain: Paired

    @property
    def unit(self) -> str:
        """The name of one pair of runs: ``seed`` or ``fold``."""
        return self.over.removesuffix("s")

    def seconds(self, objective: str) -> float | None:
        """Return the mean time of a run; None if no record has one, as after an import."""
        times = [
            record["seconds"]
            for record in self.records
            if record["objective"] == objective and record.get("seconds") is not None
        ]
        return sum(times) / len(times) if times else None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        return {
            "runs": self.records,
            "diverged": self.diverged,
            "summary": {
                "test_accuracy": {name: s.to_dict() for name, s in self.test.items()},
                "val_accuracy": {name: s.to_dict() for name, s in self.val.items()},
                "gain": self.gain.to_dict(),
            },
        }


def objectives_of(objective: str) -> tuple[str, str]:
    """Return cross-entropy and the objective that is compared with it.

    >>> objectives_of("tv+mi")
    ('ce', 'mi+tv')
    """
    name = objective_name(objective)
    if name == BASELINE:
        raise UsageError("Cross-entropy cannot be compared with itself: choose an --objective.")
    return BASELINE, name


def pairs_of(
    seeds: int | None, folds: int | None, fold: int | None, seed: int, available: int
) -> tuple[Over, list[tuple[int, int]]]:
    """Return ``seeds`` or ``folds``, and the fold and seed of each pair of runs.

    Parameters
    ----------
    seeds, fold : int, optional
        Number of seeds, and the fold they are run on.
    folds : int, optional
        Instead of several seeds: one seed on each of the first folds.
    seed : int
        The first seed.
    available : int
        Number of folds of the split.

    Examples
    --------
    >>> pairs_of(2, None, None, 5, 1), pairs_of(None, 2, None, 0, 10)
    (('seeds', [(0, 5), (0, 6)]), ('folds', [(0, 0), (1, 0)]))
    """
    if any(number is not None and number < 1 for number in (seeds, folds)):
        raise UsageError("--seeds and --folds must be at least 1.")
    if folds is None:
        return "seeds", [(fold or 0, seed + i) for i in range(seeds or SEEDS)]
    if (seeds, fold) != (None, None):
        raise UsageError("--folds runs one seed on each fold: leave out --seeds and --fold.")
    if folds > available:
        raise UsageError(
            f"The split has {available} fold(s), not {folds}: choose fewer --folds, "
            "or another --split."
        )
    return "folds", [(i, seed) for i in range(folds)]


def compare_records(
    records: Sequence[dict[str, Any]], objective: str, *, over: Over = "seeds"
) -> Comparison:
    """Summarize the records of both objectives over the pairs without a diverged run.

    If a run diverged there is no p-value, since the remaining pairs are not a random sample.
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
        over,
        len(places) - len(pairs),
        {name: summarize(test[name], test_share=share) for name in names},
        {name: summarize(val[name], test_share=share) for name in names},
        gain if len(pairs) == len(places) else replace(gain, p_value=math.nan),
    )
