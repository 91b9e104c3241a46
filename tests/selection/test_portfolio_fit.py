"""The portfolio behind NodeClassifier."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from everynode import NodeClassifier
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio, fold_count
from everynode.training.memory_plan import MemoryPlan

SMALL = {"epochs": 10, "hidden_channels": 8}
QUICK = {"effort": "quick", "settings": SMALL, "verbose": False}


@pytest.fixture(scope="module")
def graph():
    return generate(150, 500, 8, 3, seed=0)


@pytest.fixture(scope="module")
def model(graph):
    return NodeClassifier(**QUICK).fit(graph)


def test_the_default_is_a_portfolio(model, graph):
    assert NodeClassifier().effort == "standard"
    assert len(model.leaderboard_) >= 3
    assert model.objective_ == model.ensemble_.members[0].candidate.name
    assert model.predict_proba(graph).sum(1) == pytest.approx(np.ones(150))
    assert "the features alone" in str(model.graph_gain_)
    assert len(model.networks_) == len(model.ensemble_.results)
    assert str(model.leaderboard_).startswith("candidate")


@pytest.mark.parametrize(
    "named", [{"backbone": "gcn"}, {"objective": "ce"}, {"settings": SMALL | {"backbone": "gat"}}]
)
def test_a_named_model_or_objective_is_trained_alone(graph, named):
    alone = NodeClassifier(**{"settings": SMALL, "verbose": False} | named).fit(graph)
    assert alone.leaderboard_ is None
    assert alone.ensemble_ is None
    assert len(alone.networks_) == 1


def test_the_validation_nodes_of_the_graph_choose(model, graph):
    assert torch.equal(model.held_out_.nodes, graph.nodes("val"))
    assert {row.folds for row in model.leaderboard_} == {1}


def test_without_validation_nodes_every_label_teaches_and_judges(graph):
    bare = graph.with_splits([])
    model = NodeClassifier(**QUICK).fit(bare)
    assert sorted(model.held_out_.nodes.tolist()) == (bare.labels >= 0).nonzero()[:, 0].tolist()
    assert max(row.folds for row in model.leaderboard_) == 3
    assert model.num_folds_ == 3


def test_the_number_of_folds_goes_by_labels_and_effort(graph):
    assert fold_count(graph.with_splits([]), 0, "quick") == 3
    assert fold_count(generate(400, 500, 4, 2).with_splits([]), 0, "quick") == 2
    assert fold_count(graph.with_splits([]), 0, "standard") == 5
    assert fold_count(generate(30, 60, 4, 3).with_splits([]), 0, "standard") == 5


def test_the_same_seed_gives_the_same_probabilities(model, graph):
    again = NodeClassifier(**QUICK).fit(graph)
    assert np.array_equal(again.predict_proba(graph), model.predict_proba(graph))
    other = NodeClassifier(**QUICK, random_state=1).fit(graph)
    assert str(again.leaderboard_.to_pandas().drop(columns="seconds")) == str(
        model.leaderboard_.to_pandas().drop(columns="seconds")
    )
    losses = [sorted(row.log_loss for row in m.leaderboard_) for m in (model, other)]
    assert losses[0] != losses[1]


def test_saved_and_loaded_it_is_the_same_model(model, graph, tmp_path):
    model.save(tmp_path / "m")
    again = NodeClassifier.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(graph), model.predict_proba(graph))
    assert str(again.leaderboard_) == str(model.leaderboard_)
    assert str(again.graph_gain_) == str(model.graph_gain_)
    assert again.objective_ == model.objective_
    card = json.loads((tmp_path / "m" / "model.json").read_text())
    assert card["members"] == len(model.ensemble_.members)
    again.save(tmp_path / "again")  # a loaded model can be saved
    assert NodeClassifier.load(tmp_path / "again").score(graph) == model.score(graph)


def test_a_checkpoint_continues_and_gives_the_same(graph, tmp_path, model):
    NodeClassifier(**QUICK).fit(graph, checkpoint=tmp_path)
    files = list(tmp_path.glob("*.safetensors"))
    assert len(files) >= len(model.leaderboard_)
    files[0].unlink()
    again = NodeClassifier(**QUICK).fit(graph, checkpoint=tmp_path)
    assert np.array_equal(again.predict_proba(graph), model.predict_proba(graph))


def test_calibration_keeps_the_classes(graph, model):
    assert model.temperature_ != 1.0
    plain = model.log_probabilities(graph).argmax(1).numpy()
    assert np.array_equal(model.predict(graph), model.classes_[plain])


def test_bad_options_are_refused(graph):
    with pytest.raises(UsageError, match="Unknown effort"):
        NodeClassifier(effort="huge").fit(graph)
    with pytest.raises(UsageError, match="time limit"):
        NodeClassifier(time_limit="soon").fit(graph)


def test_the_first_network_carries_the_time_of_all(graph):
    options = PortfolioOptions("quick", cv=2)
    changes = {"epochs": 3, "hidden_channels": 4}
    fitted = fit_portfolio(graph.with_splits([]), options, changes=changes, verbose=False)
    assert fitted.results[0].seconds == fitted.race.seconds
    assert [len(split.val) for split in fitted.graph.splits] == [75, 75, 0]


def test_on_sampled_subgraphs_every_candidate_takes_part(graph):
    """Networks are sampled; the others take the full graph, which fits here."""
    options = PortfolioOptions("quick", "5m", plan=MemoryPlan(Batches(32), free_mb=1e6))
    fitted = fit_portfolio(graph, options, changes=SMALL, verbose=False)
    board = {row.candidate: row for row in fitted.selection.leaderboard}
    assert all(row.folds for row in board.values())
    batches = {
        name: {results[0].card["batches"] is None for _ in results}
        for name, results in fitted.race.results.items()
    }
    sampled = {name for name, whole in batches.items() if whole == {False}}
    assert sampled == {name for name in board if name.startswith(("gcn", "sage", "mlp"))}


def test_what_the_memory_does_not_hold_is_left_out_with_the_reason(graph, monkeypatch):
    monkeypatch.setattr(
        "everynode.training.memory_plan.training_mb",
        lambda graph, settings, batches=None: 9000 if settings.backbone == "gprgnn" else 1,
    )
    options = PortfolioOptions("quick", "5m", plan=MemoryPlan(Batches(32), free_mb=4000))
    fitted = fit_portfolio(graph, options, changes=SMALL, verbose=False)
    out = {r.candidate: r.outcome for r in fitted.selection.leaderboard if not r.folds}
    assert out
    for name, reason in out.items():
        assert name.startswith("gprgnn")
        assert reason == (
            "left out: needs the full graph and about 9.0 GB of memory; 4.0 GB are free"
        )
