"""Occlusion: the probabilities of a whole classifier for one node, under changes around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from everynode.explanations.changes import (
    ROWS_AT_ONCE,
    Change,
    Features,
    Surroundings,
)
from everynode.explanations.propagation import Floats, coefficients, propagated_logits
from everynode.graph import UNLABELED, Graph
from everynode.graph.preparation import FittedPreparation
from everynode.models.label_propagation import LabelPropagation
from everynode.models.model import Model, input_features
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.selection.ensemble import log_mean
from everynode.selection.portfolio_ensemble import Member, PortfolioEnsemble
from everynode.training.mini_batch.inference import logits


class Classifier(Protocol):
    """What an explanation needs of a fitted :class:`~everynode.NodeClassifier`.

    Attributes
    ----------
    networks_ : list of Model
        The networks.
    ensemble_ : PortfolioEnsemble or None
        The members of the portfolio's ensemble.
    temperature_ : float
        The temperature of the predictions.
    """

    networks_: list[Model]
    ensemble_: PortfolioEnsemble | None
    temperature_: float


@dataclass(frozen=True, eq=False)
class View:
    """The networks that see the features in one preparation.

    Attributes
    ----------
    graph : Graph
        The graph with prepared features.
    preparation : FittedPreparation or None
        The preparation; None: the features themselves.
    networks : tuple of Model
        The networks.
    weight, temperature : float
        The weight of the member in the ensemble, and the divisor of its logits.
    member : Member or None
        The member of the ensemble; None: a single model.
    """

    graph: Graph
    preparation: FittedPreparation | None
    networks: tuple[Model, ...]
    weight: float = 1.0
    temperature: float = 1.0
    member: Member | None = None

    @property
    def reads_features(self) -> bool:
        """Whether the features of the graph have an effect."""
        return self.preparation is None or self.preparation.name != "structure"

    def prepared(self, rows: Features, node: int) -> Features:
        """Return changed rows of a node as the networks see them."""
        if self.preparation is None or self.preparation.name == "raw":
            return rows
        if self.reads_features:
            return self.preparation.transform(rows)
        own = self.graph.rows(np.array([node]))
        dense = own if isinstance(own, Tensor) else own.to_dense()
        return dense.expand(rows.shape[0], -1)


@dataclass(frozen=True, eq=False)
class Occlusion:
    """The predictions of a classifier for single nodes of a graph, if something were missing.

    The result is that of the whole classifier on the changed graph, up to rounding, with two
    exceptions: features that are computed from the whole graph (the preparation ``structure``), and
    scalings that were fitted to all nodes, stay.

    Parameters
    ----------
    model : NodeClassifier
        The fitted classifier.
    graph : Graph
        The graph.
    """

    model: Classifier
    graph: Graph
    _starts: dict[int, Floats] = field(default_factory=dict)

    @cached_property
    def surroundings(self) -> Surroundings:
        """The edges of the graph, and the neutral values of its features."""
        return Surroundings(self.graph)

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The networks by the features that they see."""
        ensemble = self.model.ensemble_
        if ensemble is None:
            return (View(self.graph, None, tuple(self.model.networks_)),)
        prepared: dict[str, Graph] = {}
        views = []
        for member in ensemble.usable(self.graph):
            name = member.preparation.name
            if name not in prepared:
                prepared[name] = member.preparation.apply(self.graph)
            networks = tuple(result.network for result in member.results)
            views.append(
                View(
                    prepared[name], member.preparation, networks, member.weight,
                    member.temperature, member,
                )
            )  # fmt: skip
        return tuple(views)

    @staticmethod
    def is_linear(network: Model) -> bool:
        """Whether a network propagates linearly, so that no copies of the graph are needed."""
        if isinstance(network, PropagatedMLP):  # others of them compute in another order
            return type(network).compute is PropagatedMLP.compute
        return isinstance(network, LabelPropagation)

    def probabilities(self, node: int, changes: Sequence[Change]) -> Floats:
        """Return the class probabilities of a node under each change (changes x k).

        Parameters
        ----------
        node : int
            The node.
        changes : sequence of Change
            The changes. An empty one gives the prediction itself.
        """
        if not changes:
            return np.zeros((0, len(self.graph.classes)))
        rows = self.surroundings.changed_rows(node, changes)
        each = []
        for view in self.views:
            found = self.logits(view, view.networks, node, changes, rows)
            if view.member is None:
                each.append(log_mean(found))
            else:
                each.append(view.member.from_logits(found))
        ensemble = self.model.ensemble_
        if ensemble is None:
            (log_p,) = each
        else:
            members = [view.member for view in self.views if view.member is not None]
            log_p = ensemble.shifted(ensemble.together(members, each))
        probabilities: Floats = torch.softmax(log_p / self.model.temperature_, dim=1).numpy()
        return probabilities

    @torch.no_grad()
    def logits(
        self,
        view: View,
        networks: Iterable[Model],
        node: int,
        changes: Sequence[Change],
        rows: Features,
    ) -> list[Tensor]:
        """Return the logits of some networks of a view for a node under each change.

        ``rows``: the features of the node under each change.
        """
        networks, changed = tuple(networks), view.prepared(rows, node)
        found: dict[int, Tensor] = {}
        linear = [one for one in networks if self.is_linear(one)]
        if linear:
            found |= self._propagated(view, linear, node, changes, changed)
        for reach in dict.fromkeys(one.reach for one in networks if id(one) not in found):
            some = [one for one in networks if id(one) not in found and one.reach == reach]
            found |= self._copied(view, some, reach, node, changes, changed)
        return [found[id(one)] for one in networks]

    def _copied(
        self,
        view: View,
        networks: Sequence[Model],
        reach: int | None,
        node: int,
        changes: Sequence[Change],
        changed: Features,
    ) -> dict[int, Tensor]:
        """Compute networks on copies of the surroundings, some changes at a time."""
        ball = self.surroundings.ball(node, reach)
        count = max(1, ROWS_AT_ONCE // (len(ball) + 1))
        parts: dict[int, list[Tensor]] = {id(network): [] for network in networks}
        for first in range(0, len(changes), count):
            some = changes[first : first + count]
            graph, centers = self.surroundings.copies(
                node, some, ball, view.graph.features, rows_of(changed, first, len(some))
            )
            for network in networks:
                parts[id(network)].append(logits(network, graph, centers).cpu())
                network.clear_cache()
        return {key: torch.cat(each) for key, each in parts.items()}

    def _propagated(
        self,
        view: View,
        networks: Sequence[Model],
        node: int,
        changes: Sequence[Change],
        changed: Features,
    ) -> dict[int, Tensor]:
        """Compute networks that propagate linearly, all of them together."""
        starts, rows, weights = [], [], []
        small = small_graph(view.graph, changed)
        for network in networks:
            start = self._start(network, view.graph)
            starts.append(start)
            if isinstance(network, PropagatedMLP):
                x = input_features(small, network.normalize_features)
                rows.append(network.own_logits(x).double().numpy())
                weights.append(coefficients(network))
            else:
                assert isinstance(network, LabelPropagation)
                rows.append(np.repeat(start[node : node + 1], len(changes), axis=0))
                weights.append(coefficients(network))
        scores = propagated_logits(self.surroundings, node, changes, weights, starts, rows)
        dtype = self.graph.dtype
        found = {}
        for network, score in zip(networks, scores, strict=True):
            values = torch.from_numpy(score).to(dtype)
            if isinstance(network, LabelPropagation):
                values = network.finish(values)
            found[id(network)] = values
        return found

    def _start(self, network: nn.Module, graph: Graph) -> Floats:
        """Return what a network propagates, before the first step (n x k)."""
        if id(network) not in self._starts:
            if isinstance(network, PropagatedMLP):
                network.check_graph(graph)
                network.eval()
                x = input_features(graph, network.normalize_features)
                start = network.own_logits(x)
            else:
                assert isinstance(network, LabelPropagation)
                network.check_graph(graph)
                start = network.start(graph.dtype)
            self._starts[id(network)] = start.double().cpu().numpy()
        return self._starts[id(network)]


def rows_of(features: Features, first: int, count: int) -> Features:
    """Return some consecutive rows."""
    if isinstance(features, Tensor):
        return features[first : first + count]
    return features.rows(torch.arange(first, min(first + count, features.shape[0])))[0]


def small_graph(graph: Graph, features: Features) -> Graph:
    """Return a graph of nodes without edges, with the classes of another."""
    edges = torch.zeros(2, 0, dtype=torch.int64)
    return Graph(
        features, edges, torch.full((features.shape[0],), UNLABELED), graph.classes,
        directed=graph.directed, name=graph.name,
    )  # fmt: skip
