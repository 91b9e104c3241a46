"""Boosting on hops: the columns."""

from __future__ import annotations

import torch

from everynode.models.boosting_hops import BoostingHops


def test_the_columns_are_means_of_neighbors(random_graph) -> None:
    graph, model = random_graph(2, weighted=True), BoostingHops(5, 3).double()
    x, operator = graph.features, graph.neighbor_operator.to_dense()
    expected = torch.cat([x, operator @ x, operator @ operator @ x], dim=1).float()
    torch.testing.assert_close(torch.from_numpy(model._columns(graph)), expected)
    model.solve(graph, graph.nodes("train"))
    assert model(graph).shape == (20, 3)
