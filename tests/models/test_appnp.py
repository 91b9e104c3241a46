"""APPNP against PyG's layer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.nn import APPNP as Theirs

from everynode.errors import UsageError
from everynode.models.appnp import APPNP
from everynode.models.mlp import MLP


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(APPNP, "appnp", appnp_steps=3)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_pygs(random_graph, weighted: bool) -> None:
    graph = random_graph(3, weighted=weighted)
    options = {"hidden_channels": 6, "seed": 5}
    ours = APPNP(5, 3, appnp_alpha=0.3, appnp_steps=4, **options).double().eval()
    predictions = MLP(5, 3, **options).double().eval()(graph)
    expected = Theirs(K=4, alpha=0.3)(predictions, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(ours(graph), expected)


@pytest.mark.parametrize("wrong", [{"appnp_alpha": 1.5}, {"appnp_steps": 0}])
def test_its_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        APPNP(5, 3, **wrong)
