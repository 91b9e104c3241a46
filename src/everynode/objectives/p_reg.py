"""P-reg, the Laplacian-like regularizer that the paper compares TV with."""

from __future__ import annotations

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.numerics import at_least_single
from everynode.objectives.term import Term
from everynode.sparse import SparseMatrix


def p_reg(logits: Tensor, graph: Graph) -> Tensor:
    r"""Penalize the distance of each prediction from the mean over the node and its neighbors.

    Yang et al., "Rethinking Graph Regularization for Graph Neural Networks", 2021,
    https://arxiv.org/abs/2009.02027, as the paper writes it:

    .. math:: \mathcal{L}_{P-reg} = \| \hat y - \tilde D^{-1} \tilde A \hat y \|_2^2

    It is a sum over nodes and classes, not a mean.

    Parameters
    ----------
    logits : Tensor
        n x k, of *every* node.
    graph : Graph
        The graph.

    Examples
    --------
    >>> import torch
    >>> graph = Graph.from_arrays(torch.eye(2), [[0], [1]], [0, 1])
    >>> p_reg(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), graph)
    tensor(1.)
    """
    value: Tensor = PReg()(logits, Sample.of_graph(graph))
    return value


class PReg(Term):
    """:func:`p_reg` as a term. It needs every node at once, so it refuses mini-batches.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[PReg(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'preg': 0.5}
    """

    name = "preg"
    needs = frozenset({"edges", "every_node"})

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the n x k logits of one pass."""
        self.check_sample(sample)
        y = torch.softmax(logits, dim=-1, dtype=at_least_single(logits.dtype))
        return (y - _mean_operator(sample, y) @ y).square().sum()


def _mean_operator(sample: Sample, like: Tensor) -> SparseMatrix:
    """Return the matrix of the mean over a node and its neighbors, in the type of ``like``."""
    assert sample.graph is not None
    matrix: SparseMatrix = sample.graph.mean_operator
    if matrix.dtype == like.dtype and matrix.values.device == like.device:
        return matrix
    converted: SparseMatrix = sample.cached(
        ("mean operator", like.dtype, like.device), lambda: matrix.to(like.dtype).to(like.device)
    )
    return converted
