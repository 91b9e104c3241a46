"""A random graph, and the checks that every network on features passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from everynode.graph import Graph
from everynode.models.feature_network import FeatureNetwork
from everynode.models.model import Model
from everynode.settings import Settings

N = 20


def make_graph(
    seed: int = 0, *, weighted: bool = False, directed: bool = False, sparse: bool = False
) -> Graph:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, N - 2, (2, 40))  # two nodes are on their own
    weight = rng.uniform(0.2, 3.0, 40) if weighted else None
    x = rng.normal(size=(N, 5)) * (rng.random((N, 5)) < (0.2 if sparse else 1.0))
    order = rng.permutation(N)
    return Graph.from_arrays(
        x,
        edges,
        np.arange(N) % 3,
        edge_weight=weight,
        directed=directed,
        splits=[np.split(order, [8, 14])],
    ).to(torch.float64)


@pytest.fixture
def random_graph() -> Callable[..., Graph]:
    return make_graph


@pytest.fixture
def check_network() -> Callable[..., None]:
    """Check gradients, sparse features, rows of some nodes, export and the settings."""

    def check(cls: type[FeatureNetwork], name: str, **options: Any) -> None:
        from everynode.models.build import build_model
        from everynode.models.names import model_class

        assert model_class(name) is cls
        model = cls(5, 3, hidden_channels=6, **options).double().eval()
        with torch.no_grad():  # a bias of 0 puts empty rows on the kink of ReLU
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        for sparse in (False, True):
            graph = make_graph(1, weighted=True, sparse=sparse)
            logits = model(graph)
            assert logits.shape == (N, 3)
            dense = graph.with_features(graph.dense_features)
            torch.testing.assert_close(logits, model(dense))
            nodes = torch.tensor([4, 0, 4])
            torch.testing.assert_close(model(graph, nodes), logits[nodes])
            weight = graph.edge_weight
            assert weight is not None
            exported = model.export(graph.dense_features, graph.edge_index, weight)
            torch.testing.assert_close(exported, logits)
            gradients_are_right(model, graph)
            model.train()
            different = [model(graph) for _ in range(2)]
            assert not torch.equal(*different), "dropout"
            model.eval()
        built = build_model(5, 3, Settings(backbone=name, num_layers=3, dropout=0.2), seed=3)
        assert isinstance(built, cls)
        assert built.dropout == 0.2

    return check


def gradients_are_right(model: Model, graph: Graph) -> None:
    names = [name for name, _ in model.named_parameters()]

    def logits(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (graph,))

    parameters = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    assert torch.autograd.gradcheck(logits, parameters)
