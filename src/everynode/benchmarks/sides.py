"""The two sides of a comparison: the same network, weights, objective and optimiser; one stock, one everynode's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv

from everynode.benchmarks.stock import StockNetwork, StockObjective
from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.models import network as ours
from everynode.models.network import Backbone
from everynode.objectives import CrossValidatingGradients
from everynode.settings import Settings
from everynode.sparse import SparseMatrix
from everynode.training.full_batch import build, layer_bytes, step, validate

#: How deep each backbone is: GCN-2, GAT-2, GCNII-8.
DEPTH = {"gcn": 2, "gat": 2, "gcnii": 8}
#: The terms that :mod:`everynode.benchmarks.stock` has.
OF_STOCK = ("mi", "tv", "cvg")


def settings_for(
    backbone: str, objective: str, hidden_channels: int = 64, num_layers: int | None = None
) -> Settings:
    """The benchmark's setting: the paper's architecture table with dropout 0.5, and the paper's weights for Cora."""
    return Settings(
        backbone=cast(Backbone, backbone), num_layers=num_layers or DEPTH[backbone], hidden_channels=hidden_channels, dropout=0.5, layer_dropout=0.0, normalize_features=False,
        mi=1.0, mi_lambda=2.0, tv=2.0, cvg=1.0, halves="random", lr_gnn=1e-3, lr=0.01, weight_decay_gnn=1e-5, weight_decay=1e-5,
    ).for_objective(objective)  # fmt: skip


class Ours:
    """One training step and one evaluation with everynode."""

    def __init__(self, graph: Graph, settings: Settings):
        self.graph = graph
        self.network, self.objective, self.optimiser = build(graph, settings, fold=0, seed=0)
        self.layer_bytes = layer_bytes(graph, settings)
        self.val = graph.nodes("val")
        self.val_labels = graph.labels[self.val]

    def loss(self) -> Tensor:
        """The training loss of a step."""
        self.network.train()
        return self.objective(
            [self.network(self.graph) for _ in range(self.objective.passes)], self.network
        )

    def step(self) -> None:
        """What the training loop does in an epoch."""
        step(self.network, self.objective, self.optimiser, self.graph)
        validate(self.network, self.graph, self.val, self.val_labels)


