"""The headline: not to be trusted with a leak, beside the majority, and honest on rare classes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.headline import headline, rarest_class, weakest_class
from everynode.evaluation.intervals import Score
from everynode.io.assign_splits import assign_splits
from everynode.io.summary import Leak
from everynode.report.fit_head import first_screen
from everynode.report.fit_text import fit_lines


def test_a_clean_fit_stands_beside_the_majority(fit_of, monkeypatch):
    fit = fit_of("clean")
    accuracy, base = fit.judged_accuracy, fit.baselines[0]
    monkeypatch.setattr("everynode.evaluation.headline.FEW_NODES", len(fit.judged.nodes))
    (sentence,) = headline(fit)
    assert sentence.startswith(f"{100 * accuracy.value:.1f}% (95% interval")
    assert f"The baseline, {base.name}, is right for {100 * base.accuracy.value:.1f}%" in sentence


def test_few_test_nodes_give_a_count_and_the_validation_nodes_follow(fit_of):
    fit = fit_of("clean")
    nodes, score = len(fit.judged.nodes), fit.judged_accuracy
    more = dataclasses.replace(fit.parts["validation"], nodes=np.arange(nodes + 1))
    fit = dataclasses.replace(fit, parts={**fit.parts, "validation": more})
    first, second = headline(fit)
    assert first.startswith(f"{round(score.value * nodes)} of only {nodes} test nodes are right: ")
    assert f"{100 * score.low:.1f} to {100 * score.high:.1f}% (95% interval)" in first
    assert f"Of {nodes + 1} validation labels, " in second
    assert f"{100 * fit.quality['validation']['accuracy'].value:.1f}%" in second
    assert second.endswith("The model was chosen on these labels, so this figure may be too good.")


def test_a_leaking_fit_is_not_to_be_trusted_and_gives_the_number_without(fit_of):
    fit = fit_of("leak")
    first, second = headline(fit)
    assert first.startswith("Not to be trusted: label leakage in 'stage'. Without the column, ")
    assert f"{100 * fit.without_leaks.value:.1f}%" in first
    assert second.startswith("With it, ")
    assert "Expect" not in fit.caution
    assert fit.to_dict()["headline"] == [first, second]


def test_a_rare_class_is_in_the_headline_with_the_metric_to_choose(fit_of):
    fit = fit_of("rare")
    _, second = headline(fit)
    assert f"0 of {rarest_class(fit).true} nodes of class yes are found" in second
    assert "the balanced accuracy is 50.0%" in second
    assert "--monitor balanced_accuracy" not in second  # the alerts say it
    fit.__dict__["alerts"] = ()
    assert "--monitor balanced_accuracy" in headline(fit)[1]
    del fit.__dict__["alerts"]
    assert weakest_class(fit).name == "yes"


def test_a_metric_of_the_classes_leads_and_the_accuracy_follows(tables):
    graph, notes = assign_splits(en.read(*tables("rare")), seed=0)
    quick = {"epochs": 30, "hidden_channels": 8, "monitor": "balanced_accuracy"}
    model = NodeClassifier(objective="ce", settings=quick, verbose=False).fit(graph)
    fit = FitSummary.of(model, graph, notes)
    first, second, third, *_ = headline(fit)
    rare, score = rarest_class(fit), fit.quality["test"]["balanced_accuracy"]
    assert first.startswith(f"The balanced accuracy is {100 * score.value:.1f}% (95% interval ")
    assert first.endswith(f"on {len(fit.judged.nodes)} test nodes. Guessing has 50.0%.")
    assert second == f"Of {rare.true} nodes of class yes, {rare.right} are found."
    assert "The baseline, always 'no', is right for" in third
    summary = fit.to_dict()
    assert summary["baselines"][0]["balanced_accuracy"][0] == 0.5
    lines = list(fit_lines(summary, Path("out")))
    assert any("always 'no': balanced accuracy 50.0, 95% interval" in line for line in lines)
    page = first_screen(fit)
    assert ">balanced accuracy<" in page
    assert ">50.0%<" in page


def test_a_leak_gets_no_advice_on_the_metric(fit_of):
    fit = dataclasses.replace(fit_of("rare"))
    fit.__dict__["alerts"] = ()
    summary = dataclasses.replace(fit.graph.summary, leaks=(Leak("x", "determines"),))
    fit = dataclasses.replace(fit, graph=dataclasses.replace(fit.graph, summary=summary))
    fit.__dict__.update(alerts=(), without_leaks=Score(0.9, 0.8, 0.95))
    assert "of class yes are found" in headline(fit)[-1]
    assert "--monitor" not in headline(fit)[-1]
