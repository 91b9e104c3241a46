"""Drawn samples: shares, rows and edges. (The neighborhoods are in test_exact.)"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.training.mini_batch.plan import plan_for
from everynode.training.mini_batch.sampler import draw_sample


@pytest.mark.parametrize("clusters", [None, 4])
def test_over_an_epoch_the_shares_are_those_of_the_graph(make_graph, clusters):
    graph = make_graph(train=30, weighted=True)
    plan = plan_for(graph, 30, fold=0, clusters=clusters, with_others=True, seed=0)
    nodes, train = torch.zeros(60).double(), torch.zeros(60).double()
    edges = torch.zeros(60, 60).double()
    for step in range(plan.steps):
        sample = draw_sample(graph, plan, plan.seeds(0, step), -1, np.random.default_rng(0))
        assert len(set(sample.nodes.tolist())) == sample.num_nodes
        assert torch.equal(graph.labels[sample.nodes[sample.labeled]], sample.labels)
        assert torch.equal(sample.all_labeled, sample.nodes[sample.labeled])
        torch.testing.assert_close(
            sample.scale, (graph.degree[sample.nodes] + 1).rsqrt(), rtol=1e-12, atol=0
        )
        nodes[sample.nodes] += sample.node_share / plan.steps
        train[sample.nodes[sample.labeled]] += sample.label_share / plan.steps
        i, j = sample.nodes[sample.edges]
        edges.index_put_((i, j), sample.edge_share / plan.steps, accumulate=True)
    torch.testing.assert_close(nodes, torch.full((60,), 1 / 60).double())
    expected = torch.zeros(60).double()
    expected[graph.nodes("train")] = 1 / 30
    torch.testing.assert_close(train, expected)
    pairs, weight = graph.undirected_edges
    wanted = torch.zeros(60, 60).double()
    wanted[pairs[0], pairs[1]] = weight.double() / graph.num_edges
    torch.testing.assert_close(edges + edges.T, wanted + wanted.T)


def test_the_samples_of_processes_are_a_partition_of_the_seeds(make_graph):
    graph = make_graph(train=13)
    plan = plan_for(graph, 24, fold=0, clusters=None, with_others=True, seed=0)
    seeds = plan.seeds(0, 0)
    parts = [draw_sample(graph, plan, seeds, 1, np.random.default_rng(0), r, 3) for r in range(3)]
    own = torch.cat([part.nodes[part.node_share > 0] for part in parts])
    assert sorted(own.tolist()) == sorted(np.concatenate(seeds).tolist())
    assert [part.first_labeled for part in parts] == list(
        np.cumsum([0, *(len(part.labeled) for part in parts[:-1])])
    )
    assert all(torch.equal(part.all_labeled, parts[0].all_labeled) for part in parts)
