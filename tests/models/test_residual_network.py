"""The base of SAGE and ResGCN: sampled batches give the logits of the full graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.errors import UsageError
from everynode.models.resgcn import ResGCN
from everynode.models.residual_network import ResidualNetwork
from everynode.models.sage import SAGE
from everynode.training.mini_batch.inference import infer
from everynode.training.mini_batch.sampler import Sampler


@pytest.mark.parametrize("cls", [SAGE, ResGCN])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_neighbors_give_the_logits_of_the_whole_graph(
    random_graph, cls: type[ResidualNetwork], weighted: bool
) -> None:
    graph = random_graph(6, weighted=weighted)
    model = cls(5, 3, num_layers=2, hidden_channels=6).double().eval()
    roots = np.array([7, 2, 19])
    batch = Sampler(graph).batch(roots, [-1, -1], np.random.default_rng(0))
    with torch.no_grad():
        torch.testing.assert_close(model(batch), model(graph)[roots])
        torch.testing.assert_close(infer(model, graph, torch.from_numpy(roots)), model(batch))


def test_a_batch_needs_a_hop_for_each_layer(random_graph) -> None:
    batch = Sampler(random_graph()).batch(np.arange(3), [-1], np.random.default_rng(0))
    with pytest.raises(UsageError, match="2 layers, but the batch has 1 hops"):
        SAGE(5, 3).double()(batch)
