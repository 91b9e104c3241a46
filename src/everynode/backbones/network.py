"""The paper's architecture table: dropout, opening layer, ReLU, L layers, dropout, closing layer."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from everynode.backbones.gat import GATLayer
from everynode.backbones.gcn import GCNLayer
from everynode.backbones.gcnii import GCNIILayer
from everynode.errors import DataError, require, unknown
from everynode.graph import Graph
from everynode.sparse import SparseMatrix, random_keep, spmm

Backbone = Literal["gcn", "gat", "gcnii"]
BACKBONES: tuple[Backbone, ...] = ("gcn", "gat", "gcnii")
Input = Literal["row", "raw"]
INPUTS: tuple[Input, ...] = ("row", "raw")


class Network(nn.Module):
    """A node classifier: ``network(graph)`` gives n x k logits.

    ========  ====================  ========
    input     layer                 output
    ========  ====================  ========
    n x c_in  dropout(p)            n x c_in
    n x c_in  opening (linear)      n x c
    n x c     ReLU                  n x c
    n x c     L x GCN, GAT, GCNII   n x c
    n x c     dropout(p)            n x c
    n x c     closing (linear)      n x k
    ========  ====================  ========

    ``input``: ``row``-normalised or ``raw`` features. ``layer_dropout``: dropout before each of the L layers too (0 in the paper's
    table). ``gcnii_alpha``, ``gcnii_lambda``: see :class:`GCNIILayer`. ``seed`` decides the initial weights and nothing else;
    dropout follows ``torch.manual_seed``.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        backbone: Backbone = "gcn",
        layers: int = 2,
        channels: int = 64,
        dropout: float = 0.5,
        layer_dropout: float = 0.0,
        input: Input = "row",
        gcnii_alpha: float = 0.1,
        gcnii_lambda: float = 0.5,
        seed: int = 0,
    ):
        super().__init__()
        if backbone not in BACKBONES:
            unknown("backbone", backbone, BACKBONES)
        if input not in INPUTS:
            unknown("input", input, INPUTS)
        require(layers >= 1, "layers", "Network", ">= 1", layers)
        require(channels >= 1, "channels", "Network", ">= 1", channels)
        for name, p in (("dropout", dropout), ("layer_dropout", layer_dropout)):
            require(0 <= p < 1, name, "Network", "in [0, 1)", p)
        self.input, self.dropout, self.layer_dropout = input, dropout, layer_dropout
        generator = torch.Generator().manual_seed(seed)
        self.opening = nn.Linear(num_features, channels)
        self.closing = nn.Linear(channels, num_classes)
        for linear in (self.opening, self.closing):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)
        self.layers = nn.ModuleList()
        for position in range(1, layers + 1):
            if backbone == "gcn":
                self.layers.append(GCNLayer(channels))
            elif backbone == "gat":
                self.layers.append(GATLayer(channels, generator=generator))
            else:
                self.layers.append(GCNIILayer(channels, position=position, alpha=gcnii_alpha, lam=gcnii_lambda))

    def forward(self, graph: Graph) -> Tensor:
        """The n x k logits of every node of the graph."""
        if graph.num_features != self.opening.in_features:
            raise DataError(
                f"This network was made for {self.opening.in_features} features a node, but graph {graph.name!r} has {graph.num_features}: "
                "use the graph (or the columns) it was trained on."
            )
        features = graph.row_normalised_features if self.input == "row" else graph.features
        f = f_0 = torch.relu(self._open(features))
        for layer in self.layers:
            f = layer(dropout(f, self.layer_dropout, self.training), f_0, graph)
        logits: Tensor = self.closing(dropout(f, self.dropout, self.training))
        return logits

    def _open(self, features: SparseMatrix | Tensor) -> Tensor:
        """Dropout and opening layer; on sparse features both touch the non-zeros only."""
        if not isinstance(features, SparseMatrix):
            opened: Tensor = self.opening(dropout(features, self.dropout, self.training))
            return opened
        weight = self.opening.weight.T
        if not (self.training and self.dropout):
            return features @ weight + self.opening.bias
        return spmm(features.pattern, dropout(features.values, self.dropout, True), weight) + self.opening.bias

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The paper's two groups: ``gnn`` (the L layers) and ``oc`` (opening and closing)."""
        return {"gnn": list(self.layers.parameters()), "oc": [*self.opening.parameters(), *self.closing.parameters()]}


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Inverted dropout, as torch's, with the quicker random bits of :func:`everynode.sparse.random_keep`."""
    return x * random_keep(x.shape, p, x) if training and p else x
