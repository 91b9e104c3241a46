"""The settings of NodeClassifier; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import pytest

from everynode import NodeClassifier, Settings
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.estimator_settings import (
    candidate_settings,
    check_parameters,
    settings_changes,
    shares_patience,
    uses_portfolio,
)


def test_parameters_take_precedence_over_settings():
    model = NodeClassifier(monitor="loss", settings={"monitor": "auc", "epochs": 3})
    assert settings_changes(model) == {"monitor": "loss", "epochs": 3}
    assert settings_changes(NodeClassifier("gat"))["backbone"] == "gat"


def test_a_choice_of_model_ends_the_portfolio():
    assert uses_portfolio(NodeClassifier(settings={"epochs": 3}))
    for chosen in ({"backbone": "gcn"}, {"objective": "ce"}, {"settings": Settings()}):
        assert not uses_portfolio(NodeClassifier(**chosen))


def test_candidates_of_an_objective():
    graph = generate(20, 30, 4, 2)
    assert set(candidate_settings(NodeClassifier("gcn", "tv"), graph)) == {"tv"}
    assert len(candidate_settings(NodeClassifier("gcn"), graph)) == 4


def test_only_default_candidates_share_the_patience():
    assert shares_patience(NodeClassifier("gcn"))
    assert not shares_patience(NodeClassifier("gcn", settings={"patience": 9}))
    assert not shares_patience(NodeClassifier("gcn", "ce"))


def test_a_wrong_cv_is_refused():
    check_parameters(NodeClassifier(cv=0.3))
    with pytest.raises(UsageError, match="number of folds >= 2"):
        check_parameters(NodeClassifier(cv=1))
