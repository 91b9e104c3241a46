"""What did the one-standard-error rule change on the ten folds?

    python benchmarks/one_standard_error.py STUDIES STORE

Compares ENC's choice by the highest mean validation accuracy with the choice by the rule. STUDIES is the folder of the last studies (the
``--out`` of `everynode tune`). STORE has the runs of `reproduce --preset tuned`, including those of the dropped choices. Nothing is
trained. Writes results/one-standard-error.json.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from common import write
from everynode.experiments.statistics import compare_paired
from everynode.experiments.store import Store
from everynode.selection.study_storage import Trials, rank
from everynode.selection.tuned_presets import studies
from everynode.settings import TERMS, Settings


def tests(records: list[dict[str, Any]], study: Any, settings: Settings) -> dict[int, float]:
    """Return the test accuracy by fold of the runs with these settings.

    Without CVG, ``cvg_every`` does not matter.
    """
    wanted = dataclasses.asdict(
        settings if settings.cvg else dataclasses.replace(settings, cvg_every=1)
    )
    found = {}
    for record in records:
        there = (
            record["settings"]
            if record["settings"]["cvg"]
            else record["settings"] | {"cvg_every": 1}
        )
        same = (record["dataset"], record["split"], record["seed"]) == (
            study.dataset,
            study.split,
            0,
        )
        if same and {name: wanted[name] for name in there} == there:
            found[record["fold"]] = record["test_accuracy"]
    return found


def row(journal: Trials, cross_entropy: Trials, records: list[dict[str, Any]]) -> dict[str, Any]:
    study, chosen, ce = journal.study, journal.best(), cross_entropy.best()
    highest = max(
        (trial for trial in journal.ended() if trial.state == TrialState.COMPLETE), key=rank
    )
    assert chosen is not None
    assert ce is not None
    settings = study.settings(highest.params)
    lead = [
        a - b
        for a, b in zip(
            highest.user_attrs["accuracies"], chosen.user_attrs["accuracies"], strict=True
        )
    ]
    made = {
        "graph": study.dataset,
        "backbone": study.backbone,
        "folds_of_the_study": study.count,
        "highest": {term: getattr(settings, term) for term in TERMS[:3]},
        "chosen": {term: getattr(study.settings(chosen.params), term) for term in TERMS[:3]},
        "lead_on_validation": statistics.mean(lead),
        "standard_error": statistics.stdev(lead) / len(lead) ** 0.5,
    }
    ours, theirs = (
        tests(records, study, settings),
        tests(records, study, cross_entropy.study.settings(ce.params)),
    )
    folds = sorted(ours.keys() & theirs.keys())
    if any(made["highest"].values()):
        made["settings_of_the_highest"] = dataclasses.asdict(settings)
        gain = compare_paired([ours[f] for f in folds], [theirs[f] for f in folds])
        made |= {"folds": len(folds), "test_gain_of_the_highest": gain.mean}
    return made


def main() -> None:
    every = {
        (j.study.dataset, j.study.backbone, j.study.objective): j
        for j in studies(sys.argv[1])
        if j.study.over == "folds"
    }
    records = [
        record
        for record in Store(Path(sys.argv[2]), must_exist=True).records().values()
        if "test_accuracy" in record
    ]
    rows = [
        row(j, every[graph, backbone, "ce"], records)
        for (graph, backbone, objective), j in every.items()
        if objective == "enc"
    ]
    for r in rows:
        print(r)
    write("one-standard-error", {"rows": rows})


if __name__ == "__main__":
    main()
