"""Gradient-boosted trees on the features and their means over one and two hops."""

from __future__ import annotations

from everynode.models.boosting import Boosting


class BoostingHops(Boosting):
    r"""Boosted trees on :math:`[x, D^{-1} A x, (D^{-1} A)^2 x]`.

    Trees on neighborhood means are hard to beat where features are numbers of different kinds
    (`GraphLand <https://arxiv.org/abs/2409.14500>`_). The means are those of the columns after the
    reduction. Attributes are those of :class:`~everynode.models.boosting.Boosting`.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    normalize_features : bool
        Divide each row of the features by its sum.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), BoostingHops(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    hops = 2
