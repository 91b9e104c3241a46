"""CVG both ways: by derivatives of the layers, and by autograd."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models import Network
from everynode.numerics import gradient_cosine


class Halves:
    """Two halves of the training nodes, and CVG both ways."""

    def __init__(self, graph: Graph, seed: int = 0):
        self.nodes = graph.nodes("train")
        self.labels = graph.labels[self.nodes]
        order = torch.randperm(len(self.nodes), generator=torch.Generator().manual_seed(seed))
        self.halves = order[: len(order) // 2], order[len(order) // 2 :]

    def short(self, logits: Tensor, network: Network) -> Tensor | None:
        return network.gradient_cosine(logits, self.nodes, self.labels, self.halves, factor=-1.0)

    def long(self, logits: Tensor, parameters: Iterable[Tensor]) -> Tensor:
        losses = [
            torch.nn.functional.cross_entropy(logits[self.nodes[half]], self.labels[half])
            for half in self.halves
        ]
        return -gradient_cosine(losses, list(parameters))
