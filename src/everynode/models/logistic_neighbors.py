"""Logistic regression on the features and the neighbor means, which exclude the node itself."""

from __future__ import annotations

from everynode.models.logistic_hops import LogisticHops


class LogisticNeighbors(LogisticHops):
    r"""Logistic regression on :math:`[x, D^{-1} A x, (D^{-1} A)^2 x]`.

    :class:`~everynode.models.logistic_hops.LogisticHops` mixes a node with its neighbors; here the
    first mean excludes the node. All blocks of columns share one scale, so the short rows of the
    means weigh less than the node. Both choices suit heterophilic graphs.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    normalize_features : bool
        Divide each row of the features by its sum.

    Attributes
    ----------
    weight, bias : Tensor
        W, with one block of rows for each hop, and b.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), LogisticNeighbors(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    operator, export_weight = "neighbor_operator", "neighbor_weight"
    scale_blocks = False
