"""Logistic regression on the features and their means over one and two hops."""

from __future__ import annotations

from everynode.models.logistic import Logistic


class LogisticHops(Logistic):
    r"""Logistic regression on :math:`[x, \tilde P x, \tilde P^2 x]`.

    .. math:: z = x W_0 + \tilde P x W_1 + \tilde P^2 x W_2 + b

    with the penalty of :class:`~everynode.models.logistic.Logistic`. Each distance has weights of
    its own, as in `SIGN: Scalable Inception Graph Neural Networks
    <https://arxiv.org/abs/2004.11198>`_, so that it can ignore the neighbors or differ from them.
    Products with few columns come first: :math:`\tilde P^2 x` is never stored for all nodes.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), LogisticHops(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    hops = 2
