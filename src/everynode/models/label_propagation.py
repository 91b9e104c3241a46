"""Label propagation: the graph alone, without features (Zhou et al. 2004)."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.errors import DataError
from everynode.graph import Graph
from everynode.models.closed_form import ClosedFormModel, sample_weight
from everynode.models.feature_network import Propagation

#: The share that a label takes from its neighbors; validation chooses.
SHARES = (0.5, 0.8, 0.9, 0.97, 0.99)
#: Number of propagations.
STEPS = 50
#: Share of the uniform distribution in the result, which keeps logarithms finite.
SMOOTHING = 0.01


class LabelPropagation(ClosedFormModel):
    r"""Propagate the labels of the training nodes along the edges.

    From `Learning with Local and Global Consistency
    <https://papers.nips.cc/paper/2506-learning-with-local-and-global-consistency>`_:

    .. math:: Y^{(t+1)} = \alpha \tilde P Y^{(t)} + (1 - \alpha) Y^{(0)}

    :math:`Y^{(0)}` holds the one-hot training labels, times the weight of the class. The logits
    are the logarithms of the normalized rows after 50 steps. Validation chooses :math:`\alpha`.
    The model ignores the features. It stores labels of the nodes of one graph and cannot predict
    for another.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns, which are not used, and classes.

    Attributes
    ----------
    seeds, seed_labels, seed_weight : Tensor
        The training nodes, their classes and their weights.
    share : Tensor
        The selected :math:`\alpha`.
    num_nodes : Tensor
        The number of nodes of the graph.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), LabelPropagation(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    for_new_nodes = False
    num_stages = len(SHARES)
    seeds: Tensor
    seed_labels: Tensor
    seed_weight: Tensor
    #: The share :math:`\alpha`, and the number of nodes of the graph.
    share: Tensor
    num_nodes: Tensor

    def __init__(self, num_features: int, num_classes: int):
        super().__init__(num_features, num_classes)
        self.learn("seeds", torch.empty(0, dtype=torch.int64))
        self.learn("seed_labels", torch.empty(0, dtype=torch.int64))
        self.learn("seed_weight", torch.empty(0))
        self.learn("share", torch.tensor(SHARES[0]))
        self.learn("num_nodes", torch.tensor(0))

    def solve(
        self, graph: Graph, train_nodes: Tensor, *,
        seed: int = 0, class_weight: Tensor | None = None, stage: int = 0,
    ) -> None:  # fmt: skip
        """Remember the labels of the training nodes."""
        labels = graph.labels[train_nodes]
        self.learn("seeds", train_nodes.clone())
        self.learn("seed_labels", labels)
        self.learn("seed_weight", sample_weight(labels, class_weight).to(graph.dtype))
        self.learn("share", torch.tensor(SHARES[stage], dtype=graph.dtype).to(labels.device))
        self.learn("num_nodes", torch.tensor(graph.num_nodes).to(labels.device))

    def check_graph(self, graph: Graph) -> None:  # type: ignore[override]  # no batches here
        """Refuse another graph: its nodes have no labels."""
        if graph.num_nodes != int(self.num_nodes):
            raise DataError(
                f"Label propagation knows the labels of a graph of {int(self.num_nodes)} nodes, "
                f"but graph {graph.name!r} has {graph.num_nodes}. Use a model for new nodes."
            )

        pairs = (self.seeds, graph.num_nodes), (self.seed_labels, self.num_classes)
        if len({len(self.seeds), len(self.seed_labels), len(self.seed_weight)}) > 1 or any(
            ((values < 0) | (values >= size)).any() for values, size in pairs
        ):
            raise DataError(
                "The labels in label propagation do not belong to this graph: train again, or "
                "restore the folder of the model."
            )

    def logits(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Return the logarithms of the propagated labels."""
        start, share = self.start(graph.dtype), float(self.share)
        scores = start
        for _ in range(STEPS):
            scores = graph.gcn_operator.blend(scores, start, 1 - share)
        logits = self.finish(scores)
        return logits if nodes is None else logits.index_select(0, nodes)

    def start(self, dtype: torch.dtype) -> Tensor:
        """Return the weighted one-hot labels of the training nodes (n x k)."""
        start = self.seed_weight.new_zeros(int(self.num_nodes), self.num_classes).to(dtype)
        start[self.seeds, self.seed_labels] = self.seed_weight.to(dtype)
        return start

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the propagated scores; linear in ``z``."""
        scores, share = z, float(self.share)
        for _ in range(STEPS):
            scores = share * propagate(scores) + (1 - share) * z
        return scores

    def finish(self, scores: Tensor) -> Tensor:
        """Return the logarithms of normalized scores."""
        total = scores.sum(1, keepdim=True)
        uniform = torch.full_like(scores, 1 / self.num_classes)
        shares = torch.where(total > 1e-30, scores / total.clamp_min(1e-30), uniform)
        return ((1 - SMOOTHING) * shares + SMOOTHING * uniform).log()
