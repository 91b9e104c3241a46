"""The base of APPNP and GPRGNN."""

from __future__ import annotations

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.appnp import APPNP
from everynode.models.gprgnn import GPRGNN
from everynode.models.mlp import MLP
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.training.mini_batch.sampler import Sampler


def test_without_a_spread_it_is_an_mlp(random_graph) -> None:
    graph = random_graph()
    ours, mlp = (cls(5, 3, seed=4).double().eval() for cls in (PropagatedMLP, MLP))
    torch.testing.assert_close(ours(graph), mlp(graph), rtol=0, atol=0)


def test_a_batch_is_refused(random_graph) -> None:
    import numpy as np

    batch = Sampler(random_graph()).batch(np.arange(3), [-1], np.random.default_rng(0))
    with pytest.raises(UsageError, match="APPNP trains on the full graph only"):
        APPNP(5, 3).double()(batch)


@pytest.mark.parametrize("cls", [APPNP, GPRGNN])
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_of_rows_change_neither_logits_nor_gradients(
    random_graph, monkeypatch, cls, sparse
) -> None:
    graph = random_graph(sparse=sparse)
    model = cls(graph.num_features, 3, dropout=0.0, layer_dropout=0.0, seed=1).double()

    def compute() -> tuple[torch.Tensor, ...]:
        logits = model.train()(graph)
        return logits, *torch.autograd.grad(logits.square().sum(), list(model.parameters()))

    expected = compute()
    monkeypatch.setattr("everynode.models.propagated_mlp.ROWS", 3)
    torch.testing.assert_close(compute(), expected)


def test_blocks_draw_dropout_again_for_the_gradient(random_graph, monkeypatch) -> None:
    """The gradient is that of the logits that the pass gave, not of another dropout."""
    monkeypatch.setattr("everynode.models.propagated_mlp.ROWS", 3)
    graph, model = random_graph(), PropagatedMLP(5, 3, dropout=0.5, seed=1).double()
    torch.manual_seed(0)
    logits = model.train()(graph)
    slope = torch.autograd.grad(logits.sum(), model.layers[1].weight)[0]
    # The logits are linear in the last weights: sum of weight * slope + biases = sum of logits.
    again = (model.layers[1].weight * slope).sum() + graph.num_nodes * model.layers[1].bias.sum()
    torch.testing.assert_close(again, logits.sum())
