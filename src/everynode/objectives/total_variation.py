"""Total variation over the edges, plain and edge-aware; the graph gradient, and its energy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.disk_graph import ROWS, DiskGraph
from everynode.graph.operators import normalize_rows
from everynode.graph.sample import Sample
from everynode.objectives.term import Step, Term, mean_of
from everynode.settings import Settings, check_settings
from everynode.sparse import Pattern, SparseMatrix


def graph_gradient(f: Tensor, graph: Graph) -> Tensor:
    r"""Return the difference of weighted node features along every edge.

    .. math:: (\nabla_{G_w} f)_{ij} = w_i f_i - w_j f_j, \qquad w_i = 1 / \sqrt{d_i + 1}

    The result is m x c, with rows as in ``graph.undirected_edges``.
    """
    sample = Sample.of_graph(graph)
    ones = np.ones(sample.edges.shape[1])
    operator = sample.cached("graph gradient", lambda: _operator(sample, ones))
    return operator.to(f.dtype) @ f


def dirichlet_energy(f: Tensor, graph: Graph) -> Tensor:
    r"""Return the Dirichlet energy of node features on the graph.

    .. math:: E(f) = \sum_{(i,j) \in E} \tfrac12
              \left\| \frac{f_i}{\sqrt{1+d_i}} - \frac{f_j}{\sqrt{1+d_j}} \right\|_2^2
              = \| \nabla_{G_w} f \|_2^2

    The first sum counts every edge in both directions, hence the factor of one half; the gradient
    has one row per edge. Edge weights multiply the summands.
    """
    squared = graph_gradient(f, graph).square().sum(1)
    weight = graph.undirected_edges[1]
    return squared.sum() if weight is None else (squared * weight.to(f.dtype)).sum()


def total_variation(
    logits: Tensor, graph: Graph, *, sigma: float = Settings.tv_sigma, gate: str = Settings.tv_gate
) -> Tensor:
    r"""Penalize differences between predictions of neighbors, except at feature boundaries.

    .. math:: \mathcal{L}_{TV} = \frac{1}{|E|} \sum_{(i,j) \in E}
              \left\| (\nabla_{G_w} \hat y)_{ij} \right\|_1
              \exp\left( -\| (\nabla_{G_w} f^{in})_{ij} \|_2^2 / \sigma \right)

    The mean is over undirected edges without self-loops. Edge weights multiply the summands.

    Parameters
    ----------
    logits : Tensor
        n x k, of *every* node.
    graph : Graph
        The graph with its input features :math:`f^{in}`.
    sigma : float
        The squared feature distance that counts as a boundary.
    gate : str
        The features in the exponential: ``raw``; ``row`` (each row divided by its sum: with
        :math:`\sigma = 10` the gate is then nearly 1 everywhere); ``standardized`` (columns of
        unit variance); or ``none`` for the plain total variation without the exponential.

    Examples
    --------
    >>> graph = Graph.from_arrays([[1.0], [1.0]], [[0], [1]], [0, 1])
    >>> total_variation(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), graph)
    tensor(1.4142)
    """
    sample = Sample.of_graph(graph)
    value: Tensor = TotalVariation(sigma=sigma, gate=gate).bind(graph)(logits, sample)
    return value


class TotalVariation(Term):
    r""":func:`total_variation` as a term.

    Gate, edge weight and share are positive factors of an edge, so they move inside the norm. The
    term is then the :math:`\ell_1` norm of the product of one sparse matrix (e x r, two entries
    per row) and the predictions. All folds share the matrix of the full graph.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: ``default_weight``.
    sigma, gate
        See :func:`total_variation`.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[TotalVariation(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'tv': 0.5}
    """

    name = "tv"
    default_weight = Settings.tv
    needs = frozenset({"edges"})

    def __init__(
        self,
        weight: float | None = None,
        *,
        sigma: float = Settings.tv_sigma,
        gate: str = Settings.tv_gate,
    ):
        super().__init__(weight)
        check_settings("TotalVariation", tv_sigma=sigma, tv_gate=gate)
        self.sigma, self.gate = sigma, gate
        self._column_scale: np.ndarray | None = None

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Compute the scale of each feature column, if the gate standardizes them."""
        if self.gate == "standardized":
            if isinstance(graph, Graph):
                key = "one over standard deviation"
                self._column_scale = graph.cached(key, lambda: column_scale([graph.features]))
            else:
                self._column_scale = column_scale(_blocks(graph))
        return self

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term for the r x k logits of one pass."""
        return self.evaluate(Step([logits], sample))

    def evaluate(self, step: Step) -> Tensor:
        """Return the mean over the passes."""
        operator = self.operator(step.sample, step.log_y[0])
        return mean_of([variation(log_y, operator) for log_y in step.log_y])

    def operator(self, sample: Sample, like: Tensor) -> SparseMatrix:
        """Return the matrix that maps predictions to weighted jumps, in the type of ``like``."""
        key = ("total variation", self.gate, self.sigma)

        def convert() -> SparseMatrix:
            first: SparseMatrix = sample.cached(key, lambda: self._make(sample, like.dtype))
            # Convert the stored matrix, not a copy of lower precision.
            return first if first.dtype == like.dtype else first.to(like.dtype)

        operator: SparseMatrix = sample.cached((*key, like.dtype), convert)
        if operator.values.device != like.device:
            moved: SparseMatrix = sample.cached(
                (*key, like.dtype, like.device), lambda: operator.to(like.device)
            )
            return moved
        return operator

    def _make(self, sample: Sample, dtype: torch.dtype) -> SparseMatrix:
        factor = sample.edge_share.cpu().numpy()
        if self.gate != "none":
            squared = self._squared_feature_gradient(sample)
            factor = factor * np.exp(-squared / self.sigma)
        return _operator(sample, factor, None if sample.is_full else dtype)

    def _squared_feature_gradient(self, sample: Sample) -> np.ndarray:
        if self.gate == "standardized" and self._column_scale is None:
            raise UsageError("TotalVariation standardizes features: call bind(graph) first.")
        if sample.features is None:
            raise UsageError(
                "The gate of total variation needs the features of the sample: "
                "pass sample.with_features(x), or tv_gate='none'."
            )
        return squared_feature_gradient(sample, self.gate, self._column_scale)


def variation(log_y: Tensor, operator: SparseMatrix) -> Tensor:
    """Return the sum of absolute values of operator times predictions.

    ``log_y``: k x r log-probabilities.
    """
    value: Tensor = _TotalVariation.apply(log_y, operator)
    return value


class _TotalVariation(torch.autograd.Function):
    """Value and gradient in closed form, with half the passes over the data of autograd."""

    @staticmethod
    def forward(ctx, log_y: Tensor, operator: SparseMatrix) -> Tensor:  # type: ignore[no-untyped-def]
        jumps = operator.product_by_column(log_y.exp())
        # torch.linalg.vector_norm adds one by one: over 44 million float32 it loses a tenth.
        value = jumps.abs().sum()
        ctx.save_for_backward(log_y, jumps.sign_())
        ctx.operator = operator
        return value

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        log_y, sign = ctx.saved_tensors
        return log_y.exp() * (ctx.operator.transpose.product_by_column(sign) * grad), None


def _operator(sample: Sample, factor: np.ndarray, dtype: torch.dtype | None = None) -> SparseMatrix:
    """Return the e x r matrix of the graph gradient, its rows scaled by ``factor``.

    ``dtype``: None is that of the graph, without edges of factor 0.
    """
    edges, w = sample.edges.cpu().numpy(), sample.scale.cpu().numpy()
    i, j = edges
    if dtype is None:
        # Underflow in float32 could drop only one of the two entries of an edge.
        factor = np.where(np.abs(factor) < torch.finfo(torch.float32).tiny, 0.0, factor)
    values = np.stack([factor * w[i], -factor * w[j]], axis=1).ravel()
    columns, crow = edges.T.ravel(), np.arange(0, 2 * len(i) + 1, 2)
    shape = (len(i), sample.num_nodes)
    if dtype is None and sample.graph is not None:
        matrix = scipy.sparse.csr_array((values, columns, crow), shape=shape)
        return SparseMatrix.from_scipy(matrix, sample.graph.dtype).to(sample.edges.device)
    pattern = Pattern(torch.from_numpy(crow), torch.from_numpy(columns), shape)
    return SparseMatrix(pattern, torch.from_numpy(values).to(dtype)).to(sample.edges.device)


def squared_feature_gradient(
    sample: Sample, gate: str, scale: np.ndarray | None = None, chunk: int = ROWS
) -> np.ndarray:
    r"""Return :math:`\|(\nabla f^{in})_{ij}\|_2^2` of every edge, in float64.

    ``scale``: the factor of each column, for the ``standardized`` gate.
    """
    assert sample.features is not None
    features = normalize_rows(sample.features) if gate == "row" else sample.features
    i, j = sample.edges.cpu().numpy()
    return squared_differences(features, scale, sample.scale.cpu().numpy(), i, j, chunk)


def column_scale(blocks: Iterable[SparseMatrix | Tensor]) -> np.ndarray:
    """Return one over the standard deviation of each column; 0 for a constant column.

    The features come in ``blocks`` of rows. Nothing is centered: that would make sparse features
    dense.
    """
    rows, total, square = 0, np.zeros(()), np.zeros(())
    for block in blocks:
        x = _in_float64(block)
        squared = x.multiply(x) if scipy.sparse.issparse(x) else x * x
        rows += x.shape[0]
        total = total + np.asarray(x.sum(axis=0)).ravel()
        square = square + np.asarray(squared.sum(axis=0)).ravel()
    deviation = np.sqrt(np.maximum(square / max(rows, 1) - (total / max(rows, 1)) ** 2, 0.0))
    return np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)


def squared_differences(
    features: SparseMatrix | Tensor,
    scale: np.ndarray | None,
    w: np.ndarray,
    i: np.ndarray,
    j: np.ndarray,
    chunk: int = ROWS,
) -> np.ndarray:
    r"""Return :math:`\|w_i f_i - w_j f_j\|_2^2` for pairs of rows, a block of pairs at a time.

    ``scale``: the factor of each column of the features, or None.
    """
    x = _in_float64(features)
    sparse = scipy.sparse.issparse(x)
    if scale is not None:
        x = x @ scipy.sparse.diags_array(scale) if sparse else x * scale
    x = scipy.sparse.csr_array(scipy.sparse.diags_array(w) @ x) if sparse else w[:, None] * x
    out = np.empty(len(i))
    for start in range(0, len(i), chunk):
        block = slice(start, start + chunk)
        difference = x[i[block]] - x[j[block]]
        squared = difference.multiply(difference) if sparse else difference * difference
        out[block] = np.asarray(squared.sum(axis=1)).ravel()
    return out


def _in_float64(features: SparseMatrix | Tensor) -> Any:
    if isinstance(features, SparseMatrix):
        return features.to_scipy().astype(np.float64)
    return features.cpu().numpy().astype(np.float64)


def _blocks(graph: DiskGraph) -> Iterator[Tensor]:
    """Yield the features, some rows at a time."""
    for start in range(0, graph.num_nodes, ROWS):
        yield graph.rows(np.arange(start, min(start + ROWS, graph.num_nodes)))
