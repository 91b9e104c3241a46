"""Integrated gradients: which features and nodes are worth an occlusion, where there are many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from everynode.explanations.changes import Change
from everynode.explanations.occlusion import Occlusion, View
from everynode.explanations.parts import Part
from everynode.explanations.propagation import Floats, coefficients, propagated_rows
from everynode.graph import Graph
from everynode.models.boosting import Boosting
from everynode.models.label_propagation import LabelPropagation
from everynode.sparse import SparseMatrix

#: Points of the path from no features to all.
STEPS = 8
#: Further edges are left out of the path: this only chooses what is occluded.
MOST_HOPS = 2
#: Numbers of the features on a path that are kept at once.
MOST_ENTRIES = 16_000_000
#: Parts that are tried on a model without gradients.
MOST_TRIED = 128


def part_scores(
    occlusion: Occlusion, node: int, label: int, own: Sequence[Part], others: Sequence[Part]
) -> tuple[Floats, Floats]:
    r"""Return a score for each of a node's own parts, and for each part that is another node.

    Integrated gradients of the first network of each member, weighted as in the ensemble:

    .. math:: a_{uj} = x_{uj} \int_0^1 \frac{\partial \log p_v(c; \alpha X)}{\partial x_{uj}}
              \, d\alpha

    The score of a part is the absolute sum over its features, that of a node over all its features.
    Boosted trees have no gradient: there, each of the node's own parts is taken away. Label
    propagation adds the share of each labeled node.

    Parameters
    ----------
    occlusion : Occlusion
        The classifier and the graph.
    node, label : int
        The node, and the class to explain.
    own, others : sequence of Part
        The parts.
    """
    mine, theirs = np.zeros(len(own)), np.zeros(len(others))
    for view in occlusion.views:
        network = view.networks[0]
        if isinstance(network, Boosting):
            mine += view.weight * _tried(occlusion, view, node, label, own)
        elif isinstance(network, LabelPropagation):
            theirs += view.weight * _label_shares(occlusion, network, node, others)
        else:
            ball, values = _integrated(occlusion, view, node, label)
            if view.reads_features:
                row = values[np.searchsorted(ball, node)]
                mine += view.weight * np.abs([row[list(part.features)].sum() for part in own])
            of_node = np.zeros(occlusion.graph.num_nodes)
            of_node[ball] = values.sum(1)
            theirs += view.weight * np.abs([of_node[list(part.nodes)].sum() for part in others])
    return mine, theirs


def _integrated(
    occlusion: Occlusion, view: View, node: int, label: int
) -> tuple[np.ndarray, Floats]:
    """Return the nodes near a node, and the attribution of each of their features."""
    network, width = view.networks[0], view.graph.num_features
    reach = MOST_HOPS if network.reach is None else min(network.reach, MOST_HOPS)
    surroundings = occlusion.surroundings
    balls = (surroundings.ball(node, radius) for radius in range(reach, -1, -1))
    ball = next((one for one in balls if len(one) * width <= MOST_ENTRIES), np.array([node]))
    features = view.graph.rows(ball)
    graph, center = surroundings.copies(
        node, [Change()], ball, view.graph.features, view.graph.rows(np.array([node]))
    )
    dense = features.to_dense() if isinstance(features, SparseMatrix) else features
    x = torch.cat([dense, dense.new_zeros(1, width)])
    x[center] = dense[np.searchsorted(ball, node)]
    total = torch.zeros_like(x)
    network.eval()
    for step in range(STEPS):
        total += _gradient(network, graph, x * ((step + 0.5) / STEPS), center, label, view)
    network.clear_cache()
    values: Floats = (x * total / STEPS)[:-1].double().numpy()
    return ball, values


def _gradient(
    network: torch.nn.Module, graph: Graph, x: Tensor, center: Tensor, label: int, view: View
) -> Tensor:
    """Return the gradient of the log-probability of a class; zeros without a gradient."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        logits = network(graph.with_features(leaf), center)
        log_p = torch.log_softmax(logits / view.temperature, dim=1)[0, label]
        if not log_p.requires_grad:
            return torch.zeros_like(x)
        (gradient,) = torch.autograd.grad(log_p, leaf, allow_unused=True, materialize_grads=True)
    return gradient


def _tried(occlusion: Occlusion, view: View, node: int, label: int, own: Sequence[Part]) -> Floats:
    """Return the change of the log-probability without each part, for the parts that stand out."""
    away = np.abs(occlusion.surroundings.row(node) - occlusion.surroundings.neutral)
    order = np.argsort([-away[list(part.features)].max() for part in own], kind="stable")
    tried = order[:MOST_TRIED]
    changes = [Change(), *(own[i].change for i in tried)]
    rows = occlusion.surroundings.changed_rows(node, changes)
    (logits,) = occlusion.logits(view, view.networks[:1], node, changes, rows)
    log_p = torch.log_softmax(logits.double() / view.temperature, dim=1)[:, label].numpy()
    scores = np.zeros(len(own))
    scores[tried] = np.abs(log_p[1:] - log_p[0])
    return scores


def _label_shares(
    occlusion: Occlusion, network: LabelPropagation, node: int, others: Sequence[Part]
) -> Floats:
    """Return the share of each labeled node in the propagated labels."""
    weights = coefficients(network)
    rows = propagated_rows(occlusion.surroundings, node, [Change()], len(weights) - 1)
    share = sum(weight * row[:, 0] for weight, row in zip(weights, rows, strict=True))
    is_seed = np.zeros(occlusion.graph.num_nodes)
    is_seed[network.seeds.cpu().numpy()] = 1.0
    shares = share * is_seed
    total = max(float(shares.sum()), 1e-30)
    return np.array([shares[list(part.nodes)].sum() / total for part in others])
