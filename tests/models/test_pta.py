"""PTA: an MLP in training, propagated probabilities in evaluation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_geometric.nn import APPNP

from everynode.datasets import generate
from everynode.models.mlp import MLP
from everynode.models.pta import PTA
from everynode.settings import Settings
from everynode.training import load_model, save_model, train


def test_it_is_a_network_on_features(check_network: Callable[..., None]) -> None:
    check_network(PTA, "pta", appnp_steps=3)


def test_evaluation_propagates_the_probabilities(random_graph) -> None:
    graph = random_graph(3, weighted=True)
    ours = PTA(5, 3, appnp_alpha=0.3, appnp_steps=4, seed=5).double().eval()
    predictions = MLP(5, 3, seed=5).double().eval()(graph).softmax(1)
    expected = APPNP(K=4, alpha=0.3)(predictions, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(ours(graph).exp(), expected)


def test_training_ignores_the_edges(random_graph) -> None:
    graph = random_graph(3)
    ours = PTA(5, 3, dropout=0.0, seed=5).double().train()
    torch.testing.assert_close(ours(graph), MLP(5, 3, dropout=0.0, seed=5).double()(graph))


def test_it_trains_on_soft_labels_and_comes_back_from_a_folder(tmp_path) -> None:
    graph = generate(120, 400, 8, 3)
    settings = Settings.preset(backbone="pta", epochs=30, ce=0.0, soft_labels=0.05)
    result = train(graph, settings.for_objective("soft_labels"))
    assert result.metrics["val_accuracy"] > 0.5
    assert result.history["total"] != result.history["ce"]
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))
