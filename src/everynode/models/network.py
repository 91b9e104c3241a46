"""The paper's architecture: dropout, opening layer, ReLU, L layers, dropout, closing layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.field_cache import FieldCache, FieldView
from everynode.models.gradient_cosine import GradientCosine, NetworkTrace, SharedHalves
from everynode.models.layer import Layer, LayerTrace, brings
from everynode.models.linear import Linear, rows_divided_by_sum
from everynode.models.model import Model, input_features, node_indices
from everynode.models.receptive_field import Batch, Hop
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix, draw_noise, drop

#: A larger receptive field is not worth a selection: the whole graph is cheaper.
VIEW_BELOW = 0.8


class _LastPass(NamedTuple):
    """The last training pass, its graph, and the version counter of its logits."""

    trace: NetworkTrace
    graph: Graph | Batch
    version: int


class Network(Model):
    """The paper's network. A subclass names its ``layer``, as :class:`everynode.models.GCN` does.

    ========  ====================  ========
    input     operation             output
    ========  ====================  ========
    n x c_in  dropout(p)            n x c_in
    n x c_in  opening (linear)      n x c
    n x c     ReLU                  n x c
    n x c     L layers              n x c
    n x c     dropout(p)            n x c
    n x c     closing (linear)      n x k
    ========  ====================  ========

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    hidden_channels : int
        Width c of the hidden layers.
    dropout : float
        Dropout on the input and before the closing layer.
    layer_dropout : float
        Dropout before each of the L layers; 0 in the paper.
    normalize_features : bool
        Divide each row of the features by its sum.
    layer_options : dict, optional
        Further arguments of the layers.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.

    Attributes
    ----------
    opening, closing : Linear
        The linear layers.
    layers : list of Layer
        The L layers.
    layer : type of Layer
        The class of the layers.
    draw_noise : callable
        The source of dropout, which a test or a benchmark may replace.
    """

    layer: ClassVar[type[Layer]]
    layers: Sequence[Layer]
    draw_noise = staticmethod(draw_noise)

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        num_layers: int = Settings.num_layers,
        hidden_channels: int = Settings.hidden_channels,
        dropout: float = Settings.dropout,
        layer_dropout: float = Settings.layer_dropout,
        normalize_features: bool = Settings.normalize_features,
        layer_options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ):
        super().__init__()
        owner = type(self).__name__
        if not hasattr(type(self), "layer"):
            raise UsageError(
                f"{owner} has no layers: use GCN, GAT or GCNII, or name the layer in a subclass."
            )
        check_settings(owner, num_layers=num_layers, hidden_channels=hidden_channels)
        check_settings(owner, dropout=dropout, layer_dropout=layer_dropout)
        self.num_features, self.num_classes, self.num_hops = num_features, num_classes, num_layers
        self.dropout, self.layer_dropout = dropout, layer_dropout
        self.normalize_features = normalize_features
        generator = torch.Generator().manual_seed(seed)
        self.opening = Linear(num_features, hidden_channels, generator=generator)
        self.closing = Linear(hidden_channels, num_classes, generator=generator)
        options = dict(layer_options or {})
        layers = nn.ModuleList(
            self.layer(hidden_channels, position=position, generator=generator, **options)
            for position in range(1, num_layers + 1)
        )
        self.layers = cast(Sequence[Layer], layers)
        self._last: _LastPass | None = None
        self._fields = FieldCache()

    # ---------------------------------------------------------------- logits

    def forward(self, graph: Graph | Batch, nodes: Tensor | None = None) -> Tensor:
        """Return the n x k logits of all nodes, or the rows of ``nodes`` (indices or a mask).

        Of a sampled batch, return the logits of its roots. In evaluation, only the receptive field
        of the ``nodes`` is computed.
        """
        self.check_graph(graph)
        if nodes is not None:
            nodes = node_indices(nodes, graph)
        self._last = None  # frees the last pass before the next one needs memory
        if nodes is not None and not self.training:
            view = self._view(graph, nodes)
            if view.field.cost < VIEW_BELOW:
                return self._evaluate(view.features, view.field.hops)
        if self.training:
            logits = self._train(graph)
        else:
            logits = self._evaluate(self.features_of(graph), self._hops(graph))
        return logits if nodes is None else logits.index_select(0, nodes)

    def embed(self, graph: Graph) -> Tensor:
        """Return the input of the closing layer, n x channels, without dropout."""
        return self._embed(self.features_of(graph), self._hops(graph))

    def features_of(self, graph: Graph | Batch) -> SparseMatrix | Tensor:
        """Return the input of the opening layer: raw or row-normalized features."""
        return input_features(graph, self.normalize_features)

    def open(self, graph: Graph | Batch) -> Tensor:
        """Return the values before the first layer, without dropout."""
        return torch.relu_(self.opening(self.features_of(graph)))

    def step(self, place: int, f: Tensor, f_0: Tensor, hop: Hop) -> Tensor:
        """Return the output of the layer at a place (from 0), without dropout."""
        return self.layers[place](f, f_0, hop)

    def close(self, f: Tensor) -> Tensor:
        """Return the logits from the output of the last layer, without dropout."""
        logits: Tensor = self.closing(f)
        return logits

    def _evaluate(self, features: SparseMatrix | Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return the logits, without dropout."""
        logits: Tensor = self.closing(self._embed(features, hops))
        return logits

    def _embed(self, features: SparseMatrix | Tensor, hops: Sequence[Hop]) -> Tensor:
        f = f_0 = torch.relu_(self.opening(features))
        for layer, hop in zip(self.layers, hops, strict=True):
            f = layer(f, f_0, hop)
        return f

    def _train(self, graph: Graph | Batch) -> Tensor:
        """Return the logits, with dropout, and keep the values for :meth:`gradient_cosine`."""
        dropouts: dict[int, tuple[float, Tensor]] = {}

        def dropout(x: Tensor, place: int) -> Tensor:
            p = self._probability(place)
            if not p:
                return x
            dropouts[place] = p, self.draw_noise(x.shape, x)
            return drop(x, *dropouts[place])

        features = self.features_of(graph)
        if isinstance(features, Tensor):
            features = dropout(features, 0)
        else:  # a dropped zero stays zero
            features = features.with_values(dropout(features.values, 0))
        f = f_0 = torch.relu_(self.opening(features))
        traces: list[LayerTrace] = []
        # Without derivatives, the values of the pass are never read.
        has_derivatives = all(brings(type(layer), "derivatives") for layer in self.layers)
        keep = (traces,) if has_derivatives else ()
        hops = self._hops(graph)
        for place, (layer, hop) in enumerate(zip(self.layers, hops, strict=True), start=1):
            f = layer(dropout(f, place), f_0, hop, *keep)
        last = dropout(f, len(self.layers) + 1)
        logits: Tensor = self.closing(last)
        if has_derivatives:
            trace = NetworkTrace(dropouts, features, f_0, traces, last, logits)
            self._last = _LastPass(trace, graph, logits._version)
        return logits

    def _probability(self, place: int) -> float:
        """Return the dropout of a place: 0 is the input, then each layer's, last the closing's."""
        return self.dropout if place in (0, len(self.layers) + 1) else self.layer_dropout

    def _hops(self, graph: Graph | Batch) -> Sequence[Hop]:
        """Return the hop of each layer."""
        if isinstance(graph, Graph):
            return [Hop(graph)] * len(self.layers)
        if len(graph.hops) != len(self.layers):
            raise UsageError(
                f"This network has {len(self.layers)} layers, but the batch has {len(graph.hops)} "
                "hops. Sample one hop for each layer."
            )
        return graph.hops

    # ---------------------------------------------------------------- cross-validating gradients

    def gradient_cosine(
        self,
        logits: Tensor,
        nodes: Tensor,
        labels: Tensor,
        halves: tuple[Tensor, Tensor],
        weight: Tensor | None = None,
        shared: SharedHalves | None = None,
        factor: float = 1.0,
    ) -> Tensor | None:
        """Return the cosine of the gradients of two cross-entropies, without autograd.

        Uses the values and the dropout of the last training pass, on the receptive field of the
        nodes only; see :mod:`everynode.models.gradient_cosine`.

        Parameters
        ----------
        logits : Tensor
            The logits of the last training pass.
        nodes, labels : Tensor
            The labeled nodes and their classes.
        halves : tuple of Tensor
            The two halves, as positions among the nodes.
        weight : Tensor, optional
            Weight of each class in the cross-entropies.
        shared : SharedHalves, optional
            Each process holds some nodes of the halves. The value is then that of all processes,
            and the gradients of the processes add up to its gradient.
        factor : float
            Multiplies the cosine.

        Returns
        -------
        Tensor or None
            ``factor`` times the cosine, differentiable once. None where only autograd is right: a
            layer brings no derivatives, the logits were changed or belong to another pass, a
            parameter is frozen, or a module has hooks or a parametrization.
        """
        parameters = list(self.parameters())
        if self._last is None or not all(p.requires_grad for p in parameters):
            return None
        trace, graph, version = self._last
        if logits is not trace.logits or logits._version != version:
            return None
        if any(_is_changed(module) for module in self.modules()):
            return None
        if not type(self.opening) is type(self.closing) is Linear:
            return None
        view = self._view(graph, nodes)
        steps = zip(self.layers, view.field.hops, view.field.levels[:-1], trace.layers, strict=True)
        with torch.no_grad():
            derivatives = [
                layer.derivatives(hop, inputs, step.saved) for layer, hop, inputs, step in steps
            ]
        complete = [d for d in derivatives if d is not None]
        if len(complete) < len(derivatives):
            return None
        features = view.select(trace.features)
        sweeps = GradientCosine(self, parameters, trace, view.field, complete, features)
        return sweeps.cosine(labels, halves, weight, shared, factor)

    def _view(self, graph: Graph | Batch, nodes: Tensor) -> FieldView:
        """Return the receptive field of the nodes."""
        return self._fields.view(graph, nodes, self._hops(graph), self.features_of(graph))

    def clear_cache(self) -> None:
        """Forget the last pass and the receptive fields, and with them the graphs."""
        self._last, self._fields = None, FieldCache()

    def __getstate__(self) -> dict[str, object]:
        """Return the state for copies and pickles, without the cached graphs."""
        return {**super().__getstate__(), "_last": None, "_fields": FieldCache()}

    # ---------------------------------------------------------------- parameters, export

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return the paper's two groups: "gnn" (the L layers) and "rest" (opening, closing)."""
        return {
            "gnn": list(cast(nn.ModuleList, self.layers).parameters()),
            "rest": [*self.opening.parameters(), *self.closing.parameters()],
        }

    def check_export(self) -> None:
        """Refuse a network with a layer that brings no export."""
        for layer in self.layers:
            if not brings(type(layer), "export"):
                raise UsageError(
                    f"{type(self).__name__} cannot be exported: its layer {type(layer).__name__} "
                    "does not implement export(). Save the model instead."
                )

    def export(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the logits of a graph in plain tensors, with plain torch operations."""
        edges = EdgeList.of(edge_index, edge_weight.to(x.dtype), x.shape[0])
        if self.normalize_features:
            x = rows_divided_by_sum(x)
        f = f_0 = torch.relu(x @ self.opening.weight + self.opening.bias)
        for layer in self.layers:
            f = layer.export(f, f_0, edges)
        return f @ self.closing.weight + self.closing.bias


def _is_changed(module: nn.Module) -> bool:
    """Whether a hook or a parametrization changes the function of the module."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or "parametrizations" in module._modules
    )
