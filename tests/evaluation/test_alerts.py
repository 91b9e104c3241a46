"""Alerts: each finding on generated files with known truth, and none on clean ones."""

from __future__ import annotations

import copy
import dataclasses
import json
import math

import numpy as np
import pytest

from everynode.evaluation.alerts import find_alerts
from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.intervals import Score
from everynode.selection.leaderboard import NO_TIME, Leaderboard, LeaderboardRow


def kinds(fit: FitSummary) -> list[str]:
    return [alert.kind for alert in find_alerts(fit)]


def test_a_clean_table_has_no_alert(fit_of):
    assert kinds(fit_of("clean")) == []


def test_a_leak_comes_first_and_names_the_flag(fit_of):
    fit = fit_of("leak")
    first = fit.alerts[0]
    assert (first.severity, first.kind) == ("error", "leak")
    assert "column 'stage' determines the label" in first.text
    assert "--features 'all,-stage'" in first.advice
    assert kinds(fit).count("drift") == 0  # the missing stage is not told twice
    stored = json.loads(json.dumps(fit.to_dict()))["alerts"]
    assert stored[0]["kind"] == "leak"


def test_a_rare_class_that_is_never_found_is_named_beside_the_majority(fit_of):
    fit = fit_of("rare")
    alerts = {alert.kind: alert for alert in fit.alerts}
    assert set(alerts) == {"majority", "class_never_found"}
    positives = int(fit.judged.labels.sum())
    assert f"yes (0 of {positives})" in alerts["class_never_found"].text
    share = 100 * (1 - fit.judged.labels.mean())
    assert f"always saying 'no' is right for {share:.1f}%" in alerts["majority"].text
    assert all("--monitor balanced_accuracy" in alert.advice for alert in alerts.values())


def test_a_column_of_numbers_of_the_edges_is_a_hint_behind_the_warnings(tables, summarize):
    nodes, edges = tables("rare")
    edges["calls made"] = np.random.default_rng(1).integers(1, 9, len(edges["source"]))
    alerts = summarize(nodes, edges).alerts
    assert [alert.severity for alert in alerts][-2:] == ["warning", "hint"]
    assert alerts[-1].text == "Column 'calls made' of the edges holds numbers and is not used."
    assert alerts[-1].advice.endswith("--weight 'calls made' uses it.")


def test_a_time_limit_that_leaves_out_most_candidates_is_told(fit_of):
    fit, nothing = fit_of("clean"), Score(math.nan, math.nan, math.nan)
    trained = LeaderboardRow(
        "logistic", "features", nothing, 1.0, 1.0, 1, 1, 1.0, "in the ensemble"
    )
    left_out = dataclasses.replace(trained, folds=0, weight=0.0, outcome=NO_TIME)
    model = copy.copy(fit.model)
    for rows, expected in (
        ((trained, left_out), []),
        ((trained, left_out, left_out), ["out_of_time"]),
    ):
        model.leaderboard_ = Leaderboard(rows)
        assert kinds(dataclasses.replace(fit, model=model)) == expected
    assert find_alerts(dataclasses.replace(fit, model=model))[0].text.startswith(
        "The time limit left 2 of 3 candidates untrained"
    )


def test_drift_names_the_column_that_differs(fit_of):
    (alert,) = fit_of("drift").alerts
    assert alert.kind == "drift"
    assert "Column 'age' differs most" in alert.text
    assert "--split" in alert.advice
    assert "--features 'all,-age'" in alert.advice


@pytest.mark.parametrize("unknown", ["drop", "add"])
def test_labeled_nodes_without_edges_and_unmatched_edges_are_counted(unknown, tables, summarize):
    """Three quarters of the edges are between other spellings of the ids."""
    nodes, edges = tables("clean")
    number = len(edges["source"])
    wrong = np.arange(number) % 4 > 0
    for end in ("source", "target"):
        edges[end] = [f"#{v}" if w else v for v, w in zip(edges[end], wrong, strict=True)]
    fit = summarize(nodes, edges, unknown=unknown)
    alerts = {alert.kind: alert for alert in fit.alerts}
    assert f"{int(wrong.sum()):,} of {number:,} edges" in alerts["unmatched_edges"].text
    assert "--id" in alerts["unmatched_edges"].advice
    joined = {v for end in edges.values() for v in end}
    labeled = [i for i, c in zip(nodes["id"], nodes["label"], strict=True) if c]
    alone = sum(i not in joined for i in labeled)
    if alone >= 0.2 * len(labeled):
        assert f"{alone} of {len(labeled)} labeled nodes" in alerts["isolated_labels"].text
    else:
        assert "isolated_labels" not in alerts


def test_labeled_nodes_that_are_all_isolated_are_an_alert(tables, summarize):
    nodes, edges = tables("clean")
    kept = [i for i, c in zip(nodes["id"], nodes["label"], strict=True) if not c]
    edges = {"source": kept[:-1], "target": kept[1:]}
    fit = summarize(nodes, edges)
    (alert,) = [alert for alert in fit.alerts if alert.kind == "isolated_labels"]
    count = len(nodes["id"]) - len(kept)
    assert f"{count} of {count} labeled nodes have no edge" in alert.text
    assert "--id" in alert.advice
