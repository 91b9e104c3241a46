"""Total variation over the edges, plain and edge-aware; the graph gradient and its Dirichlet energy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import require, unknown
from everynode.graph import Graph
from everynode.numerics import log_softmax_by_class
from everynode.objectives.graph_term import OnGraph
from everynode.sparse import SparseMatrix

Gate = Literal["raw", "row", "standardised", "none"]
GATES: tuple[Gate, ...] = ("raw", "row", "standardised", "none")


def graph_gradient(f: Tensor, graph: Graph) -> Tensor:
    r"""The difference of weighted node features along every edge: m x c, rows as in ``graph.undirected_edges``.

    .. math:: (\nabla_{G_w} f)_{ij} = w_i f_i - w_j f_j, \qquad w_i = 1 / \sqrt{d_i + 1}
    """
    return _gradient_operator(graph, None).to(f.dtype) @ f


def dirichlet_energy(f: Tensor, graph: Graph) -> Tensor:
    r"""How rough ``f`` is on the graph.

    .. math:: E(f) = \sum_{(i,j) \in E} \tfrac12 \left\| \frac{f_i}{\sqrt{1+d_i}} - \frac{f_j}{\sqrt{1+d_j}} \right\|_2^2
              = \| \nabla_{G_w} f \|_2^2

    The first sum of the paper's equation sees every edge in both directions (hence the half), the gradient once. An edge's weight,
    where there is one, multiplies its part.
    """
    squared = graph_gradient(f, graph).square().sum(1)
    weight = graph.undirected_edges[1]
    return squared.sum() if weight is None else (squared * weight.to(f.dtype)).sum()


def total_variation(
    logits: Tensor, graph: Graph, *, sigma: float = 10.0, gate: Gate = "raw"
) -> Tensor:
    r"""Neighbours should get the same prediction, unless their input features say that a boundary runs between them.

    .. math:: \mathcal{L}_{TV} = \frac{1}{|E|} \sum_{(i,j) \in E} \left\| (\nabla_{G_w} \hat y)_{ij} \right\|_1
              \exp\left( -\| (\nabla_{G_w} f^{in})_{ij} \|_2^2 / \sigma \right)

    ``logits``: n x k, of every node. ``sigma``: how different features must be for a boundary. ``gate``: the :math:`f^{in}` of the
    exponential: the graph's ``raw`` features, ``row`` (row-normalised; with :math:`\sigma = 10` the gate is then nearly 1
    everywhere), ``standardised`` (columns of unit variance), or ``none`` for the plain total variation without the exponential.
    The mean is over undirected edges, self-loops excluded; an edge's weight, where there is one, multiplies its part.
    """
    return TotalVariation(graph, sigma=sigma, gate=gate)(logits)


class TotalVariation(OnGraph):
    """:func:`total_variation` with everything that depends on the graph alone computed once.

    Gate, edge weight and 1/m are all positive factors of an edge, so they go inside the norm and the whole term is the
    :math:`\\ell_1` norm of one sparse matrix (m x n, two entries a row) times the predictions.
    """

    def __init__(self, graph: Graph, *, sigma: float = 10.0, gate: Gate = "raw"):
        require(sigma > 0, "sigma", "TotalVariation", "> 0", sigma)
        if gate not in GATES:
            unknown("gate", gate, GATES)
        edges, weight = graph.undirected_edges
        factor = torch.full((edges.shape[1],), 1.0 / max(edges.shape[1], 1), dtype=torch.float64)
        if weight is not None:
            factor *= weight.cpu().double()
        if gate != "none":
            factor *= torch.from_numpy(np.exp(-_squared_feature_gradient(graph, gate) / sigma))
        factor[factor.abs() < torch.finfo(torch.float32).tiny] = (
            0.0  # so that no edge loses one of its two entries to rounding
        )
        super().__init__(_gradient_operator(graph, factor))

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return self.by_class(log_softmax_by_class(logits))

    def by_class(self, log_y: Tensor) -> Tensor:
        """The term for the k x n log-probabilities, which other terms need too."""
        return variation(log_y, self.operator_in(log_y.dtype))

    def edges(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The operator edge by edge, two numbers each: the nodes of its two entries, and their values; without edges of factor 0."""
        operator = self.operator_in(dtype)
        return operator.pattern.col, operator.values


