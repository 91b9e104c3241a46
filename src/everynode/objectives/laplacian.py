"""Laplacian regularization: neighbors should have similar predictions."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.numerics import at_least_single
from everynode.objectives.term import Term


def laplacian(logits: Tensor, graph: Graph) -> Tensor:
    r"""Penalize the squared difference of predictions along the edges.

    Zhu, Ghahramani and Lafferty, "Semi-Supervised Learning Using Gaussian Fields and Harmonic
    Functions", 2003, applied to the predictions of a network:

    .. math:: \mathcal{L}_{LAP} = \frac{1}{|E|} \sum_{(i,j) \in E} a_{ij}
              \| \hat y_i - \hat y_j \|_2^2

    Total variation takes the norm instead of its square, so it preserves sharp boundaries.

    Parameters
    ----------
    logits : Tensor
        n x k, of every node.
    graph : Graph
        The graph, with edge weights :math:`a_{ij}` or all 1.

    Examples
    --------
    >>> graph = Graph.from_arrays(torch.eye(2), [[0], [1]], [0, 1])
    >>> laplacian(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), graph)
    tensor(2.)
    """
    value: Tensor = Laplacian()(logits, Sample.of_graph(graph))
    return value


class Laplacian(Term):
    """:func:`laplacian` as a term.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[Laplacian(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'laplacian': 0.5}
    """

    name = "laplacian"
    needs = frozenset({"edges"})

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the r x k logits of one pass."""
        y = torch.softmax(logits, dim=-1, dtype=at_least_single(logits.dtype))
        source, target = sample.edges
        return sample.mean_over_edges((y[source] - y[target]).square().sum(1))
