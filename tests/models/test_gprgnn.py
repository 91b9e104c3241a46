"""GPRGNN against a slow reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.appnp import APPNP
from everynode.models.gprgnn import GPRGNN
from everynode.models.mlp import MLP


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GPRGNN, "gprgnn", gprgnn_steps=3)


def test_it_is_the_weighted_sum_of_powers(random_graph) -> None:
    graph = random_graph(4, weighted=True)
    ours = GPRGNN(5, 3, gprgnn_steps=3, seed=5).double().eval()
    with torch.no_grad():
        ours.coefficients.copy_(torch.tensor([0.5, -1.0, 2.0, 0.1]))
    predictions = MLP(5, 3, seed=5).double().eval()(graph)
    matrix, expected = graph.gcn_operator.to_dense(), torch.zeros(20, 3, dtype=torch.float64)
    for power, coefficient in enumerate([0.5, -1.0, 2.0, 0.1]):
        expected += coefficient * torch.linalg.matrix_power(matrix, power) @ predictions
    torch.testing.assert_close(ours(graph), expected)


def test_it_starts_as_appnp(random_graph) -> None:
    graph = random_graph(5)
    ours = GPRGNN(5, 3, gprgnn_alpha=0.2, gprgnn_steps=6).double().eval()
    other = APPNP(5, 3, appnp_alpha=0.2, appnp_steps=6).double().eval()
    torch.testing.assert_close(ours(graph), other(graph), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wrong", [{"gprgnn_alpha": -0.1}, {"gprgnn_steps": 0}])
def test_its_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        GPRGNN(5, 3, **wrong)