class Stock:
    """One training step and one evaluation with stock PyG."""

    def __init__(self, data: Data, classes: int, settings: Settings):
        s, self.data = settings, data
        self.network = StockNetwork(
            data.num_features,
            classes,
            s.backbone,
            s.num_layers,
            s.hidden_channels,
            s.dropout,
            s.gcnii_alpha,
            s.gcnii_lambda,
        )
        self.objective = StockObjective(data, s.tv_sigma, s.mi_lambda, s.mi, s.tv, s.cvg)
        oc = [*self.network.opening.parameters(), *self.network.closing.parameters()]
        self.optimiser = torch.optim.Adam(
            [
                {
                    "params": self.network.convs.parameters(),
                    "lr": s.lr_gnn,
                    "weight_decay": s.weight_decay_gnn,
                },
                {"params": oc, "lr": s.lr, "weight_decay": s.weight_decay},
            ],
            fused=True,
        )
        self.val = data.val_mask.nonzero().view(-1)

    def loss(self, halves: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """The training loss of one forward pass."""
        self.network.train()
        return self.objective(
            self.network(self.data.x, self.data.edge_index), list(self.network.parameters()), halves
        )

    def step(self) -> None:
        """The same epoch."""
        loss = self.loss()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.network.eval()
        with torch.no_grad():
            logits = self.network(self.data.x, self.data.edge_index)
            float(torch.nn.functional.cross_entropy(logits[self.val], self.data.y[self.val]))
            float((logits[self.val].argmax(1) == self.data.y[self.val]).float().mean())


def one_fold(graph: Graph) -> Graph:
    """The graph with its first fold only, without the nodes that have no label."""
    split = graph.splits[0]
    return graph.with_splits([type(split)(*(graph.nodes(part) for part in split._fields))])


def check_same(graph: Graph, data: Data, settings: Settings) -> tuple[float, float]:
    """The loss and the norm of its gradient on both sides from the same weights, dropout masks and halves; refuses if they differ."""
    us, them = Ours(graph, settings), Stock(data, graph.num_classes, settings)
    copy_weights(us, them)
    masks = [
        torch.rand(graph.num_nodes, width) >= settings.dropout
        for width in (graph.num_features, settings.hidden_channels)
    ]
    cvg = us.objective.terms["cvg"] if settings.cvg else None
    halves = (
        cvg.partition(Sample.of_graph(graph, 0))
        if isinstance(cvg, CrossValidatingGradients)
        else None
    )
    with _same_masks(us.graph, them.network, masks, settings.dropout):
        mine, theirs = us.loss(), them.loss(halves)
    mine.backward()
    theirs.backward()
    gap, size = 0.0, 0.0
    for parameter, other, turned in _paired(us, them):
        assert parameter.grad is not None  # every parameter of both sides takes part in the loss
        assert other.grad is not None
        gap += (parameter.grad - (other.grad.T if turned else other.grad)).square().sum().item()
        size += other.grad.square().sum().item()
    if not same_loss(mine, theirs) or gap**0.5 > 2e-3 * size**0.5:
        raise AssertionError(
            f"the two sides differ: loss {mine.item()} and {theirs.item()}, gradients by {gap**0.5} of {size**0.5}"
        )
    return abs(mine.item() - theirs.item()), (gap / size) ** 0.5


def same_loss(mine: Tensor, theirs: Tensor) -> bool:
    """Whether two float32 losses are the same up to rounding, which is that of terms of about 1, also where these nearly cancel out.

    >>> same_loss(torch.tensor(-0.0019590), torch.tensor(-0.0019596)), same_loss(torch.tensor(1.0), torch.tensor(1.001))
    (True, False)
    """
    return torch.allclose(mine, theirs, rtol=2e-4, atol=2e-6)


def _paired(us: Ours, them: Stock) -> list[tuple[Tensor, Tensor, bool]]:
    """The parameters of both sides that stand for the same thing, and whether PyG keeps them transposed.

    GAT's attention vectors are left out (PyG has them in two), their effect on all others is not.
    """
    parts = [(us.network.opening, them.network.opening), (us.network.closing, them.network.closing)]
    found: list[tuple[Tensor, Tensor, bool]] = [(a.weight, b.weight, True) for a, b in parts]
    found += [(a.bias, b.bias, False) for a, b in parts]
    num_layers: list[tuple[Any, Any]] = list(
        zip(us.network.layers, them.network.convs, strict=True)
    )
    for layer, conv in num_layers:
        kept = isinstance(conv, GCN2Conv)
        found.append((layer.weight, conv.weight1 if kept else conv.lin.weight, not kept))
    return found


def copy_weights(us: Ours, them: Stock) -> None:
    """Give both sides the same random weights. (Identity layers would hide a transposed product.)"""
    with torch.no_grad():
        for mine, theirs in (
            (us.network.opening, them.network.opening),
            (us.network.closing, them.network.closing),
        ):
            theirs.weight.copy_(mine.weight.T)
            theirs.bias.copy_(mine.bias)
        pairs: list[tuple[Any, Any]] = list(zip(us.network.layers, them.network.convs, strict=True))
        for layer, conv in pairs:
            layer.weight.add_(0.05 * torch.randn_like(layer.weight))
            if isinstance(conv, GATConv):
                layer.attention_weight = (
                    layer.weight
                )  # PyG's layer has one matrix for attention and values, so here ours has too
                conv.lin.weight.copy_(layer.weight.T)
                conv.att_dst.copy_(layer.a[0].view(1, 1, -1))
                conv.att_src.copy_(layer.a[1].view(1, 1, -1))
            elif isinstance(conv, GCNConv):
                conv.lin.weight.copy_(layer.weight.T)
            else:
                conv.weight1.copy_(layer.weight)


@contextmanager
def _same_masks(graph: Graph, stock: StockNetwork, masks: list[Tensor], p: float) -> Iterator[None]:
    """Let both sides drop what ``masks`` say: the input's first, then the one before the closing layer."""
    scale = 1.0 / (1.0 - p)
    first = (
        masks[0][graph.features.pattern.row, graph.features.pattern.column]
        if isinstance(graph.features, SparseMatrix)
        else masks[0]
    )
    mine, theirs = iter([first, masks[1]]), iter(masks)
    with mock.patch.object(
        ours, "draw_noise", lambda shape, like: 65535.0 * next(mine).to(like.dtype) - 32768.0
    ):
        stock.dropout = lambda x, p, training: x * next(theirs) * scale
        yield
    stock.dropout = torch.nn.functional.dropout
