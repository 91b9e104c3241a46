"""The receptive fields that a network keeps between epochs."""

from __future__ import annotations

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.field_cache import KEPT, FieldCache
from everynode.models.receptive_field import Hop

GRAPH = generate(40, 50, 6, 3)


def test_the_same_nodes_of_the_same_graph_are_looked_up() -> None:
    cache, nodes = FieldCache(), torch.tensor([0, 3])
    view = cache.view(GRAPH, nodes, [Hop(GRAPH)], GRAPH.features)
    assert cache.view(GRAPH, nodes, [Hop(GRAPH)], GRAPH.features) is view
    twin = GRAPH.to(torch.float64)
    assert cache.view(twin, nodes, [Hop(twin)], twin.features) is not view


def test_nodes_that_were_written_to_are_other_nodes() -> None:
    cache, nodes = FieldCache(), torch.tensor([0, 3])
    view = cache.view(GRAPH, nodes, [Hop(GRAPH)], GRAPH.features)
    nodes[0] = 5
    assert cache.view(GRAPH, nodes, [Hop(GRAPH)], GRAPH.features) is not view


def test_only_the_latest_are_kept() -> None:
    cache = FieldCache()
    sets = [torch.tensor([node]) for node in range(KEPT + 3)]
    for nodes in sets:
        cache.view(GRAPH, nodes, [Hop(GRAPH)], GRAPH.features)
    assert len(cache) == KEPT


@pytest.mark.parametrize("dense", [False, True])
def test_other_features_are_restricted_as_the_graphs_own(dense: bool) -> None:
    features = GRAPH.dense_features if dense else GRAPH.features
    view = FieldCache().view(GRAPH, torch.tensor([1]), [Hop(GRAPH)], features)
    rows = view.field.levels[0].nodes
    assert rows is not None
    assert len(rows) < GRAPH.num_nodes
    doubled = (
        features * 2
        if isinstance(features, torch.Tensor)
        else features.with_values(features.values * 2)
    )
    selected = view.select(doubled)
    selected = selected if isinstance(selected, torch.Tensor) else selected.to_dense()
    torch.testing.assert_close(selected, 2 * GRAPH.dense_features[rows])


def test_what_are_no_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nodes of graph 'generated.*' are 0 to 39\. Got 7 to 99"):
        FieldCache().view(GRAPH, torch.tensor([7, 99]), [Hop(GRAPH)], GRAPH.features)
