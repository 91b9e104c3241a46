"""Logistic regression on the features and their means over one and two hops."""

from __future__ import annotations

from everynode.models.logistic import Logistic


class LogisticHops(Logistic):
    r"""Logistic regression on :math:`[x, \tilde P x, \tilde P^2 x]`.

    .. math:: z = x W_0 + \tilde P x W_1 + \tilde P^2 x W_2 + b

    with the penalty of :class:`~everynode.models.logistic.Logistic`. Each distance has separate
    weights, as in `SIGN: Scalable Inception Graph Neural Networks
    <https://arxiv.org/abs/2004.11198>`_, so the model can ignore or contrast neighbors. Products
    with few columns come first: :math:`\tilde P^2 x` is never stored for all nodes.

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
    >>> graph, model = generate(20, 40, 8, 3), LogisticHops(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    hops = 2
