"""The settings of NodeClassifier; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from everynode import NodeClassifier, Settings, Term
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.estimator_settings import Choices, check_parameters, memory_plan, portfolio_options
from everynode.selection.candidate import Effort
from everynode.training import memory_plan as memory_plan_module


class Spread(Term):
    """A term of the user."""

    name = "spread"

    def forward(self, logits, sample):
        return sample.mean_over_nodes(logits.pow(2).sum(1))


def test_parameters_take_precedence_over_settings():
    model = NodeClassifier(class_weight="balanced", settings={"class_weight": {0: 2}, "epochs": 3})
    assert Choices.of(model).changes == {"class_weight": "balanced", "epochs": 3}
    assert Choices.of(NodeClassifier("gat")).changes["backbone"] == "gat"


def test_a_choice_of_model_ends_the_portfolio():
    assert Choices.of(NodeClassifier(settings={"epochs": 3, "n_estimators": 2})).is_portfolio
    for chosen in (
        {"backbone": "gcn"}, {"objective": "ce"}, {"settings": Settings()}, {"settings": "paper"},
        {"objective": ["auto", Spread(0.2)]},
    ):  # fmt: skip
        assert not Choices.of(NodeClassifier(**chosen)).is_portfolio


@pytest.mark.parametrize("preset", ["tuned", Path("best.toml")])
def test_a_preset_is_named_by_a_text_a_path_or_a_key(preset):
    for settings in (preset, {"preset": preset, "epochs": 3}):
        choices = Choices.of(NodeClassifier(settings=settings))
        assert choices.options.preset == str(preset)
        assert "preset" not in choices.changes


def test_the_preset_gives_the_other_settings():
    graph = generate(20, 30, 4, 2)
    model = NodeClassifier("gcn", "ce", settings={"preset": "paper", "epochs": 3})
    settings = Choices.of(model).candidates(dataclasses.replace(graph, name="cora"))["ce"]
    assert settings == Settings.preset(
        "paper", graph="cora", split="public", backbone="gcn", objective="ce", epochs=3
    ).for_objective("ce")
    with pytest.raises(UsageError, match="Unknown preset 'papre'"):
        Choices.of(NodeClassifier("gcn", settings="papre")).candidates(graph)


def test_the_number_of_networks_is_a_setting():
    model = NodeClassifier(settings={"n_estimators": 4})
    assert portfolio_options(model, None, ()).networks == 4
    with pytest.raises(UsageError, match=r"'n_estimators' of NodeClassifier must be >= 1\. Got 0"):
        Choices.of(NodeClassifier(settings={"n_estimators": 0}))


def test_candidates_of_an_objective():
    graph = generate(20, 30, 4, 2)
    assert set(Choices.of(NodeClassifier("gcn", "tv")).candidates(graph)) == {"tv"}
    assert len(Choices.of(NodeClassifier("gcn")).candidates(graph)) == 4


@pytest.mark.parametrize(
    ("objective", "candidates"),
    [
        (["mi", "tv"], {"mi+tv": {}}),
        (["mi", Spread(0.2)], {"mi+spread": {"spread": 0.2}}),
        ([Spread(0.2)], {"ce+spread": {"spread": 0.2}}),
        (["enc", Spread(0.2)], {"enc": {"spread": 0.2}}),
        (("auto", Spread(0.2)), {
            "ce": {}, "enc": {"spread": 0.2}, "light-ce": {}, "light-enc": {"spread": 0.2},
        }),
    ],
)  # fmt: skip
def test_an_objective_is_a_list_of_names_and_terms(objective, candidates):
    chosen = Choices.of(NodeClassifier("gcn", objective)).candidates(generate(20, 30, 4, 2))
    assert {name: dict(one.weights) for name, one in chosen.items()} == candidates


def test_scikit_learn_copies_and_shows_terms():
    model = NodeClassifier("gcn", ["mi", Spread(0.2)])
    copy = clone(model).set_params(backbone="gat")
    assert copy.objective[0] == "mi"
    assert copy.objective[1] is not model.objective[1]
    assert copy.objective[1].weight == 0.2
    assert repr(model) == "NodeClassifier(backbone='gcn', objective=['mi', Spread(weight=0.2)])"


def test_wrong_objectives_are_refused():
    for wrong in ([], Spread(0.2), 3, None):
        with pytest.raises(UsageError, match="'objective' of NodeClassifier must be a name, or"):
            Choices.of(NodeClassifier(objective=wrong))
    with pytest.raises(UsageError, match="Unknown objective 'auto'"):
        Choices.of(NodeClassifier(objective=["auto", "mi"])).candidates(generate(20, 30, 4, 2))


def test_only_default_candidates_share_the_patience():
    assert Choices.of(NodeClassifier("gcn")).shares_patience
    assert not Choices.of(NodeClassifier("gcn", settings={"patience": 9})).shares_patience
    assert not Choices.of(NodeClassifier("gcn", "ce")).shares_patience
    assert not Choices.of(NodeClassifier("gcn", settings="tuned")).shares_patience


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"effort": "fast"}, "Unknown effort 'fast'"),
        ({"time_limit": "10q"}, "The time limit must be a number of seconds"),
        ({"time_limit": -1}, "Got -1"),
        ({"cv": 1}, "number of folds >= 2"),
        ({"cv": True}, "number of folds >= 2"),
        ({"n_jobs": 0}, "'n_jobs' of NodeClassifier must be None or -1"),
        ({"n_jobs": "two"}, "or a whole number >= 1. Got 'two'"),
        ({"random_state": -1}, "'random_state' of NodeClassifier must be None, a whole"),
        ({"random_state": "a"}, "Got 'a'"),
        ({"verbose": "yes"}, "'verbose' of NodeClassifier must be None, True or False"),
    ],
)
def test_a_wrong_parameter_is_refused_by_any_fit(wrong, message):
    """Also one that this fit does not use, before the data are looked at."""
    with pytest.raises(UsageError, match=message):
        NodeClassifier("gcn", "ce", **wrong).fit(None)


def test_right_parameters_pass():
    for right in (
        {"cv": 0.3}, {"cv": np.int64(3)}, {"n_jobs": -1}, {"n_jobs": np.int64(2)},
        {"random_state": None}, {"random_state": np.random.RandomState(0)}, {"verbose": np.True_},
        {"time_limit": "10m"},
    ):  # fmt: skip
        check_parameters(NodeClassifier(**right))


def test_minus_one_job_is_one_per_core():
    graph = generate(40, 80, 4, 2)
    plans = [memory_plan(NodeClassifier("gcn", n_jobs=jobs), graph) for jobs in (None, -1)]
    first, second = (dataclasses.replace(plan, free_mb=0.0) for plan in plans)
    assert first == second
    assert portfolio_options(NodeClassifier(n_jobs=-1), None, ()).workers is None


def test_the_memory_plan_follows_the_batch_size(monkeypatch):
    """GCN of the quick portfolio is the largest; two gigabytes hold two of it, and 0.3 none."""
    graph = generate(30_000, 90_000, 64, 5)
    big = {"hidden_channels": 256}
    model = NodeClassifier(effort="quick", settings=big, n_jobs=8)
    for free, full, workers in ((100_000, True, {8}), (3_000, True, {2, 3}), (700, False, {1})):
        monkeypatch.setattr(memory_plan_module, "free_memory_mb", lambda free=free: float(free))
        plan = memory_plan(model, graph)
        assert (plan.batches is None) == full
        assert plan.workers in workers
        assert plan.fits
    assert memory_plan(model, graph, here=False).batches is None  # the memory of other machines
    assert memory_plan(model.set_params(batch_size=None), graph).batches is None
    assert memory_plan(model.set_params(batch_size=32), graph).batches == Batches(32)
    monkeypatch.setattr(memory_plan_module, "free_memory_mb", lambda: 100_000.0)
    single = NodeClassifier("sage", "ce", settings=big, n_jobs=8)
    assert memory_plan(single, graph).workers == 1  # one network, since there are validation nodes
    assert memory_plan(single, graph.with_splits([])).workers == 3


def test_the_docstring_has_the_time_limits_of_the_portfolio():
    limits = {name: Effort.named(name).time_limit for name in ("quick", "standard", "best")}
    assert limits == {"quick": 18, "standard": 600, "best": None}
    text = " ".join(NodeClassifier.__doc__.split())
    assert "None: 18 s for ``quick``, 10 min for ``standard``, none for ``best``" in text
