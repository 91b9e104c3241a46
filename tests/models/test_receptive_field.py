"""Receptive fields, hops and sampled batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.graph import Graph
from everynode.models.receptive_field import Hop, Level, ReceptiveField

NODES = torch.tensor([1, 5, 30, 39])


def chain(*, directed: bool = False, n: int = 40) -> Graph:
    """A long path with a few shortcuts, on which a few nodes see little."""
    rng = np.random.default_rng(2)
    edges = np.array([[*range(n - 1), 3, 9], [*range(1, n), 0, 30]])
    weight = rng.uniform(0.5, 2.0, edges.shape[1])
    return Graph.from_arrays(
        rng.normal(size=(n, 12)), edges, np.arange(n) % 3, edge_weight=weight, directed=directed
    ).to(torch.float64)


@pytest.mark.parametrize("directed", [False, True])
def test_a_field_is_what_can_be_reached_against_the_arcs(directed: bool) -> None:
    graph = chain(directed=directed)
    adjacency = graph.looped_adjacency.to_dense() > 0
    field = ReceptiveField.of(graph, NODES, 2)
    reached = [set(NODES.tolist())]
    for _ in range(2):
        reached.append({j for i in reached[-1] for j in range(graph.num_nodes) if adjacency[i, j]})
    assert [set(level.nodes.tolist()) for level in field.levels] == reached[::-1]
    assert [set(hop.sources.tolist()) for hop in field.hops] == [reached[2], reached[1]]
    assert field.cost == pytest.approx(sum(map(len, reached)) / (3 * graph.num_nodes))
    for operator in ("gcn_operator", "looped_adjacency"):
        whole = getattr(graph, operator).to_dense()
        for hop in field.hops:
            torch.testing.assert_close(
                getattr(hop, operator).to_dense(), whole[hop.nodes][:, hop.sources], rtol=0, atol=0
            )


def test_spread_puts_back_what_pick_took() -> None:
    level = Level(5, torch.float64, torch.tensor([4, 1]))
    x = torch.arange(10.0, dtype=torch.float64).view(5, 2)
    assert torch.equal(level.pick(x), x[[4, 1]])
    back = level.spread(level.pick(x), 2.0)
    assert torch.equal(back[[4, 1]], 2.0 * x[[4, 1]])
    assert not back[[0, 2, 3]].any()
    whole = Level(5, torch.float64, None)
    assert whole.pick(x) is x
    assert whole.spread(x, 1.0) is x


def test_a_hop_picks_the_entries_of_its_targets() -> None:
    graph = chain()
    entries = torch.arange(float(graph.looped_adjacency.pattern.nnz), dtype=torch.float64)
    hop = ReceptiveField.of(graph, NODES, 1).hops[0]
    assert Hop(graph).pick(entries) is entries
    picked = hop.pick(entries)
    assert torch.equal(hop.spread(picked)[picked.long()], picked)
    assert int((hop.spread(picked + 1) > 0).sum()) == len(picked)


def test_almost_all_nodes_count_as_all() -> None:
    field = ReceptiveField.of(chain(), torch.arange(0, 40, 2), 2)
    assert field.levels[0].nodes is None
    assert len(field.levels[0]) == 40
