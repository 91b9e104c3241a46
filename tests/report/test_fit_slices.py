"""The slices on the page of a fit, and the coverage of its sets."""

from __future__ import annotations

import dataclasses

import numpy as np

from everynode.report.fit_slices import coverage, slices
from everynode.report.text import percent


def test_every_slice_is_listed_with_its_share(fit):
    text = slices(fit)
    assert {one.by for one in fit.slices} == {"degree", "component", "class size"}
    for one in fit.slices:
        assert f"{one.by} {one.name}" in text
        assert percent(one.score.value) in text
    assert sum(one.nodes for one in fit.slices if one.by == "degree") == len(fit.judged.nodes)


def test_a_low_slice_is_named_first(fit):
    names = np.where(fit.judged.answers()[0] == fit.judged.answers()[1], "good", "bad <x>")
    other = dataclasses.replace(fit)
    other.__dict__["groups"] = {"town": names.tolist()}
    if (names == "good").sum() > 5 and (names != "good").sum() > 2:
        assert "by more than chance: town bad &lt;x&gt; (0.0%)" in slices(other)
    other = dataclasses.replace(fit)
    other.__dict__["groups"] = {"town": ["all"] * len(names)}
    assert "No slice is below" in slices(other)


def test_coverage_is_shown_for_test_nodes_with_sets(fit):
    assert coverage(fit) is None
    k = len(fit.predictions.classes)
    sets = np.ones((fit.graph.num_nodes, k), dtype=bool)
    sets[fit.judged.nodes[0]] = False
    found = dataclasses.replace(fit, predictions=dataclasses.replace(fit.predictions, sets=sets))
    n = len(fit.judged.nodes)
    assert round(found.coverage[0].score.value * n) == n - 1
    assert {one.by for one in found.coverage} == {"", "class", "degree"}
    assert percent(1 - 1 / n) in coverage(found)
