"""Logistic regression on the features alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from torch import Tensor

from everynode.graph import Graph
from everynode.models.closed_form import ABSENT, COLUMNS, ClosedFormModel, hop_rows, sample_weight
from everynode.models.edge_list import EdgeList
from everynode.models.linear import rows_divided_by_sum
from everynode.models.model import input_features
from everynode.sparse import SparseMatrix

#: Inverse strengths of regularization for rows of length 1; validation chooses.
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
#: Steps of the solver, and the same times training rows and classes. Ten steps are always taken.
MAX_STEPS, MAX_CELLS = 300, 300_000_000
#: A dense matrix of training rows may have this many entries; otherwise products stay sparse.
MAX_ENTRIES = 10_000_000
#: With more walks from the training nodes, rows of powers of P are not built: they may be dense.
MAX_WALKS = 50_000_000
#: Training rows up to which a basis of them pays.
MAX_BASIS = 1000


class Logistic(ClosedFormModel):
    r"""Multinomial logistic regression with an L2 penalty.

    .. math:: z = x W + b, \qquad
              \min_{W, b}\; C \sum_{i \in V_l} \mathrm{CE}(z_i, y_i) + \tfrac 1 2 \lVert W \rVert^2

    Equal to scikit-learn's ``LogisticRegression`` after one step: the features are divided by the
    root mean square of the lengths of the training rows, so that :math:`C` does not depend on
    their scale. Validation chooses :math:`C`.

    Parameters
    ----------
    num_features, num_classes, normalize_features
        See :class:`~everynode.models.closed_form.ClosedFormModel`.
    **options
        See :class:`~everynode.models.closed_form.ClosedFormModel`.

    Attributes
    ----------
    weight, bias : Tensor
        W, with a block of rows for each hop, and b.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), Logistic(8, 3)
    >>> model.solve(graph, graph.nodes("train"))
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    num_stages = len(STRENGTHS)
    #: Number of propagations.
    hops = 0
    #: The operator of a propagation, a property of the graph, and its weights in an export.
    operator, export_weight = "gcn_operator", "gcn_weight"
    #: Whether every block of columns gets its own scale; else they share the scale of the features.
    scale_blocks = True
    weight: Tensor
    bias: Tensor

    def __init__(self, num_features: int, num_classes: int, **options: Any):
        super().__init__(num_features, num_classes, **options)
        self.learn("weight", torch.zeros((self.hops + 1) * num_features, num_classes))
        self.learn("bias", torch.zeros(num_classes))
        self._design: _Design | None = None

    def solve(
        self, graph: Graph, train_nodes: Tensor, *,
        seed: int = 0, class_weight: Tensor | None = None, stage: int = 0,
    ) -> None:  # fmt: skip
        """Minimize the penalized cross-entropy by L-BFGS, from the solution of the last stage."""
        labels = graph.labels[train_nodes]
        present, target = torch.unique(labels, return_inverse=True)
        if self._design is None or stage == 0:
            self._design = _Design.of(self, graph, train_nodes)
        design, classes = self._design, len(present)
        cost = STRENGTHS[stage] * sample_weight(labels, class_weight)

        def loss(parameters: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            values = torch.from_numpy(parameters).to(labels.device).requires_grad_()
            w, b = values[:-classes].view(-1, classes), values[-classes:]
            log_y = torch.log_softmax(design.apply(w) + b, dim=1)
            entropy = -(cost * log_y.gather(1, target[:, None])[:, 0]).sum()
            total = entropy + 0.5 * (w**2).sum()
            total.backward()
            assert values.grad is not None
            return total.item(), values.grad.cpu().numpy()

        start = design.reduced(self.weight.double()[:, present]).reshape(-1)
        bias = self.bias.double()[present] if stage else start.new_zeros(classes)
        steps = min(max(MAX_CELLS // (len(labels) * classes), 10), MAX_STEPS)
        options = {"maxiter": steps, "ftol": 1e-7, "gtol": 1e-4}
        solution = minimize(
            loss, torch.cat([start * min(stage, 1), bias]).cpu().numpy(), jac=True,
            method="L-BFGS-B", options=options,
        ).x  # fmt: skip
        values = torch.from_numpy(solution).to(labels.device)
        weight = values.new_zeros(len(self.weight), self.num_classes)
        weight[:, present] = design.expanded(values[:-classes].view(-1, classes))
        bias = values.new_full((self.num_classes,), ABSENT)
        bias[present] = values[-classes:]
        self.learn("weight", weight.to(graph.dtype))
        self.learn("bias", bias.to(graph.dtype))

    @property
    def reach(self) -> int:
        """The number of propagations."""
        return self.hops

    def clear_cache(self) -> None:
        """Forget the training rows."""
        self._design = None

    def __getstate__(self) -> dict[str, object]:
        """Return the state for copies and pickles, without the training rows."""
        return {**super().__getstate__(), "_design": None}

    def logits(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """Return x W + b, where later blocks of W are propagated."""
        features = input_features(graph, self.normalize_features)
        parts = [features @ block for block in self.weight.split(self.num_features)]
        logits = _spread(parts, self._operator(graph).__matmul__) + self.bias
        return logits if nodes is None else logits.index_select(0, nodes)

    def check_export(self) -> None:
        """Accept: the model is linear."""

    def export(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Return the logits of a graph in plain tensors, with plain torch operations."""
        if self.normalize_features:
            x = rows_divided_by_sum(x)
        edges = EdgeList.of(edge_index, edge_weight.to(x.dtype), x.shape[0])
        parts = [x @ block for block in self.weight.split(self.num_features)]
        weight: Tensor = getattr(edges, self.export_weight)()
        return _spread(parts, partial(edges.propagate, weight)) + self.bias

    def _operator(self, graph: Graph) -> SparseMatrix:
        operator: SparseMatrix = getattr(graph, self.operator)
        return operator


class _Design:
    r"""The training rows of :math:`[x, \tilde P x, ...]`, with a scale for each block.

    A minimizer of the penalized loss lies in the span of the training rows. With fewer rows than
    columns, W is therefore sought in an orthonormal basis of this span, which is exact.
    """

    def __init__(
        self, apply: Callable[[Tensor], Tensor], scale: Tensor, basis: Tensor | None = None
    ):
        #: From W, or its coordinates in the basis, to the training rows of the logits without b.
        self.apply = apply
        #: The factor of each row of W, and the basis; None: W itself.
        self.scale, self.basis = scale[:, None], basis

    @classmethod
    def of(cls, model: Logistic, graph: Graph, nodes: Tensor) -> _Design:
        """Return the rows of some nodes: dense where they are few, as sparse products else."""
        c, count = model.num_features, model.hops + 1
        features = input_features(graph, model.normalize_features)
        if isinstance(features, SparseMatrix) and len(nodes) * c * count > MAX_ENTRIES:
            return cls._sparse(features, model._operator(graph), nodes, count)
        rows = _rows(features, model._operator(graph), nodes, model.hops)
        blocks = rows.chunk(count, dim=1)
        scaled = blocks if model.scale_blocks else blocks[:1] * count
        scale = torch.cat([_scale((block**2).sum(1)).expand(c) for block in scaled])
        rows *= scale  # in place: with many training nodes, these rows take most of the memory
        if len(nodes) >= rows.shape[1] or len(nodes) > MAX_BASIS:
            return cls(rows.__matmul__, scale)
        basis, triangle = torch.linalg.qr(rows.T)
        return cls(triangle.T.__matmul__, scale, basis)

    @classmethod
    def _sparse(
        cls, features: SparseMatrix, operator: SparseMatrix, nodes: Tensor, count: int
    ) -> _Design:
        """Return the rows as products, since the rows of the later hops would be dense."""
        x, operator = features.to(torch.float64), operator.to(torch.float64)
        c = features.shape[1]
        squares = x.values.new_zeros(x.shape[0]).index_add_(0, x.pattern.row, x.values**2)
        factor = _scale(squares[nodes])

        def apply(weight: Tensor) -> Tensor:
            parts = [x @ block for block in (weight * factor).split(c)]
            return _spread(parts, operator.__matmul__)[nodes]

        return cls(apply, factor.expand(count * c))

    def reduced(self, weight: Tensor) -> Tensor:
        """Return the coordinates of W."""
        unscaled = weight / self.scale
        return unscaled if self.basis is None else self.basis.T @ unscaled

    def expanded(self, coordinates: Tensor) -> Tensor:
        """Return W from its coordinates."""
        unscaled = coordinates if self.basis is None else self.basis @ coordinates
        return unscaled * self.scale


def _rows(
    features: SparseMatrix | Tensor, operator: SparseMatrix, nodes: Tensor, hops: int
) -> Tensor:
    """Return the rows of some nodes in x, Px, ..., side by side, dense and in float64."""
    if isinstance(features, Tensor):
        return hop_rows(features, operator, nodes, hops, torch.float64)
    x, matrix = features.to_scipy(), operator.to_scipy()
    where = nodes.cpu().numpy()
    if hops and _num_walks(matrix, hops)[where].sum() > MAX_WALKS:
        parts = [
            _rows(torch.from_numpy(x[:, start : start + COLUMNS].toarray()), operator, nodes, hops)
            for start in range(0, x.shape[1], COLUMNS)
        ]
        blocks = zip(*(part.chunk(hops + 1, dim=1) for part in parts), strict=True)
        return torch.cat([part for block in blocks for part in block], dim=1)
    rows, reached = [x[where]], matrix[where]
    for hop in range(hops):
        reached = reached @ matrix if hop else reached
        rows.append(reached @ x)
    dense = [torch.from_numpy(block.toarray()).double().to(nodes.device) for block in rows]
    return torch.cat(dense, dim=1)


def _num_walks(matrix: Any, hops: int) -> npt.NDArray[np.float64]:
    """Return the number of walks from each node: the most entries of its row of the power.

    Two hops from a leaf of a star reach every node.
    """
    steps, walks = (matrix != 0).astype(np.float64), np.ones(matrix.shape[0])
    for _ in range(hops):
        walks = steps @ walks
    return walks


def _spread(parts: list[Tensor], propagate: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the sum of the parts, each propagated as often as its position says."""
    total = parts[-1]
    for part in parts[-2::-1]:
        total = part + propagate(total)
    return total


def _scale(squares: Tensor) -> Tensor:
    """Return the inverse root mean square of row lengths; 1 for empty rows."""
    mean = squares.mean()
    return torch.where(mean > 0, mean.clamp_min(1e-30) ** -0.5, 1.0)
