"""Weights for the types of link, learned on held-out labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch
from sklearn.model_selection import KFold

from everynode.errors import UsageError
from everynode.evaluation.hop_features import (
    held_out_probabilities,
    hop_features,
    reduced_features,
)
from everynode.graph import Graph
from everynode.graph.edge_types import check_type_names

#: The weights to try for a type, the passes over all types, and the folds of the labels.
GRID, PASSES, FOLDS = (1.0, 0.3, 0.1, 0.01), 2, 3
#: Equal weights stay unless the loss improves by this many standard errors.
CLEARLY = 2.0
#: With fewer labels the weights stay equal; of more labels than the second number, a sample counts.
FEWEST, MOST = 20, 1000


class LearnedTypes(NamedTuple):
    """A graph with weights for its types of link.

    Attributes
    ----------
    graph : Graph
        The graph.
    equal, learned : float
        The held-out loss with equal weights, and with the chosen ones.
    sentence : str
        What was found, for people.
    """

    graph: Graph
    equal: float
    learned: float
    sentence: str


def learn_edge_types(graph: Graph, nodes: torch.Tensor, *, seed: int = 0) -> LearnedTypes:
    r"""Choose the weight :math:`s_t` of each type of link.

    The judge is a logistic regression on :math:`[Z, \tilde P Z, \tilde P^2 Z]`, whose operator has
    the weights :math:`\sum_t s_t a_{et}` with mean 1. Its log-loss on held-out labels (three folds)
    is minimized one type after the other over 1, 0.3, 0.1 and 0.01. If the loss of the labels
    improves by less than two standard errors, the weights stay equal.

    Parameters
    ----------
    graph : Graph
        A graph with types.
    nodes : Tensor
        The labeled nodes to learn from: no test nodes.
    seed : int
        The seed of the folds.
    """
    types = graph.edge_types
    if types is None:
        raise UsageError("The graph has no types of link: read it with edge_type='column'.")
    check_type_names(types.names, "edge_type")
    known = nodes.cpu().numpy()
    known = known[graph.labels.cpu().numpy()[known] >= 0]
    random = np.random.default_rng(seed)
    known = np.sort(random.permutation(known)[:MOST])
    weights, first, best = dict.fromkeys(types.names, 1.0), np.zeros(1), np.zeros(1)
    if len(known) >= FEWEST:
        judge = _Judge(graph, known, seed)
        first = best = judge.losses(weights)
        for _ in range(PASSES):
            for name in types.names:
                for value in GRID:
                    trial = weights | {name: value}
                    trial = {key: s / max(trial.values()) for key, s in trial.items()}
                    losses = judge.losses(trial)
                    if trial != weights and losses.mean() < best.mean() - 1e-6:
                        weights, best = trial, losses
    gain = first - best
    is_clear = gain.mean() > CLEARLY * gain.std() / max(len(gain), 1) ** 0.5
    if not is_clear:
        weights, best = dict.fromkeys(types.names, 1.0), first
    mean = float(types.edge_weights(weights).mean())
    graph = graph.with_edge_type_weights({name: s / mean for name, s in weights.items()})
    return LearnedTypes(
        graph, float(first.mean()), float(best.mean()),
        _sentence(weights, len(known), float(first.mean()), float(best.mean()), is_clear=is_clear),
    )  # fmt: skip


class _Judge:
    """The held-out loss of the labels, for any weights of the types."""

    def __init__(self, graph: Graph, known: npt.NDArray[np.int64], seed: int):
        assert graph.edge_types is not None
        self.types, self.known = graph.edge_types, known
        self.n, self.directed = graph.num_nodes, graph.directed
        self.edges = graph.edges.cpu().numpy()
        self.points = reduced_features(graph, seed=seed)
        self.labels = np.unique(graph.labels.cpu().numpy()[known], return_inverse=True)[1]
        self.folds = list(KFold(FOLDS, shuffle=True, random_state=seed).split(known))

    def losses(self, weights: dict[str, float]) -> npt.NDArray[np.float64]:
        """Return the loss of each label."""
        features = hop_features(self.points, self._operator(weights), self.known)
        losses = np.zeros(len(self.known))
        for train, held_out in self.folds:
            p = held_out_probabilities(features, self.labels, train, held_out)
            losses[held_out] = -np.log(p[np.arange(len(held_out)), self.labels[held_out]])
        return losses

    def _operator(self, weights: dict[str, float]) -> scipy.sparse.csr_array:
        """Return the operator of GCN with these weights, scaled to mean 1."""
        values = self.types.edge_weights(weights).cpu().numpy().astype(np.float64)
        values /= values.mean()
        source, target = self.edges
        shape = (self.n, self.n)
        a = scipy.sparse.coo_array((values, (target, source)), shape=shape).tocsr()
        a = a + scipy.sparse.eye_array(self.n) + (0 if self.directed else a.T)
        scale = scipy.sparse.diags_array(np.asarray(a.sum(1)).ravel() ** -0.5)
        return scipy.sparse.csr_array(scale @ a @ scale).astype(np.float32)


def _sentence(
    weights: dict[str, float], count: int, equal: float, learned: float, *, is_clear: bool
) -> str:
    """Describe the weights."""
    if count < FEWEST:
        return f"Types of link weigh the same: {count} labels are too few to weigh them."
    if not is_clear:
        return (
            f"Types of link weigh the same: no other weights predict the {count} held-out labels "
            f"clearly better (loss {equal:.3f})."
        )
    listed = ", ".join(f"{name} {s:g}" for name, s in sorted(weights.items(), key=lambda x: -x[1]))
    return (
        f"Weights of the types of link, chosen on {count} held-out labels (loss {equal:.3f} to "
        f"{learned:.3f}): {listed}."
    )