def variation(log_y: Tensor, operator: SparseMatrix) -> Tensor:
    """The sum of the absolute values of operator times predictions, for k x n log-probabilities."""
    value: Tensor = _TotalVariation.apply(log_y, operator)
    return value


class _TotalVariation(torch.autograd.Function):
    """Value and gradient in closed form, in half the passes over nodes and edges that autograd would make."""

    @staticmethod
    def forward(ctx, log_y: Tensor, operator: SparseMatrix) -> Tensor:  # type: ignore[no-untyped-def]
        jumps = operator.product_by_column(log_y.exp())
        value = (
            jumps.abs().sum()
        )  # torch.linalg.vector_norm adds one by one: of 44 million float32 it loses a tenth
        ctx.save_for_backward(log_y, jumps.sign_())
        ctx.operator = operator
        return value

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        log_y, sign = ctx.saved_tensors
        return log_y.exp() * (ctx.operator.transpose.product_by_column(sign) * grad), None


def _node_weight(graph: Graph) -> Tensor:
    return (graph.degree.double() + 1.0).rsqrt()


def _gradient_operator(graph: Graph, factor: Tensor | None) -> SparseMatrix:
    """The m x n matrix of the graph gradient, its rows scaled by ``factor``."""
    i, j = graph.undirected_edges[0].cpu().numpy()
    m = len(i)
    w = _node_weight(graph).cpu().numpy()
    scale = np.ones(m) if factor is None else factor.numpy()
    data = np.stack([scale * w[i], -scale * w[j]], axis=1).ravel()
    columns = np.stack([i, j], axis=1).ravel()
    matrix = scipy.sparse.csr_array(
        (data, columns, np.arange(0, 2 * m + 1, 2)), shape=(m, graph.num_nodes)
    )
    return SparseMatrix.from_scipy(matrix, graph.dtype).to(graph.labels.device)


def _squared_feature_gradient(graph: Graph, gate: Gate, chunk: int = 65536) -> np.ndarray:
    """:math:`\\|(\\nabla f^{in})_{ij}\\|_2^2` of every edge, in float64."""
    features = graph.normalized_features if gate == "row" else graph.features
    scale = column_scale([features]) if gate == "standardised" else None
    i, j = graph.undirected_edges[0].cpu().numpy()
    return squared_differences(features, scale, _node_weight(graph).cpu().numpy(), i, j, chunk)


def column_scale(blocks: Iterable[SparseMatrix | Tensor]) -> np.ndarray:
    """One over the standard deviation of each column of features that come in blocks of rows; 0 for a column that is constant.

    Nothing is centred: that would cancel in no difference of weighted features, but would make sparse features dense.
    """
    rows, total, square = 0, np.zeros(()), np.zeros(())
    for block in blocks:
        x = _in_float64(block)
        rows += x.shape[0]
        total = total + np.asarray(x.sum(axis=0)).ravel()
        square = (
            square
            + np.asarray((x.multiply(x) if scipy.sparse.issparse(x) else x * x).sum(axis=0)).ravel()
        )
    deviation = np.sqrt(np.maximum(square / max(rows, 1) - (total / max(rows, 1)) ** 2, 0.0))
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)


def squared_differences(
    features: SparseMatrix | Tensor,
    scale: np.ndarray | None,
    w: np.ndarray,
    i: np.ndarray,
    j: np.ndarray,
    chunk: int = 65536,
) -> np.ndarray:
    """:math:`\\|w_i f_i - w_j f_j\\|_2^2` for pairs of rows of the features (their columns times ``scale``), a block at a time."""
    x = _in_float64(features)
    if scale is not None:
        x = x @ scipy.sparse.diags_array(scale) if scipy.sparse.issparse(x) else x * scale
    x = (
        scipy.sparse.csr_array(scipy.sparse.diags_array(w) @ x)
        if scipy.sparse.issparse(x)
        else w[:, None] * x
    )
    out = np.empty(len(i))
    for start in range(0, len(i), chunk):
        block = slice(start, start + chunk)
        difference = x[i[block]] - x[j[block]]
        squared = (
            difference.multiply(difference)
            if scipy.sparse.issparse(difference)
            else difference * difference
        )
        out[block] = np.asarray(squared.sum(axis=1)).ravel()
    return out


def _in_float64(features: SparseMatrix | Tensor) -> Any:
    return (
        features.to_scipy() if isinstance(features, SparseMatrix) else features.cpu().numpy()
    ).astype(np.float64)
