"""The paper's architecture table: dropout, opening layer, ReLU, L layers, dropout, closing layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from everynode.backbones.curvature import Curvature, known
from everynode.backbones.field import Field, Hop, rows_of
from everynode.backbones.gat import GATLayer
from everynode.backbones.gcn import GCNLayer
from everynode.backbones.gcnii import GCNIILayer
from everynode.errors import DataError, require, unknown
from everynode.graph import Graph
from everynode.numerics import gradient_cosine
from everynode.sparse import Pattern, SparseMatrix, draw_noise, drop

Backbone = Literal["gcn", "gat", "gcnii"]
BACKBONES: tuple[Backbone, ...] = ("gcn", "gat", "gcnii")
Input = Literal["row", "raw"]
INPUTS: tuple[Input, ...] = ("row", "raw")
#: A receptive field is used while it takes less than this share of the whole graph; above, going through the whole is cheaper.
VIEW_BELOW = 0.8


class Linear(nn.Module):
    """``x W + b`` with W stored as inputs x outputs, the layout that sparse features multiply without a copy."""

    def __init__(self, inputs: int, outputs: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(inputs, outputs), generator=generator))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """n x inputs, dense or sparse, to n x outputs."""
        return torch.addmm(self.bias, x, self.weight) if isinstance(x, Tensor) else (x @ self.weight).add_(self.bias)


class _View(NamedTuple):
    """What some nodes see of a graph: their receptive field, its features, and which of the graph's feature values these are."""

    graph: Graph
    nodes: Tensor
    field: Field
    features: SparseMatrix | Tensor
    entries: Tensor


