"""The linear layer: the same on dense and on sparse features."""

from __future__ import annotations

import scipy.sparse
import torch

from everynode.models.linear import Linear, rows_divided_by_sum
from everynode.sparse import SparseMatrix


def test_sparse_and_dense_features_give_the_same_rows_and_gradients() -> None:
    dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -1.0]])
    layer = Linear(3, 4, generator=torch.Generator().manual_seed(0))
    gradients = []
    for x in (dense, SparseMatrix.from_scipy(scipy.sparse.csr_array(dense.numpy()))):
        layer.zero_grad()
        out = layer(x)
        torch.testing.assert_close(out, dense @ layer.weight + layer.bias)
        out.square().sum().backward()
        assert layer.weight.grad is not None
        gradients.append(layer.weight.grad.clone())
    torch.testing.assert_close(*gradients)


def test_the_generator_decides_the_weights_and_the_bias_starts_at_zero() -> None:
    one, same, other = (
        Linear(5, 3, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(one.weight, same.weight)
    assert not torch.equal(one.weight, other.weight)
    assert not one.bias.any()


def test_rows_are_divided_by_the_sum_of_their_sizes() -> None:
    rows = rows_divided_by_sum(torch.tensor([[1.0, -3.0], [0.0, 0.0]]))
    assert rows.tolist() == [[0.25, -0.75], [0.0, 0.0]]
