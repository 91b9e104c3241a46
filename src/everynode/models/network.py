"""The paper's architecture table: dropout, opening layer, ReLU, L layers, dropout, closing layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from everynode.errors import DataError, UsageError, require, unknown
from everynode.graph import Graph
from everynode.models.gat import GATLayer
from everynode.models.gcn import GCNLayer
from everynode.models.gcnii import GCNIILayer
from everynode.models.gradient_cosine import Curvature, Shared, Trace
from everynode.models.layer import Layer, Step
from everynode.models.receptive_field import Batch, Field, Hop
from everynode.sparse import SparseMatrix, draw_noise, drop

Backbone = Literal["gcn", "gat", "gcnii"]
BACKBONES: tuple[Backbone, ...] = ("gcn", "gat", "gcnii")
#: A receptive field is used while it takes less than this share of the whole graph; above, going through the whole is cheaper.
VIEW_BELOW = 0.8


class Linear(nn.Module):
    """``x W + b`` with W stored as inputs x outputs, the layout that sparse features multiply without a copy."""

    def __init__(self, inputs: int, outputs: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.weight = nn.Parameter(
            nn.init.xavier_uniform_(torch.empty(inputs, outputs), generator=generator)
        )
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor | SparseMatrix) -> Tensor:
        """n x inputs, dense or sparse, to n x outputs."""
        return (
            torch.addmm(self.bias, x, self.weight)
            if isinstance(x, Tensor)
            else (x @ self.weight).add_(self.bias)
        )


class _View(NamedTuple):
    """What some nodes see of a graph: their receptive field, its features, and which of the graph's feature values these are."""

    graph: Graph | Batch
    nodes: Tensor
    #: How often the nodes had been written to.
    version: int
    field: Field
    features: SparseMatrix | Tensor
    entries: Tensor | None


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

    ``normalize_features``: divide each row of the features by its sum. ``layer_dropout``: dropout before each of the L layers too (0 in the paper's
    table). ``gcnii_alpha``, ``gcnii_lambda``: see :class:`GCNIILayer`. ``seed`` decides the initial weights and nothing else;
    dropout follows ``torch.manual_seed``.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        backbone: Backbone = "gcn",
        num_layers: int = 2,
        hidden_channels: int = 64,
        dropout: float = 0.5,
        layer_dropout: float = 0.0,
        normalize_features: bool = True,
        gcnii_alpha: float = 0.1,
        gcnii_lambda: float = 0.5,
        seed: int = 0,
    ):
        super().__init__()
        if backbone not in BACKBONES:
            unknown("backbone", backbone, BACKBONES)
        require(num_layers >= 1, "num_layers", "Network", ">= 1", num_layers)
        require(hidden_channels >= 1, "hidden_channels", "Network", ">= 1", hidden_channels)
        require(0 <= gcnii_alpha <= 1, "gcnii_alpha", "Network", "in [0, 1]", gcnii_alpha)
        require(gcnii_lambda >= 0, "gcnii_lambda", "Network", ">= 0", gcnii_lambda)
        for name, p in (("dropout", dropout), ("layer_dropout", layer_dropout)):
            require(0 <= p < 1, name, "Network", "in [0, 1)", p)
        self.normalize_features, self.dropout, self.layer_dropout = (
            normalize_features,
            dropout,
            layer_dropout,
        )
        self.num_features = num_features
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, hidden_channels, generator=generator)
        self.closing = Linear(hidden_channels, num_classes, generator=generator)
        self.layers = nn.ModuleList()
        for position in range(1, num_layers + 1):
            if backbone == "gcn":
                self.layers.append(GCNLayer(hidden_channels))
            elif backbone == "gat":
                self.layers.append(GATLayer(hidden_channels, generator=generator))
            else:
                self.layers.append(
                    GCNIILayer(
                        hidden_channels, position=position, alpha=gcnii_alpha, lam=gcnii_lambda
                    )
                )
        # The last training pass, its graph, and how often its logits had been written to when it ended.
        self._last: tuple[Trace, Graph | Batch, int] | None = None
        self._views: dict[int, _View] = {}

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """The n x k logits of every node; or those of ``nodes`` (indices, or a mask), in evaluation from their receptive field alone.

        Of a :class:`Batch`, the logits of the nodes that it was made for.
        """
        if graph.num_features != self.num_features:
            raise DataError(
                f"This network was made for {self.num_features} features a node, but graph {graph.name!r} has {graph.num_features}: "
                "use the graph (or the columns) it was trained on."
            )
        if graph.dtype != self.opening.weight.dtype:
            raise DataError(
                f"This network is {self.opening.weight.dtype}, graph {graph.name!r} {graph.dtype}: use graph.to(...) of the same."
            )
        if nodes is not None:
            nodes = _indices(nodes, graph)
        self._last = None  # before there is another: so that two passes are never kept here at once
        if nodes is not None and not self.training:
            view = self._view(graph, nodes)
            if view.field.cost < VIEW_BELOW:
                return self._run(view.features, view.field.hops)
        logits = (
            self._train(graph)
            if self.training
            else self._run(self.features_of(graph), self._hops(graph))
        )
        return logits if nodes is None else logits.index_select(0, nodes)

    def embed(self, graph: Graph) -> Tensor:
        """What goes into the closing layer, n x channels, without dropout: nodes that are alike lie close together."""
        return self._embed(self.features_of(graph), self._hops(graph))

    def _run(self, features: SparseMatrix | Tensor, hops: Sequence[Hop]) -> Tensor:
        """The logits, without dropout."""
        logits: Tensor = self.closing(self._embed(features, hops))
        return logits

    def _embed(self, features: SparseMatrix | Tensor, hops: Sequence[Hop]) -> Tensor:
        f = f_0 = torch.relu_(self.opening(features))
        for layer, hop in zip(self.layers, hops, strict=True):
            f = layer(f, f_0, hop)
        return f

    def _train(self, graph: Graph | Batch) -> Tensor:
        """The logits, with dropout; keeps what :meth:`gradient_cosine` may ask for."""
        dropouts: dict[int, tuple[float, Tensor]] = {}

        def dropout(x: Tensor, place: int) -> Tensor:
            p = self._probability(place)
            if not p:
                return x
            dropouts[place] = p, draw_noise(x.shape, x)
            return drop(x, *dropouts[place])

        features = self.features_of(graph)
        # On sparse features dropout touches the non-zeros only.
        features = (
            dropout(features, 0)
            if isinstance(features, Tensor)
            else features.with_values(dropout(features.values, 0))
        )
        f = f_0 = torch.relu_(self.opening(features))
        steps: list[Step] = []
        for place, (layer, hop) in enumerate(
            zip(self.layers, self._hops(graph), strict=True), start=1
        ):
            f = layer(dropout(f, place), f_0, hop, steps)
        last = dropout(f, len(steps) + 1)
        logits: Tensor = self.closing(last)
        self._last = Trace(dropouts, features, f_0, steps, last, logits), graph, logits._version
        return logits

    def gradient_cosine(
        self,
        logits: Tensor,
        nodes: Tensor,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None = None,
        shared: Shared | None = None,
        factor: float = 1.0,
    ) -> Tensor | None:
        """``factor`` times the cosine of the gradients of two partial cross-entropies, as in the last training pass, with the same dropout.

        ``nodes`` and their ``labels``: the labelled nodes; ``halves``: positions among them; ``weight``: of each class, if the
        cross-entropies are weighted. It goes through the receptive field of
        the nodes only, and by hand (:mod:`everynode.models.gradient_cosine`), which spares most of the price of cross-validating
        gradients. None if the ``logits`` are not those of the last pass (somebody changed them on the way, with a temperature, say),
        a parameter is frozen, or a module has hooks or a parametrisation: then there is only the long way.

        ``shared``: the halves are shared out among processes, of which this one has some nodes. The value is then that of all of them,
        and the gradients of all processes add up to its gradient.
        """
        parameters = list(self.parameters())
        if self._last is None or not all(p.requires_grad for p in parameters):
            return None
        trace, graph, version = self._last
        if (
            logits is not trace.logits
            or logits._version != version
            or any(_is_changed(module) for module in self.modules())
        ):
            return None
        view = self._view(graph, nodes)
        features = (
            trace.features
            if view.entries is None
            else _select(trace.features, view.entries, view.features)
        )
        return Curvature(self, parameters, trace, view.field, features).cosine(
            labels, halves, weight, shared, factor
        )

    @property
    def stack(self) -> list[Layer]:
        """The L layers."""
        return list(self.layers)  # type: ignore[arg-type]

    def _probability(self, place: int) -> float:
        """The dropout of a place: 0 is the input, then each layer's, and the closing layer's last."""
        return self.dropout if place in (0, len(self.layers) + 1) else self.layer_dropout

    def _hops(self, graph: Graph | Batch) -> Sequence[Hop]:
        """The step of each layer."""
        if isinstance(graph, Graph):
            return [Hop(graph)] * len(self.layers)
        if len(graph.hops) != len(self.layers):
            raise UsageError(
                f"This network has {len(self.layers)} layers, but the batch was drawn for {len(graph.hops)}: draw as many."
            )
        return graph.hops

    def _view(self, graph: Graph | Batch, nodes: Tensor) -> _View:
        """What these nodes see of the graph, kept for the next time: training asks for the same nodes in every epoch."""
        view = self._views.get(id(nodes))
        version = 0 if nodes.is_inference() else nodes._version
        if (
            view is None
            or view.nodes is not nodes
            or view.version != version
            or view.graph is not graph
        ):
            hops = self._hops(graph)
            total = hops[-1].looped_adjacency.shape[0]
            if len(nodes) and not (int(nodes.min()) >= 0 and int(nodes.max()) < total):
                raise UsageError(
                    f"The nodes of graph {graph.name!r} are 0 to {total - 1}. Got {int(nodes.min())} to {int(nodes.max())}."
                )
            field = Field.within(hops, nodes)
            view = _View(
                graph,
                nodes,
                version,
                field,
                *_restrict(self.features_of(graph), field.levels[0].nodes),
            )
            if isinstance(graph, Graph):  # a batch does not come again
                self._views = {**dict(list(self._views.items())[-3:]), id(nodes): view}
        return view

    def clear_cache(self) -> None:
        """Forget what was kept for the next pass, and with it the graphs."""
        self._last, self._views = None, {}

    def __getstate__(self) -> dict[str, object]:
        """For copies and pickles: without the graphs that the views hold."""
        return {**super().__getstate__(), "_last": None, "_views": {}}

    def features_of(self, graph: Graph | Batch) -> SparseMatrix | Tensor:
        """What the opening layer is applied to: the features as they are, or row-normalised."""
        return graph.normalized_features if self.normalize_features else graph.features

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The paper's two groups: ``gnn`` (the L layers) and ``oc`` (opening and closing)."""
        return {
            "gnn": list(self.layers.parameters()),
            "oc": [*self.opening.parameters(), *self.closing.parameters()],
        }


