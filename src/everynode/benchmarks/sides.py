"""The two sides of the benchmark: everynode and stock PyG.

Both have the same network, weights, objective and optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv
from torch_geometric.utils import to_torch_csr_tensor

from everynode.benchmarks.stock import StockNetwork, StockObjective
from everynode.graph import Graph
from everynode.models import Network
from everynode.settings import Settings
from everynode.sparse import SparseMatrix
from everynode.training.full_batch import WholeGraph
from everynode.training.loop import Training

#: Number of layers of each backbone: GCN-2, GAT-2, GCNII-8.
DEPTH = {"gcn": 2, "gat": 2, "gcnii": 8}
#: The terms that :mod:`everynode.benchmarks.stock` implements.
OF_STOCK = ("mi", "tv", "cvg")


def settings_for(
    backbone: str,
    objective: str,
    hidden_channels: int = Settings.hidden_channels,
    num_layers: int | None = None,
) -> Settings:
    """Return the benchmark's settings: the paper's weights for Cora, with dropout 0.5."""
    return Settings(
        backbone=backbone,
        num_layers=num_layers or DEPTH[backbone],
        hidden_channels=hidden_channels,
        dropout=0.5,
        layer_dropout=0.0,
        normalize_features=False,
        mi=1.0,
        mi_lambda=2.0,
        tv=2.0,
        cvg=1.0,
        halves="random",
        lr=0.01,
        lr_gnn=1e-3,
        weight_decay=1e-5,
        weight_decay_gnn=1e-5,
    ).for_objective(objective)


class Ours:
    """One training step and one evaluation with everynode.

    Parameters
    ----------
    graph : Graph
        The graph.
    settings : Settings
        Model, objective and optimization.

    Attributes
    ----------
    network, objective, optimizer : Network, ENC, Adam
        What a step trains.
    training : Training
        The loop of ``everynode train``.
    layer_bytes : int
        Size of the values of one layer.
    """

    def __init__(self, graph: Graph, settings: Settings):
        self.graph = graph
        self.training = Training(graph, settings)
        runner = cast(WholeGraph, self.training.runner)
        self.network = cast(Network, runner.network)
        self.objective, self.optimizer = runner.objective, runner.optimizer
        self.layer_bytes = runner.layer_bytes

    def loss(self) -> Tensor:
        """Return the training loss of a step."""
        self.network.train()
        return self.objective(
            [self.network(self.graph) for _ in range(self.objective.passes)], self.network
        )

    def step(self) -> None:
        """Take one epoch of ``everynode train``: train, validate, keep the best weights."""
        self.training.step()


class Stock:
    """One training step and one evaluation with stock PyG.

    Parameters
    ----------
    data : torch_geometric.data.Data
        The same graph.
    classes : int
        Number of classes.
    settings : Settings
        Model, objective and optimization.
    sparse : bool
        Sparse features, and a sparse adjacency where PyG's layer can take it.

    Attributes
    ----------
    network, objective, optimizer : StockNetwork, StockObjective, torch.optim.Adam
        What a step trains.
    inputs : tuple of Tensor
        The features and the edges.
    val : Tensor
        The validation nodes.
    """

    def __init__(self, data: Data, classes: int, settings: Settings, sparse: bool = False):
        s, self.data = settings, data
        x, edges = data.x, data.edge_index
        if sparse:
            x = x.to_sparse_csr()
        if sparse and s.backbone != "gat":
            # PyG multiplies by the transposed adjacency.
            edges = to_torch_csr_tensor(edges.flip(0), size=(data.num_nodes, data.num_nodes))
        self.inputs: tuple[Tensor, Tensor] = x, edges
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
        rest = [*self.network.opening.parameters(), *self.network.closing.parameters()]
        self.optimizer = torch.optim.Adam(
            [
                {
                    "params": self.network.convs.parameters(),
                    "lr": s.lr_gnn,
                    "weight_decay": s.weight_decay_gnn,
                },
                {"params": rest, "lr": s.lr, "weight_decay": s.weight_decay},
            ],
            fused=True,
        )
        self.val = data.val_mask.nonzero().view(-1)

    def loss(self, halves: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return the training loss of one forward pass."""
        self.network.train()
        return self.objective(self.network(*self.inputs), list(self.network.parameters()), halves)

    def step(self) -> None:
        """Train and validate, as everynode does."""
        loss = self.loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.network.eval()
        with torch.no_grad():
            logits = self.network(*self.inputs)
            float(torch.nn.functional.cross_entropy(logits[self.val], self.data.y[self.val]))
            float((logits[self.val].argmax(1) == self.data.y[self.val]).float().mean())


def one_fold(graph: Graph) -> Graph:
    """Return the graph with its first fold only, reduced to labeled nodes."""
    split = graph.splits[0]
    return graph.with_splits([type(split)(*(graph.nodes(part) for part in split._fields))])


