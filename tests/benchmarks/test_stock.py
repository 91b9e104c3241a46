"""Stock PyG's side: its objective is the sum of the paper's terms."""

import pytest
import torch

from everynode.benchmarks.stock import StockNetwork, StockObjective
from everynode.datasets import generate


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_each_term_adds_to_the_loss(backbone: str) -> None:
    data = generate(60, 150, 8, 3).to_pyg()
    for name, fold in (("train_mask", 0), ("val_mask", 1)):
        mask = data[name]
        data[name] = mask if mask.ndim == 1 else mask[:, 0]
        assert data[name].any(), fold
    torch.manual_seed(0)
    network = StockNetwork(8, 3, backbone, 2, 16, 0.0, 0.1, 0.5)
    logits = network(data.x, data.edge_index)
    assert logits.shape == (60, 3)
    nodes = data.train_mask.nonzero().view(-1)
    halves = nodes[::2], nodes[1::2]
    parameters = list(network.parameters())

    def loss(mi: float, tv: float, cvg: float) -> torch.Tensor:
        return StockObjective(data, 10.0, 0.3, mi, tv, cvg)(logits, parameters, halves)

    plain = loss(0, 0, 0)
    added = [loss(*weights) - plain for weights in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert all(abs(value.item()) > 1e-6 for value in added)
    torch.testing.assert_close(loss(1, 1, 1), plain + sum(added))
