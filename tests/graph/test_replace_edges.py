"""Neighbor replacement: an edge moves on to a neighbor of its end, in training only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode import Graph
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.graph.replace_edges import replace_edges
from everynode.models import Model
from everynode.settings import Settings
from everynode.training import train


def near(graph: Graph) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {i: set() for i in range(graph.num_nodes)}
    for a, b in graph.edge_index.T.tolist():
        found[a].add(b)
    return found


def make(*, directed: bool = False, weighted: bool = False) -> Graph:
    rng = np.random.default_rng(3)
    weight = rng.integers(1, 6, 60).astype(float) if weighted else None
    edges = rng.integers(0, 28, (2, 60))
    return Graph.from_arrays(
        np.eye(30), edges, np.arange(30) % 3, edge_weight=weight, directed=directed
    )


@pytest.mark.parametrize("directed", [False, True])
def test_a_new_edge_ends_at_a_neighbor_of_a_neighbor(directed: bool) -> None:
    graph = make(directed=directed)
    before = near(graph)
    torch.manual_seed(0)
    for _ in range(20):
        after = near(replace_edges(graph, 0.5))
        for u, others in after.items():
            assert u not in others, "no self-loops"
            for w in others - before[u]:
                ways = any(w in before[v] for v in before[u])
                back = any(u in before[v] for v in before[w]) and not directed
                dead_end = directed and any(w == v and not before[v] for v in before[u])
                assert ways or back or dead_end
        if not directed:
            assert all(u in after[w] for u, others in after.items() for w in others)


def test_an_edge_stays_if_neither_direction_is_drawn() -> None:
    star = Graph.from_arrays(torch.eye(5), [[0, 0, 0, 3], [1, 2, 3, 4]], [0, 1, 0, 1, 0])
    edge, stays, draws = (3, 4), 0, 4000
    torch.manual_seed(0)
    for _ in range(draws):
        stays += edge[1] in near(replace_edges(star, 0.3))[edge[0]]
    # Both directions survive (0.49), or the direction from 4 is drawn, whose end 3 leads to 0 or
    # back to 4; or that from 3, whose end 4 leads only back to 3. So only 0.49 is left.
    assert stays / draws == pytest.approx(0.49, abs=0.03)


def test_the_end_is_any_neighbor_of_the_neighbor_alike() -> None:
    path = Graph.from_arrays(torch.eye(5), [[0, 1, 1, 1], [1, 2, 3, 4]], [0, 1, 0, 1, 0])
    torch.manual_seed(0)
    count = torch.zeros(5)
    for _ in range(3000):  # node 0 has one neighbor, 1, which has four
        count[list(near(replace_edges(path, 1.0))[0])] += 1
    # From node 0: 2, 3, 4 or itself, 1 in 4 each. From node i in {2, 3, 4}: node 0, 1 in 4.
    expected = 1 - (1 - 0.25) * (1 - 0.25)
    assert (count[2:] / 3000 - expected).abs().max() < 0.04
    assert count[0] == count[1] == 0


def test_all_or_nothing() -> None:
    graph = make()
    torch.manual_seed(0)
    assert near(replace_edges(graph, 0.0)) == near(graph)
    assert near(replace_edges(graph, 1.0)) != near(graph)


def test_weights_move_with_their_edge_and_the_largest_stays() -> None:
    graph = make(weighted=True)
    values = set(graph.weights.tolist())
    torch.manual_seed(0)
    replaced = replace_edges(graph, 0.5)
    assert replaced.weights.shape == (replaced.edges.shape[1],)
    assert set(replaced.weights.tolist()) <= values
    same = replace_edges(graph, 0.0)
    of = {tuple(sorted(e)): w for e, w in zip(graph.edges.T.tolist(), graph.weights, strict=True)}
    for edge, weight in zip(same.edges.T.tolist(), same.weights, strict=True):
        assert of[tuple(edge)] == weight


def test_features_follow_and_operators_do_not() -> None:
    graph = make()
    features = graph.normalized_features
    replaced = replace_edges(graph, 0.5)
    assert replaced.normalized_features is features
    assert replaced.gcn_operator is not graph.gcn_operator


def test_every_pass_of_training_sees_other_edges_and_evaluation_the_graph(monkeypatch) -> None:
    graph = generate(60, 120, 8, 3)
    seen: list[tuple[bool, bool]] = []
    check = Model.check_graph

    def watch(self, other) -> None:
        seen.append((self.training, torch.equal(other.edge_index, graph.edge_index)))
        check(self, other)

    monkeypatch.setattr(Model, "check_graph", watch)
    settings = Settings(backbone="plain_gcn", epochs=3, replace_edges=0.5, consistency=1.0)
    train(graph, settings.for_objective("consistency"))
    assert [same for training, same in seen if training] == [False] * 6  # two passes an epoch
    assert all(same for training, same in seen if not training)


def test_mini_batches_are_refused() -> None:
    settings = Settings(replace_edges=0.5).for_objective("ce")
    with pytest.raises(UsageError, match="NASA trains on the full graph: set replace_edges=0"):
        train(generate(60, 120, 8, 3), settings, batches=Batches(20))
