"""Closed-form members learn from the labels of all folds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.models.logistic import Logistic
from everynode.selection.candidate import Candidate
from everynode.selection.closed_form_refit import (
    best_stage,
    mean_history,
    solve_on_all,
)
from everynode.selection.cross_validation import with_validation
from everynode.selection.portfolio import run_portfolio
from everynode.selection.portfolio_ensemble import PortfolioEnsemble, assemble
from everynode.selection.portfolio_fit import PortfolioOptions, fit_portfolio
from everynode.settings import Settings

SCORES = st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=5)
CLOSED, NEURAL = "logistic", "gcn"


@pytest.fixture(scope="module")
def bare():
    return generate(90, 300, 8, 3, seed=0).with_splits([])


@pytest.fixture
def race(bare):
    graph, folds = with_validation(bare, cv=3)
    settings = {"hidden_channels": 8, "epochs": 6, "monitor": "calibrated_loss"}
    candidates = [
        Candidate(name, Settings(**settings, backbone=name).for_objective("ce"), "standardize", uses)
        for name, uses in ((CLOSED, "features"), (NEURAL, "both"))
    ]  # fmt: skip
    return run_portfolio(graph, candidates, folds=folds)


@given(st.lists(st.tuples(SCORES, st.integers(1, 9)), min_size=1, max_size=4))
def test_the_mean_history_is_that_of_all_held_out_nodes(folds):
    found = mean_history([{"val_loss": losses} for losses, _ in folds], [n for _, n in folds])
    for stage, value in enumerate(found["val_loss"]):
        nodes = [losses[stage] for losses, size in folds for _ in range(size)]
        assert value == pytest.approx(sum(nodes) / len(nodes))
    assert len(found["val_loss"]) == min(len(losses) for losses, _ in folds)


@given(SCORES, st.data())
def test_no_other_stage_is_better(losses, data):
    accuracy = data.draw(
        st.lists(st.sampled_from([0.2, 0.8]), min_size=len(losses), max_size=len(losses))
    )
    history = {"val_loss": losses, "val_accuracy": accuracy}
    assert best_stage(history, "loss") == losses.index(min(losses))
    chosen = best_stage(history, "accuracy")
    for stage, (loss, right) in enumerate(zip(losses, accuracy, strict=True)):
        assert (right, -loss) <= (accuracy[chosen], -losses[chosen])
        assert stage >= chosen or (right, -loss) < (accuracy[chosen], -losses[chosen])


def test_the_solution_is_that_of_all_labels_at_the_stage_of_the_folds(race, bare):
    graph = race.add_all_labels()
    found = solve_on_all(race, CLOSED)
    losses = [result.card["history"]["val_calibrated_loss"] for result in race.results[CLOSED]]
    sums = [sum(30 * fold[stage] for fold in losses) for stage in range(min(map(len, losses)))]
    assert found.best_epoch == sums.index(min(sums))
    assert found.metrics["val_calibrated_loss"] == pytest.approx(min(sums) / 90)
    prepared = race.preparations["standardize"].apply(bare)
    alone = Logistic(8, 3)
    alone.solve(prepared, torch.arange(90), stage=found.best_epoch)
    torch.testing.assert_close(found.network(prepared), alone(prepared), atol=2e-3, rtol=1e-3)
    assert graph.nodes("train", found.fold).tolist() == list(range(90))


def test_networks_stay_with_their_folds(race):
    race.add_all_labels()
    ensemble, held_out = assemble(race, {CLOSED: 0.5, NEURAL: 0.5}, [0, 1, 2])
    closed, neural = ensemble.members
    assert [result.fold for result in closed.results] == [3]
    assert [result.fold for result in neural.results] == [0, 1, 2]
    before, _ = race.logits(CLOSED, [0, 1, 2]), race.all_labels
    race.all_labels = None
    again = assemble(race, {CLOSED: 0.5, NEURAL: 0.5}, [0, 1, 2])[1]
    assert torch.equal(held_out.log_probabilities, again.log_probabilities)  # out of fold
    assert torch.equal(before, race.logits(CLOSED, [0, 1, 2]))


def test_the_networks_of_the_folds_judge_and_are_not_saved(race, tmp_path):
    race.add_all_labels()
    ensemble, _ = assemble(race, {CLOSED: 1.0}, [0, 1, 2])
    nodes, (member,) = torch.arange(10), ensemble
    prepared = race.preparations["standardize"].apply(race.graph)
    folds = [result.result((0, 1, 2), "", "").network for result in race.results[CLOSED]]
    for found, network in zip(ensemble.by_fold(race.graph, nodes), folds, strict=True):
        expected = torch.log_softmax(network(prepared)[nodes].double() / member.temperature, 1)
        torch.testing.assert_close(found, expected)
    ensemble.save(tmp_path)
    loaded = PortfolioEnsemble.load(tmp_path, 1, 90, 8)
    (alone,) = loaded.by_fold(race.graph, nodes)
    torch.testing.assert_close(alone, ensemble.log_probabilities(race.graph, nodes))


def test_given_validation_nodes_never_teach(bare):
    graph = generate(90, 300, 8, 3, seed=0)
    fitted = fit_portfolio(
        graph, PortfolioOptions("quick"), changes={"epochs": 3, "hidden_channels": 4}, verbose=False
    )
    assert fitted.race.all_labels is None
    assert {result.fold for result in fitted.results} == {0}


def test_the_classifier_counts_folds_and_labels(bare, tmp_path):
    changes = {"epochs": 3, "hidden_channels": 4}
    model = NodeClassifier(effort="quick", settings=changes, verbose=False).fit(bare)
    assert (model.num_folds_, model.num_labels_) == (3, 90)
    model.save(tmp_path)
    assert NodeClassifier.load(tmp_path).num_folds_ == 3
