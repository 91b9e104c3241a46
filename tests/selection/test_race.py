"""The comparison of the candidates, and who drops out."""

import numpy as np
import pytest

from everynode import Graph
from everynode.selection.portfolio import run_portfolio
from everynode.selection.race import EPOCH_NATS
from helpers.races import CANDIDATES, candidate, race_graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return race_graph()


def test_the_best_of_each_kind_stays(graph):
    worst = [*CANDIDATES[:3], candidate("lost", "graph", lr=1e-7, lr_gnn=1e-7)]
    race = run_portfolio(graph, worst, folds=range(3), keep=(1, 1))
    assert race.folds("lost") == {0, 1, 2}


def test_class_weights_count_in_the_comparison(graph):
    heavy = [candidate("gcn", class_weight={0: 5.0, 1: 1.0, 2: 1.0})]
    race = run_portfolio(graph, heavy, folds=[0])
    weight = race.node_weight([0])
    assert weight.mean() == pytest.approx(1.0)
    first = race.labels([0]).numpy() == 0
    assert weight[first].min() == pytest.approx(5 * weight[~first].max())


def test_networks_are_handicapped_by_a_nat_a_fold_and_solved_models_are_not(graph):
    field = [candidate("gcn"), candidate("logistic", "features", backbone="logistic")]
    race = run_portfolio(graph, field, folds=range(3))
    assert race.handicap(["gcn", "logistic"], [0, 1, 2]) == pytest.approx([3 * EPOCH_NATS / 60, 0])
    assert race.handicap(["logistic", "gcn"], [0]) == pytest.approx([0, EPOCH_NATS / 20])
    # It counts where candidates are compared, and not in the loss that the leaderboard shows.
    losses = race.losses(["gcn"], [0])
    shown = race.logits("gcn", [0]).log_softmax(1)[np.arange(20), race.labels([0])]
    assert losses.mean() == pytest.approx(-float(shown.mean()), abs=0.3)


def test_the_handicap_decides_between_equals(graph, monkeypatch):
    """Two equal losses: the one whose epoch was chosen on the same nodes comes second."""
    field = [candidate("gcn"), candidate("logistic", "features", backbone="logistic")]
    race = run_portfolio(graph, field, folds=[0])
    monkeypatch.setattr(type(race), "losses", lambda self, names, folds: np.ones((len(names), 20)))
    assert race.drop(2) == ["logistic", "gcn"]
    assert race.best().startswith("best so far logistic")
