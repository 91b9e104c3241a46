"""The guide explains the signs that occur."""

from __future__ import annotations

from everynode.experiments.experiment import experiments
from everynode.report.page import page


def test_only_signs_that_occur_are_explained(text, plans, make_up):
    assert "<dt>7 of 10 runs" in text
    assert "<dt>with consistency" not in text
    semi = experiments()["semi-supervised"]
    whole = make_up(run for runs in plans[semi].values() for run in runs)
    made = page({semi: plans[semi]}, "paper", whole.records, whole.curve)[0]
    assert "<dt>7 of 10 runs" not in made
    assert "<dt>diverged" not in made
