"""JKNet against PyG's layers with the same weights."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import GCNConv, JumpingKnowledge

from everynode.datasets import generate
from everynode.models.jknet import JKNet
from everynode.settings import Settings
from everynode.training import load_model, save_model, train


@pytest.mark.parametrize("num_layers", [1, 3])
def test_it_is_what_pyg_computes(num_layers: int) -> None:
    graph = generate(40, 90, 8, 3).to(torch.float64)
    model = JKNet(
        8, 3, num_layers=num_layers, hidden_channels=5, normalize_features=True, seed=1
    )  # fmt: skip
    model.double().eval()
    x, outputs = graph.dense_features / graph.dense_features.abs().sum(1, keepdim=True), []
    for layer in model.layers:
        conv = GCNConv(*layer.weight.shape, bias=False).double()
        conv.lin.weight.data = layer.weight.data.T.contiguous()
        # The bias is inside the propagation, as in the equation.
        ones = GCNConv(1, 5, bias=False).double()
        ones.lin.weight.data = layer.bias.data[:, None].clone()
        x = (conv(x, graph.edge_index) + ones(x.new_ones(40, 1), graph.edge_index)).relu()
        outputs.append(x)
    expected = model.last(JumpingKnowledge("cat")(outputs))
    torch.testing.assert_close(model(graph), expected)
    nodes = torch.tensor([3, 0])
    torch.testing.assert_close(model(graph, nodes), expected[nodes])


def test_it_trains_by_name_and_comes_back_from_a_folder(tmp_path) -> None:
    graph = generate(120, 400, 8, 3)
    settings = Settings(backbone="jknet", hidden_channels=16, epochs=30).for_objective("enc")
    result = train(graph, settings)
    assert result.metrics["val_accuracy"] > 0.5
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))