def check_same(
    graph: Graph, data: Data, settings: Settings, sparse: bool = False
) -> tuple[float, float]:
    """Return the differences in loss and (relative) gradient; raise if they exceed rounding.

    Both sides start from the same weights and use the same dropout masks and halves.
    """
    us, them = Ours(graph, settings), Stock(data, graph.num_classes, settings, sparse)
    copy_weights(us, them)
    masks = [
        torch.rand(graph.num_nodes, width) >= settings.dropout
        for width in (graph.num_features, settings.hidden_channels)
    ]
    halves = _record_halves(us.network)
    with _same_masks(us, them, masks, settings.dropout):
        own_loss = us.loss()
        stock_loss = them.loss(halves[0] if halves else None)
    own_loss.backward()
    stock_loss.backward()
    gap, size = 0.0, 0.0
    for parameter, other, turned in _paired(us, them):
        assert parameter.grad is not None  # every parameter of both sides takes part in the loss
        assert other.grad is not None
        gap += (parameter.grad - (other.grad.T if turned else other.grad)).square().sum().item()
        size += other.grad.square().sum().item()
    if not same_loss(own_loss, stock_loss) or gap**0.5 > 2e-3 * size**0.5:
        raise AssertionError(
            f"the two sides differ: loss {own_loss.item()} and {stock_loss.item()}, "
            f"gradients by {gap**0.5} of {size**0.5}"
        )
    return abs(own_loss.item() - stock_loss.item()), (gap / size) ** 0.5


def same_loss(loss: Tensor, other: Tensor) -> bool:
    """Whether two float32 losses agree up to rounding, also where their terms nearly cancel.

    >>> same_loss(torch.tensor(-0.0019590), torch.tensor(-0.0019596))
    True
    >>> same_loss(torch.tensor(1.0), torch.tensor(1.001))
    False
    """
    return torch.allclose(loss, other, rtol=2e-4, atol=2e-6)


def _paired(us: Ours, them: Stock) -> list[tuple[Tensor, Tensor, bool]]:
    """Return pairs of corresponding parameters, and whether PyG stores them transposed.

    GAT's attention vectors are left out, because PyG stores them as two parameters. Their effect
    on all other parameters is compared.
    """
    parts = [(us.network.opening, them.network.opening), (us.network.closing, them.network.closing)]
    pairs: list[tuple[Tensor, Tensor, bool]] = [(a.weight, b.weight, True) for a, b in parts]
    pairs += [(a.bias, b.bias, False) for a, b in parts]
    layers: list[tuple[Any, Any]] = list(zip(us.network.layers, them.network.convs, strict=True))
    for layer, conv in layers:
        is_gcnii = isinstance(conv, GCN2Conv)
        pairs.append((layer.weight, conv.weight1 if is_gcnii else conv.lin.weight, not is_gcnii))
    return pairs


def copy_weights(us: Ours, them: Stock) -> None:
    """Copy random weights to both sides: identity weights would hide a transposed product."""
    with torch.no_grad():
        for own, stock in (
            (us.network.opening, them.network.opening),
            (us.network.closing, them.network.closing),
        ):
            stock.weight.copy_(own.weight.T)
            stock.bias.copy_(own.bias)
        pairs: list[tuple[Any, Any]] = list(zip(us.network.layers, them.network.convs, strict=True))
        for layer, conv in pairs:
            layer.weight.add_(0.05 * torch.randn_like(layer.weight))
            if isinstance(conv, GATConv):
                # PyG's layer has one matrix for attention and values.
                layer.attention_weight = layer.weight
                conv.lin.weight.copy_(layer.weight.T)
                conv.att_dst.copy_(layer.a[0].view(1, 1, -1))
                conv.att_src.copy_(layer.a[1].view(1, 1, -1))
            elif isinstance(conv, GCNConv):
                conv.lin.weight.copy_(layer.weight.T)
            else:
                conv.weight1.copy_(layer.weight)


def _record_halves(network: Network) -> list[tuple[Tensor, Tensor]]:
    """Record the halves of each cross-validating gradient, as nodes, in the returned list."""
    recorded: list[tuple[Tensor, Tensor]] = []
    gradient_cosine = network.gradient_cosine

    def record(
        logits: Tensor,
        nodes: Tensor,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        *args: Any,
        **options: Any,
    ) -> Tensor | None:
        recorded.append((nodes[halves[0]], nodes[halves[1]]))
        return gradient_cosine(logits, nodes, labels, halves, *args, **options)

    network.gradient_cosine = record  # type: ignore[method-assign]
    return recorded


@contextmanager
def _same_masks(us: Ours, them: Stock, masks: list[Tensor], p: float) -> Iterator[None]:
    """Use the same dropout masks on both sides: first the input's, then the closing layer's."""
    scale, features = 1.0 / (1.0 - p), us.graph.features
    first = masks[0]
    if isinstance(features, SparseMatrix):
        first = first[features.pattern.row, features.pattern.column]
    x, stock = them.inputs[0], them.network
    if x.layout is not torch.strided:
        entries = x.to_sparse_coo().indices()
        masks = [masks[0][entries[0], entries[1]], masks[1]]
    own_masks, stock_masks = iter([first, masks[1]]), iter(masks)
    us.network.draw_noise = lambda shape, like: 65535.0 * next(own_masks).to(like.dtype) - 32768.0
    stock.dropout = lambda x, p, training: x * next(stock_masks) * scale
    try:
        yield
    finally:
        del us.network.draw_noise
        stock.dropout = torch.nn.functional.dropout