#: A layer that is linear between its ReLUs.
LinearLayer = GCNLayer | GCNIILayer
#: Dropout at one place of the network: what to drop from, and the place, counted from the input.
Dropout = Callable[[Tensor, int], Tensor]


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
        self.num_features = num_features
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, channels, generator=generator)
        self.closing = Linear(channels, num_classes, generator=generator)
        self.layers = nn.ModuleList()
        for position in range(1, layers + 1):
            if backbone == "gcn":
                self.layers.append(GCNLayer(channels))
            elif backbone == "gat":
                self.layers.append(GATLayer(channels, generator=generator))
            else:
                self.layers.append(GCNIILayer(channels, position=position, alpha=gcnii_alpha, lam=gcnii_lambda))
        # The last training pass, for replay: its graph and the noise of its dropouts by place.
        self._last: tuple[Graph, dict[int, Tensor]] | None = None
        self._views: dict[int, _View] = {}

    def forward(self, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """The n x k logits of every node of the graph; or, in evaluation, those of ``nodes`` alone, from their receptive field."""
        if graph.num_features != self.num_features:
            raise DataError(
                f"This network was made for {self.num_features} features a node, but graph {graph.name!r} has {graph.num_features}: "
                "use the graph (or the columns) it was trained on."
            )
        if graph.dtype != self.opening.weight.dtype:
            raise DataError(
                f"This network is {self.opening.weight.dtype}, graph {graph.name!r} {graph.dtype}: use graph.to(...) of the same."
            )
        if nodes is not None and not self.training:
            view = self._view(graph, nodes)
            if view.field.cost < VIEW_BELOW:
                return self._run(view.features, view.field.hops, lambda x, place: x)
        noise: dict[int, Tensor] = {}

        def dropout(x: Tensor, place: int) -> Tensor:
            p = self._probability(place)
            if not (self.training and p):
                return x
            noise[place] = draw_noise(x.shape, x)
            return drop(x, p, noise[place])

        self._last = (graph, noise) if self.training else None
        logits = self._run(self._features(graph), [Hop(graph)] * len(self.layers), dropout)
        return logits if nodes is None else logits.index_select(0, nodes)

    def gradient_cosine(self, logits: Tensor, nodes: Tensor, labels: Tensor, halves: tuple[Tensor, Tensor]) -> Tensor | None:
        """The cosine of the gradients of two partial cross-entropies, as in the last training pass, with the same dropout.

        ``nodes`` and their ``labels``: the labelled nodes; ``halves``: positions among them. It goes through the receptive field of
        the nodes only, and for GCN and GCNII by hand (:mod:`everynode.backbones.curvature`), which spares most of the price of
        cross-validating gradients. None if the ``logits`` are not those of the last pass, or a parameter is frozen: then there is
        only the long way.
        """
        if self._last is None or not all(p.requires_grad for p in self.parameters()):
            return None
        graph, noise = self._last
        if len(logits) != graph.num_nodes:
            return None
        view = self._view(graph, nodes)
        rows = [view.entries, *view.field.inputs, nodes]

        def dropout(x: Tensor, place: int) -> Tensor:
            return drop(x, self._probability(place), noise[place].index_select(0, rows[place])) if place in noise else x

        given = logits.detach().index_select(0, nodes)
        linear = [layer for layer in self.layers if isinstance(layer, GCNLayer | GCNIILayer)]
        if not linear:  # GAT: the same by autograd
            replayed = self._run(view.features, view.field.hops, dropout)
            if not _close(replayed.detach(), given):
                return None
            return gradient_cosine([cross_entropy(replayed[half], labels[half]) for half in halves], list(self.parameters()))
        scales = [1.0 / (1.0 - self._probability(place)) if place in noise else 1.0 for place in range(len(rows))]
        features = _dropped(view.features, dropout)
        sweep = Curvature(self.opening, linear, self.closing, features, view.field.hops, dropout, scales)
        return known(*sweep.cosine(labels, halves)) if _close(sweep.logits, given) else None

    def _probability(self, place: int) -> float:
        """The dropout of a place: 0 is the input, then each layer's, and the closing layer's last."""
        return self.dropout if place in (0, len(self.layers) + 1) else self.layer_dropout

    def _view(self, graph: Graph, nodes: Tensor) -> _View:
        """What these nodes see of the graph, kept for the next time: training asks for the same nodes in every epoch."""
        view = self._views.get(id(nodes))
        if view is None or view.nodes is not nodes or view.graph is not graph:
            field = Field.of(graph, nodes, len(self.layers))
            view = _View(graph, nodes, field, *_restrict(self._features(graph), field.sources))
            self._views = {**dict(list(self._views.items())[-3:]), id(nodes): view}
        return view

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: without the graphs that the views hold."""
        return {**super().__getstate__(), "_last": None, "_views": {}}

    def _run(self, features: SparseMatrix | Tensor, hops: Sequence[Hop], dropout: Dropout) -> Tensor:
        f = f_0 = torch.relu_(self.opening(_dropped(features, dropout)))
        for place, (layer, hop) in enumerate(zip(self.layers, hops, strict=True), start=1):
            f = layer(dropout(f, place), f_0, hop)
        logits: Tensor = self.closing(dropout(f, len(self.layers) + 1))
        return logits

    def _features(self, graph: Graph) -> SparseMatrix | Tensor:
        return graph.row_normalised_features if self.input == "row" else graph.features

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The paper's two groups: ``gnn`` (the L layers) and ``oc`` (opening and closing)."""
        return {"gnn": list(self.layers.parameters()), "oc": [*self.opening.parameters(), *self.closing.parameters()]}


def _dropped(features: SparseMatrix | Tensor, dropout: Dropout) -> SparseMatrix | Tensor:
    """The features after the dropout of the input; on sparse ones it touches the non-zeros only."""
    return dropout(features, 0) if isinstance(features, Tensor) else features.with_values(dropout(features.values, 0))


def _close(a: Tensor, b: Tensor) -> bool:
    """Whether two ways to the same logits agree; if somebody changed them on the way (a temperature, say), they do not."""
    return torch.allclose(a, b, rtol=1e-3, atol=1e-4)


def _restrict(features: SparseMatrix | Tensor, rows: Tensor) -> tuple[SparseMatrix | Tensor, Tensor]:
    """Some rows of the features, and which of the features' values (or rows, when dense) these are."""
    if isinstance(features, Tensor):
        return features[rows], rows
    entries, crow = rows_of(features.pattern, rows)
    pattern = Pattern(crow, features.pattern.col[entries], (len(rows), features.shape[1]))
    return SparseMatrix(pattern, features.values[entries]), entries
