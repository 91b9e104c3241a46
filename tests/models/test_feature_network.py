"""The base of networks on features."""

from __future__ import annotations

import pytest
import torch

from everynode.errors import DataError, UsageError
from everynode.models.mlp import MLP


@pytest.mark.parametrize(
    "wrong", [{"num_layers": 0}, {"hidden_channels": 0}, {"dropout": 1.0}, {"layer_dropout": -0.1}]
)
def test_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        MLP(5, 3, **wrong)


def test_rows_are_normalized_in_both_paths(random_graph) -> None:
    graph = random_graph(sparse=True)
    model = MLP(5, 3, normalize_features=True).double().eval()
    arcs = graph.edge_index
    exported = model.export(graph.dense_features, arcs, torch.ones(arcs.shape[1]).double())
    torch.testing.assert_close(model(graph), exported)


def test_other_columns_are_refused(random_graph) -> None:
    with pytest.raises(DataError, match="made for 4 features"):
        MLP(4, 3).double()(random_graph())


def test_dropped_features_keep_their_mean(random_graph) -> None:
    torch.manual_seed(0)
    model, graph = MLP(5, 3, dropout=0.3), random_graph(sparse=True)
    mean = sum(model.drop_features(graph.features).to_dense() for _ in range(3000)) / 3000
    torch.testing.assert_close(mean, graph.dense_features, rtol=0.1, atol=0.05)
