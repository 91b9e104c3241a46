"""The decisions that NodeClassifier supports beside the labels: how sure, why, what looks wrong."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from everynode.console import showable
from everynode.errors import UsageError, unknown
from everynode.evaluation.held_out_labels import HeldOutLabels
from everynode.evaluation.prediction_sets import calibrate_sets, neighbor_scores
from everynode.explanations.explanation import Explanation, explain
from everynode.explanations.occlusion import Occlusion
from everynode.graph import Graph
from everynode.selection.ensemble import log_probabilities_by_fold

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.estimator_training import Trained
    from everynode.selection.refit import Refit

#: With more nodes, or more nodes times classes, prediction sets do not use the neighbors: for that,
#: every network predicts every node.
MOST_NODES, MOST_CELLS = 50_000, 2_000_000


def held_out_labels(trained: Trained | Refit, temperature: float) -> HeldOutLabels:
    """Return the held-out labels of a fit, with the scores of their neighbors."""
    graph, (nodes, log_probabilities) = trained.graph, trained.held_out
    names = graph.node_ids
    ids = tuple(i if names is None else names[i] for i in nodes.tolist())
    neighbors = _neighbors(trained, temperature)
    return HeldOutLabels(
        nodes.cpu(), ids, graph.labels[nodes].cpu(), log_probabilities.cpu(), temperature,
        None if neighbors is None else neighbors.cpu(),
    )  # fmt: skip


def _neighbors(trained: Trained | Refit, temperature: float) -> Tensor | None:
    """Return the mean scores of the neighbors of held-out nodes, by the networks of their fold.

    Networks of other folds learned from the labels, and their predictions for the neighbors
    would give them away.
    """
    graph, nodes = trained.graph, trained.held_out.nodes
    batched = any(result.batches is not None for result in trained.results)
    if batched or not _is_small(graph):
        return None
    held_out = [split.val for split in graph.splits if len(split.val)]
    each = (
        log_probabilities_by_fold(trained.results, graph, None)
        if trained.ensemble is None
        else trained.ensemble.by_fold(graph, None)
    )
    if len(each) != len(held_out) or not torch.equal(torch.cat(held_out), nodes):
        return None  # some folds were not trained
    scores = [
        neighbor_scores(graph, torch.softmax(log_p / temperature, dim=1))[val]
        for log_p, val in zip(each, held_out, strict=True)
    ]
    return torch.cat(scores)


def _is_small(graph: Graph) -> bool:
    """Whether every network can predict every node in little time and memory."""
    cells = graph.num_nodes * max(len(graph.classes or ()), 1)
    return graph.num_nodes <= MOST_NODES and cells <= MOST_CELLS


def kept_labels(model: NodeClassifier) -> HeldOutLabels:
    """Return the held-out labels of a classifier, or say that it has none."""
    if model.held_out_labels_ is None or not len(model.held_out_labels_.nodes):
        raise UsageError(
            "The model has no held-out labels: train it with 'everynode fit' or "
            "NodeClassifier.fit of this version."
        )
    return model.held_out_labels_


def prediction_sets(
    model: NodeClassifier, graph: Graph, nodes: Tensor | None, coverage: float, *,
    per_class: bool, seed: int,
) -> np.ndarray:  # fmt: skip
    """Return whether each class belongs to the set of each node; see ``predict_set``."""
    kept = kept_labels(model)
    every = kept.neighbors is not None and _is_small(graph)
    rule = calibrate_sets(
        kept.probabilities, kept.labels, coverage, per_class=per_class, seed=seed,
        neighbors=kept.neighbors if every else None,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed + 1)
    uniform = torch.rand(graph.num_nodes, generator=generator, dtype=torch.float64)
    chosen = slice(None) if nodes is None else nodes.cpu()
    all_nodes = rule.neighbor_weight > 0
    # Scores are compared with those of labeled nodes, which know no shift of the class shares.
    unshifted = model.log_probabilities if model.ensemble_ is None else model.ensemble_.unshifted
    log_p = unshifted(graph, None if all_nodes else nodes)
    p = torch.softmax(log_p / model.temperature_, dim=1)
    neighbors = None
    if all_nodes:
        neighbors, p = neighbor_scores(graph, p)[chosen].cpu(), p[chosen]
    sets: np.ndarray = rule.sets(p.cpu(), uniform[chosen], neighbors).numpy()
    return sets


def find_node(graph: Graph, name: Hashable) -> int:
    """Return the index of a node from its name, its text, or its index if nodes have no names."""
    if graph.node_ids is None:
        text = str(name)
        if text.isdecimal() and int(text) < graph.num_nodes:
            return int(text)
        raise UsageError(
            f"There is no node {showable(text)!r}: the nodes are 0 to {graph.num_nodes - 1}."
        )
    names = graph.node_ids
    places = [i for i, one in enumerate(names) if one == name]
    places = places or [i for i, one in enumerate(names) if str(one) == str(name)]
    summary = graph.summary
    if not places and summary is not None and summary.name_column:
        shown = summary.shown[summary.name_column]
        places = [i for i, one in enumerate(shown) if one == name]
    if len(places) == 1:
        return places[0]
    if places:
        ids = ", ".join(str(names[i]) for i in places[:5])
        raise UsageError(f"{len(places)} nodes are named {name!r}: give the id of one ({ids}).")
    some = ", ".join(showable(str(one)) for one in names[:3])
    raise UsageError(f"There is no node {showable(str(name))!r}. The first nodes are {some}.")


def explanations(
    model: NodeClassifier, graph: Graph, nodes: Sequence[int], label: Hashable | None = None,
    **options: int,
) -> list[Explanation]:  # fmt: skip
    """Explain the predictions of some nodes; see ``NodeClassifier.explain``."""
    classes = model.classes_.tolist()
    code = None
    if label is not None:
        by_text = {str(one): i for i, one in enumerate(classes)}
        if str(label) not in by_text:
            unknown("class", str(label), by_text)
        code = by_text[str(label)]
    occlusion = Occlusion(model, graph)
    return [explain(occlusion, node, classes, label=code, **options) for node in nodes]
