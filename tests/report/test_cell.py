"""Digits and intervals of a cell."""

from __future__ import annotations

import re

from everynode.experiments.experiment import experiments
from everynode.report.page import page


def test_counts_have_no_decimals_where_only_the_paper_has_them(text, sections):
    """The row of a graph that is not here read "paper 169,343.00"."""
    graphs = sections(text)["datasets"]
    assert "paper 169,343" in graphs
    assert "169,343." not in graphs


def test_the_papers_numbers_have_the_decimals_that_it_prints(text, sections):
    """78.20 among 77.08 and 88.13 was 78.2, and 81.1 among milliseconds 81.10."""
    found = sections(text)
    assert "paper 78.20" in found["homophilic"]
    assert "paper 86.0" in found["semi-supervised"]
    assert "paper 81.1<" in found["run-times"]
    assert "paper 12.58" in found["run-times"]
    assert not re.search(r"paper \d\d\.\d\b[^.\d]", found["heterophilic"])


def test_no_interval_of_accuracies_is_wider_than_there_are(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *_ = plans[semi].items()
    two = make_up(runs[:2])
    records = two.records
    for record, accuracy in zip(records.values(), (0.1, 0.9), strict=True):
        record["test_accuracy"] = accuracy
    assert "0.0 to 100.0" in page({semi: {cell: runs[:2]}}, "paper", records, two.curve)[0]
