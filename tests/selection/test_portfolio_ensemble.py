"""The fitted ensemble of the portfolio."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from everynode.datasets import generate
from everynode.errors import DataError
from everynode.evaluation.contrast import with_contrast
from everynode.graph import Split
from everynode.selection.candidate import Candidate
from everynode.selection.class_shares import class_shift
from everynode.selection.portfolio import run_portfolio
from everynode.selection.portfolio_ensemble import Member, PortfolioEnsemble, select
from everynode.settings import Settings


def candidates(preparation: str = "standardize") -> list[Candidate]:
    quick = {"hidden_channels": 8, "epochs": 15, "monitor": "loss", "lr": 0.03, "lr_gnn": 0.03}
    return [
        Candidate(name, Settings(**quick, backbone=name).for_objective("ce"), preparation, uses)
        for name, uses in (("gcn", "both"), ("mlp", "features"), ("appnp", "both"))
    ]


@pytest.fixture(scope="module")
def graph():
    graph = generate(120, 400, 6, 3, seed=0)
    return graph.with_splits([graph.splits[0]] * 2)


@pytest.fixture(scope="module")
def selection(graph):
    return select(run_portfolio(graph, candidates(), folds=[0], seeds=2))


def test_the_ensemble_is_the_weighted_mean_of_calibrated_networks(graph, selection):
    members = selection.ensemble.members
    assert sum(member.weight for member in members) == pytest.approx(1.0)
    expected = torch.zeros(120, 3, dtype=torch.float64)
    for member in members:
        prepared = member.preparation.apply(graph)
        with torch.no_grad():
            each = [torch.softmax(r.network(prepared).double(), 1) for r in member.results]
        mean = torch.stack(each).mean(0).log()
        expected += member.weight * torch.softmax(mean / member.temperature, 1)
    found = selection.ensemble.unshifted(graph)
    expected = with_contrast(expected.log(), selection.ensemble.contrast)
    torch.testing.assert_close(found, expected)
    nodes = torch.tensor([3, 50])
    torch.testing.assert_close(selection.ensemble.unshifted(graph, nodes), found[nodes])


def test_equal_numbers_of_labels_let_larger_classes_of_unlabeled_nodes_gain(graph):
    def fit(counts):
        by_class = [(graph.labels == c).nonzero()[:count, 0] for c, count in enumerate(counts)]
        train, val = (torch.cat([part[i::2] for part in by_class]) for i in (0, 1))
        split = graph.with_splits([Split(train, val, val[:0])])
        return select(run_portfolio(split, candidates(), folds=[0])), train, val

    assert fit((24, 20, 16))[0].ensemble.shift == ()  # the numbers may tell the sizes
    selection, train, val = fit((24, 24, 24))
    ensemble, held_out = selection.ensemble, selection.held_out
    taught = torch.cat([train, val])
    others = torch.tensor([i for i in range(120) if i not in taught.tolist()])
    expected = class_shift(
        held_out.log_probabilities, graph.labels[held_out.nodes], ensemble.unshifted(graph, others)
    )
    assert ensemble.shift == tuple(expected.tolist())
    logits = ensemble.unshifted(graph) + expected
    torch.testing.assert_close(ensemble.log_probabilities(graph), torch.log_softmax(logits, 1))


def test_out_of_fold_predictions_are_those_of_the_validation_nodes(graph, selection):
    held_out = selection.held_out
    assert torch.equal(held_out.nodes, graph.nodes("val", 0))
    expected = selection.ensemble.unshifted(graph, held_out.nodes)  # one fold: the same
    torch.testing.assert_close(held_out.log_probabilities, expected)


def test_the_leaderboard_has_every_candidate_and_the_weights(selection):
    board = selection.leaderboard
    assert {row.candidate for row in board} == {"gcn", "mlp", "appnp"}
    assert sum(row.weight for row in board) == pytest.approx(1.0)
    assert [row.log_loss for row in board] == sorted(row.log_loss for row in board)
    assert all(row.networks == 2 and row.folds == 1 for row in board)


def test_what_the_graph_adds_compares_the_best_of_each_kind(selection):
    gain = selection.gain
    assert set(gain.accuracy) == {"features", "both"}
    assert gain.candidates["features"] == "mlp"
    assert gain.over_graph is None
    expected = gain.accuracy["both"] - gain.accuracy["features"]
    assert gain.over_features.value == pytest.approx(expected)


def test_candidates_without_a_result_are_listed_too(graph):
    race = run_portfolio(graph, candidates(), folds=[0])
    del race.results["appnp"]
    row = next(row for row in select(race).leaderboard if row.candidate == "appnp")
    assert math.isnan(row.accuracy.value)
    assert row.outcome.startswith("not started")


def test_saved_and_loaded_it_predicts_the_same(graph, selection, tmp_path):
    ensemble = dataclasses.replace(selection.ensemble, shift=(0.5, -0.25, 0.0))
    ensemble.save(tmp_path)
    again = PortfolioEnsemble.load(
        tmp_path, len(ensemble.members), 120, 6, ensemble.shift, ensemble.contrast
    )
    assert torch.equal(again.log_probabilities(graph), ensemble.log_probabilities(graph))
    assert [m.candidate for m in again] == [m.candidate for m in ensemble]
    (tmp_path / "members" / "1" / "member.json").unlink()
    with pytest.raises(DataError, match="is not a member of an ensemble"):
        Member.load(tmp_path / "members" / "1")


def test_other_graphs_are_predicted_by_the_members_that_can(graph, selection):
    other = generate(50, 100, 6, 3, seed=1)
    assert selection.ensemble.log_probabilities(other).shape == (50, 3)
    stuck = [
        Member(
            Candidate(m.candidate.name, m.candidate.settings, m.candidate.preparation, "graph", False),
            m.preparation, m.results, m.temperature, 0.5,
        )
        for m in selection.ensemble.members[:1]
    ]  # fmt: skip
    mixed = PortfolioEnsemble((*stuck, *selection.ensemble.members[:1]), 120, 6)
    with pytest.warns(UserWarning, match="cannot predict nodes outside the training graph"):
        mixed.log_probabilities(other)
    with pytest.raises(DataError, match="--for-new-nodes"):
        PortfolioEnsemble(tuple(stuck), 120, 6).log_probabilities(other)
    assert mixed.log_probabilities(graph).shape == (120, 3)


def test_embeddings_are_of_the_first_network(graph, selection):
    assert selection.ensemble.embed(graph).shape[0] == 120
    assert np.isfinite(selection.ensemble.embed(graph).detach().numpy()).all()
