"""Cross-entropy on the labeled nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from everynode.errors import DataError, UsageError, require, unknown
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.objectives.term import Term

#: "balanced", or a weight for each class name, as a mapping or as pairs.
ClassWeight = Literal["balanced"] | Mapping[Any, float] | Sequence[tuple[Any, float]]


def cross_entropy(
    logits: Tensor, labels: Tensor, nodes: Tensor, weight: Tensor | None = None
) -> Tensor:
    r"""Return the mean negative log-likelihood of the labels of some nodes.

    .. math:: \mathcal{L}_{CE} = -\frac{1}{|V^{lab}|}
              \sum_{i \in V^{lab}} \sum_{s=1}^{k} y_{i,s} \log \hat y_{i,s}

    Parameters
    ----------
    logits : Tensor
        n x k.
    labels : Tensor
        The class index of each of the n nodes.
    nodes : Tensor
        :math:`V^{lab}`, as indices.
    weight : Tensor, optional
        A weight for each class. A node then counts :math:`w_{y_i}` times, and the sum is divided
        by :math:`\sum_{i \in V^{lab}} w_{y_i}`.

    Examples
    --------
    >>> import torch
    >>> cross_entropy(torch.zeros(3, 2), torch.tensor([0, 1, -1]), torch.tensor([0, 1]))
    tensor(0.6931)
    """
    return nn.functional.cross_entropy(
        logits[nodes], labels[nodes], None if weight is None else weight.to(logits.dtype)
    )


class CrossEntropy(Term):
    """:func:`cross_entropy` on the training nodes of one fold.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.

    Attributes
    ----------
    class_weight : Tensor or None
        The weight of each class, 1 on average over the training nodes; None: all weigh the same.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> CrossEntropy().bind(generate(20, 40, 8, 3), class_weight="balanced").class_weight.shape
    torch.Size([3])
    """

    name = "ce"
    needs = frozenset({"labels"})
    class_weight: Tensor | None

    def __init__(self, weight: float | None = None):
        super().__init__(weight)
        self.register_buffer("class_weight", None, persistent=False)

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Look up the weight of each class."""
        self.class_weight = class_weights(graph, fold, class_weight)
        return self

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the r x k logits of one pass."""
        weight = self.class_weight
        if weight is None and sample.is_full:  # the mean, in the rounding of torch
            return nn.functional.cross_entropy(logits[sample.labeled], sample.labels)
        total = nn.functional.cross_entropy(
            logits[sample.labeled],
            sample.labels,
            None if weight is None else weight.to(logits),
            reduction="sum",
        )
        return total * sample.label_share


def class_weights(
    graph: Graph | DiskGraph, fold: int, class_weight: ClassWeight | None
) -> Tensor | None:
    """Return the weight of each class, 1 on average over the training nodes; None for equal ones.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph whose classes are weighted.
    fold : int
        The fold with the training nodes.
    class_weight : None, "balanced" or mapping
        ``balanced``: every class weighs the same, no matter how many training nodes it has.
        A mapping (or pairs): the weight of each class name; a class that is missing weighs 1.
    """
    train = graph.nodes("train", fold)
    if not len(train):
        raise DataError(
            f"Fold {fold} of graph {graph.name!r} has no labeled training node: "
            "label a few nodes of each class first."
        )
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        expected = "None, 'balanced' or a weight for each class name"
        require(class_weight == "balanced", "class_weight", "ENC", expected, class_weight)
        return balanced(graph.labels[train], graph.num_classes)
    # A class name may come from a file or the command line, where every name is a string.
    position: dict[Hashable, int] = {str(name): i for i, name in enumerate(graph.classes)}
    position |= {name: i for i, name in enumerate(graph.classes)}
    weight = torch.ones(graph.num_classes, dtype=torch.float64)
    pairs = class_weight.items() if isinstance(class_weight, Mapping) else class_weight
    for name, number in pairs:
        if name not in position:
            unknown("class", name, map(str, graph.classes))
        good = 0 <= number < float("inf")
        require(good, "class_weight", "ENC", "finite numbers >= 0", number)
        weight[position[name]] = number
    weight = weight.to(graph.labels.device)
    mean = weight[graph.labels[train]].mean()
    if not mean > 0:
        raise UsageError(
            f"Every training node of fold {fold} has class weight 0: "
            "give a class with training nodes a weight above 0."
        )
    return weight / mean


def balanced(labels: Tensor, num_classes: int) -> Tensor:
    """Return class weights that give all classes the same total (scikit-learn's "balanced").

    The labels weigh 1 on average.

    >>> balanced(torch.tensor([0, 0, 0, 1]), 2)
    tensor([0.6667, 2.0000], dtype=torch.float64)
    """
    count = torch.bincount(labels, minlength=num_classes).double()
    return len(labels) / ((count > 0).sum() * count.clamp_min(1.0))
