"""What the graph adds to the features."""

import json

import numpy as np
import pytest

from everynode.selection.graph_gain import GraphGain, paired_difference


def test_the_interval_holds_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(1000):
        right = rng.random(40) < 0.8
        other = np.where(rng.random(40) < 0.7, right, rng.random(40) < 0.8)
        score = paired_difference(right, other)
        inside += score.low <= 0.0 <= score.high
    assert inside >= 930


def test_equal_answers_still_have_an_interval():
    score = paired_difference(np.ones(20, bool), np.ones(20, bool))
    assert score.value == 0
    assert score.low < 0 < score.high


def test_the_sentence_names_both_directions_and_json_keeps_it():
    both, alone = np.arange(100) < 90, np.arange(100) < 60
    gain = GraphGain.of(
        {"both": both, "features": alone, "graph": both},
        {"both": "gcn", "features": "mlp"},
        np.arange(100) // 50,
    )
    text = str(gain)
    assert text.startswith("The graph adds 30.0 points of accuracy to the features alone (95% ")
    assert "the features add no measurable accuracy to the graph alone (+0.0 points, 95%" in text
    values = json.loads(json.dumps(gain.to_dict()))
    assert values["sentence"] == text
    assert gain.balanced_accuracy["features"].value == pytest.approx((1 + 0.2) / 2)
    assert GraphGain.from_dict(values) == gain


def test_a_graph_that_hurts_is_said_to_cost():
    worse, alone = np.arange(100) < 60, np.arange(100) < 90
    gain = GraphGain.of({"both": worse, "features": alone}, {}, np.zeros(100, int))
    assert "the graph costs 30.0 points" in str(gain).lower()


@pytest.mark.parametrize("kinds", [{}, {"features": np.ones(3, bool)}])
def test_nothing_to_compare_is_no_sentence(kinds):
    assert str(GraphGain.of(kinds, {}, np.zeros(3, int))) == ""
