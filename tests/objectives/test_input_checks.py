"""What a loop passes to ENC: probabilities are a warning, another model is refused."""

from __future__ import annotations

import warnings

import pytest
import torch

import everynode as en
from everynode.datasets import generate
from everynode.objectives.input_checks import refuse_unrelated_model, warn_of_probabilities


@pytest.fixture
def graph():
    return generate(40, 80, 6, 3, seed=0)


def test_probabilities_are_a_warning_once(graph):
    model = torch.nn.Linear(6, 3)
    objective = en.ENC(graph)
    logits = model(graph.dense_features)
    with pytest.warns(UserWarning, match="logits look like probabilities"):
        objective(torch.softmax(logits, 1), model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective(torch.softmax(logits, 1), model)
        en.ENC(graph)(logits, model)
        warn_of_probabilities(torch.log_softmax(logits, 1))


def test_another_model_is_refused(graph):
    model, other = torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)
    with pytest.raises(en.UsageError, match=r"The model of ENC \(Linear\) did not give"):
        en.ENC(graph)(model(graph.dense_features), other)
    refuse_unrelated_model(model(graph.dense_features), torch.nn.Sequential(model, other))
    refuse_unrelated_model(model(graph.dense_features).detach(), other)


def test_the_default_weights_are_those_that_are_safe_on_other_graphs(graph):
    weights = en.ENC(graph).weights
    assert {name: weights[name] for name in ("mi", "tv", "cvg")} == {
        "mi": 0.3, "tv": 0.5, "cvg": 0.05,
    }  # fmt: skip
