"""Logistic regression on hops against a slow reference."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import torch

from everynode.graph import Graph
from everynode.models import logistic
from everynode.models.logistic import Logistic
from everynode.models.logistic_hops import LogisticHops


@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_logistic_regression_on_three_blocks(random_graph, sparse: bool) -> None:
    graph = random_graph(2, weighted=True, sparse=sparse)
    train, operator = graph.nodes("train"), graph.gcn_operator.to_dense()
    model = LogisticHops(5, 3).double()
    model.solve(graph, train, stage=1)
    x = graph.dense_features
    blocks = [x, operator @ x, operator @ operator @ x]
    # Blocks of length 1 each: scaled as a whole, they have the length of the root of three.
    blocks = [block / (block[train] ** 2).sum(1).mean().sqrt() for block in blocks]
    other = graph.with_features(torch.cat(blocks, dim=1))
    expected = Logistic(15, 3).double()
    scaled = logistic.STRENGTHS[1] * 3
    try:
        before, logistic.STRENGTHS = logistic.STRENGTHS, (scaled,)
        expected.solve(other, train)
    finally:
        logistic.STRENGTHS = before
    torch.testing.assert_close(model(graph), expected(other), rtol=5e-3, atol=5e-3)


def test_sparse_products_have_nearly_the_same_solution(random_graph, monkeypatch) -> None:
    graph = random_graph(2, sparse=True)
    expected, model = LogisticHops(5, 3).double(), LogisticHops(5, 3).double()
    expected.solve(graph, graph.nodes("train"))
    monkeypatch.setattr(logistic, "MAX_ENTRIES", 0)
    model.solve(graph, graph.nodes("train"))
    # The scale of the later blocks is that of the first: another, weaker penalty.
    agree = (model(graph).argmax(1) == expected(graph).argmax(1)).double().mean()
    assert agree >= 0.8


def test_export_is_the_same(random_graph) -> None:
    graph, model = random_graph(2, weighted=True), LogisticHops(5, 3).double()
    model.solve(graph, graph.nodes("train"))
    exported = model.export(graph.dense_features, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(exported, model(graph))


def test_rows_are_the_same_where_two_hops_reach_every_node(random_graph, monkeypatch) -> None:
    graph = random_graph(2, sparse=True)
    nodes, operator = graph.nodes("train"), graph.gcn_operator
    expected = logistic._rows(graph.features, operator, nodes, 2)
    monkeypatch.setattr(logistic, "MAX_WALKS", 0)
    monkeypatch.setattr(logistic, "COLUMNS", 2)
    actual = logistic._rows(graph.features, operator, nodes, 2)
    torch.testing.assert_close(actual, expected, check_dtype=False)


def test_a_star_takes_memory_in_proportion_to_its_leaves(monkeypatch) -> None:
    """With the rows of the power, twice the leaves took four times the memory."""
    monkeypatch.setattr(logistic, "MAX_WALKS", 100_000)

    def peak(n: int) -> int:
        words = scipy.sparse.csr_array(np.eye(8, dtype=np.float32)[np.arange(n) % 8])
        leaves = np.arange(1, n)
        star = Graph.from_arrays(words, np.stack([0 * leaves, leaves]), np.arange(n) % 2)
        operator, nodes = star.gcn_operator, torch.arange(0, n, 2)
        tracemalloc.start()
        try:
            logistic._rows(star.features, operator, nodes, 2)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(4000) < 3 * peak(2000)
