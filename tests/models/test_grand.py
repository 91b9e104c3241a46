"""GRAND against its equation: the propagation, the dropped nodes, the order of the products."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.grand import GRAND
from everynode.models.mlp import MLP
from everynode.settings import Settings
from everynode.training import load_model, save_model, train


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(GRAND, "grand", grand_steps=3)


def mean_of_powers(graph, steps: int) -> torch.Tensor:
    matrix = graph.gcn_operator.to_dense()
    return sum(torch.linalg.matrix_power(matrix, t) for t in range(steps + 1)) / (steps + 1)


def test_evaluation_is_an_mlp_on_the_mean_of_the_hops(random_graph) -> None:
    graph = random_graph(4, weighted=True)
    ours = GRAND(5, 3, grand_steps=3, seed=5).double().eval()
    smooth = graph.with_features(mean_of_powers(graph, 3) @ graph.features)
    torch.testing.assert_close(ours(graph), MLP(5, 3, seed=5).double().eval()(smooth))


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_training_drops_the_features_of_whole_nodes(random_graph, dropout: float) -> None:
    """Both orders of the products, with hardly any other dropout."""
    graph = random_graph(4)
    ours = GRAND(5, 3, num_layers=1, grand_steps=2, grand_drop_node=0.4, dropout=dropout)
    ours = ours.double().train()
    torch.manual_seed(3)
    logits = ours(graph)
    torch.manual_seed(3)
    kept = torch.nn.functional.dropout(torch.ones(20, 1, dtype=torch.float64), 0.4)
    assert {*kept[:, 0].tolist()} == {0.0, 1 / (1 - 0.4)}
    x = mean_of_powers(graph, 2) @ (kept * graph.features)
    layer = ours.layers[0]
    torch.testing.assert_close(logits, x @ layer.weight + layer.bias)


def test_it_trains_with_consistency_and_comes_back_from_a_folder(tmp_path) -> None:
    graph = generate(120, 400, 8, 3)
    settings = Settings.preset(
        backbone="grand", epochs=30, consistency=1.0, consistency_distance="squared",
        consistency_passes=3,
    ).for_objective("consistency")  # fmt: skip
    result = train(graph, settings)
    assert result.metrics["val_accuracy"] > 0.5
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))


@pytest.mark.parametrize("wrong", [{"grand_drop_node": 1.0}, {"grand_steps": -1}])
def test_its_limits(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        GRAND(5, 3, **wrong)