def _indices(nodes: Tensor, graph: Graph | Batch) -> Tensor:
    """Nodes as indices, which those that are remain."""
    if nodes.dtype == torch.bool:
        if isinstance(graph, Graph) and nodes.shape != (graph.num_nodes,):
            raise UsageError(
                f"A mask of nodes has one value for each of the {graph.num_nodes} nodes. Got {tuple(nodes.shape)}."
            )
        return nodes.nonzero()[:, 0]
    if nodes.is_floating_point() or nodes.ndim != 1:
        raise UsageError(
            f"Nodes are a list of indices, or a mask. Got {nodes.dtype} of shape {tuple(nodes.shape)}."
        )
    return nodes.long()


def _restrict(
    features: SparseMatrix | Tensor, rows: Tensor | None
) -> tuple[SparseMatrix | Tensor, Tensor | None]:
    """Some rows of the features (None: all), and which of the features' values (or rows, when dense) these are."""
    if rows is None:
        return features, None
    if isinstance(features, Tensor):
        return features[rows], rows
    return features.rows(rows)


def _is_changed(module: nn.Module) -> bool:
    """Whether somebody's hook or parametrisation makes the module another one than its class says."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or "parametrizations" in module._modules
    )


def _select(
    features: SparseMatrix | Tensor, entries: Tensor, like: SparseMatrix | Tensor
) -> SparseMatrix | Tensor:
    """What :func:`_restrict` makes of other values in the same places; ``like`` and ``entries`` are what it made the first time."""
    if isinstance(features, SparseMatrix) and isinstance(like, SparseMatrix):
        return like.with_values(features.values.index_select(0, entries))
    assert isinstance(features, Tensor)  # both are sparse or both dense
    return features.index_select(0, entries)
