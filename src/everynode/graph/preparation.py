"""Preparations of features: scalings that are fitted once and applied to any graph.

A preparation consists of a name and the numbers that it learned from the features. It uses no
labels and no edges, except ``structure``, which replaces the features by structural ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from everynode.errors import DataError, unknown
from everynode.graph.graph import Graph
from everynode.graph.operators import normalize_rows
from everynode.graph.structural_features import structural_features
from everynode.sparse import SparseMatrix

Features = SparseMatrix | Tensor

#: More columns than this count as a bag of words or an embedding.
FEW_COLUMNS = 64
#: Quantiles that the preparation ``quantile`` keeps of each column.
NUM_QUANTILES = 256
#: Distance of the quantiles from 0 and 1, which have no finite normal quantile.
EDGE = 1e-4


@dataclass(frozen=True, eq=False)
class FittedPreparation:
    """A preparation with the numbers that it learned.

    Attributes
    ----------
    name : str
        One of :data:`PREPARATIONS`.
    tensors : mapping of str to Tensor
        The learned numbers, for safetensors.
    num_features : int
        Columns before the preparation; -1 if any number is allowed.

    Examples
    --------
    >>> graph = Graph.from_arrays([[1.0, 3.0], [0.0, 2.0]], [[0], [1]])
    >>> fit_preparation("row", graph.features).apply(graph).features
    tensor([[0.2500, 0.7500],
            [0.0000, 1.0000]])
    """

    name: str
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    num_features: int = -1

    @property
    def for_new_nodes(self) -> bool:
        """Whether the columns have the same meaning on another graph."""
        return self.name != "structure"

    def apply(self, graph: Graph) -> Graph:
        """Return the graph with prepared features, which shares the operators of its edges."""
        if self.name == "raw":
            return graph
        if self.num_features not in (-1, graph.num_features):
            raise DataError(
                f"This preparation was fitted to {self.num_features} features a node, but graph "
                f"{graph.name!r} has {graph.num_features}. Use the columns it was fitted to."
            )
        if self.name == "structure":
            return graph.with_features(_structure(graph))
        return graph.with_features(self.transform(graph.features))

    def transform(self, features: Features) -> Features:
        """Return prepared features of any nodes; ``structure`` needs the graph instead."""
        return PREPARATIONS[self.name].transform(features, self.tensors)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the tensors, for JSON."""
        return {"name": self.name, "num_features": self.num_features}

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> FittedPreparation:
        """Return the preparation that :meth:`to_dict` described, with its tensors."""
        if values["name"] not in PREPARATIONS:
            unknown("preparation", values["name"], PREPARATIONS)
        return cls(values["name"], dict(tensors), values["num_features"])


def fit_preparation(name: str, features: Features) -> FittedPreparation:
    """Learn a preparation from features.

    Parameters
    ----------
    name : str
        One of :data:`PREPARATIONS`.
    features : SparseMatrix or Tensor
        n x c features of all nodes. No label is used.
    """
    if name not in PREPARATIONS:
        unknown("preparation", name, PREPARATIONS)
    return PREPARATIONS[name].fit(features)


def suggest(graph: Graph) -> tuple[str, ...]:
    """Return the preparations that suit the features of a graph.

    Counts and bags of words are scaled in several ways. Few columns and embeddings are standardized
    or mapped to quantiles. Without features, structural features take their place.

    Examples
    --------
    >>> suggest(Graph.from_arrays(None, [[0, 1], [1, 2]], [0, 1, 1]))
    ('structure',)
    >>> suggest(Graph.from_arrays([[1.5, -2.0], [0.5, 3.0]], [[0], [1]]))
    ('standardize', 'quantile')
    """
    features = graph.features
    values = features.values if isinstance(features, SparseMatrix) else features
    if _says_nothing(features, values):
        return ("structure",)
    nonzero = values[values != 0]
    binary = bool((nonzero == nonzero[0]).all())
    if features.shape[1] > FEW_COLUMNS and bool((nonzero > 0).all()):
        # The logarithm of one value is another single value.
        return ("row", "tfidf", "raw") if binary else ("row", "tfidf", "log", "raw")
    if features.shape[1] > FEW_COLUMNS:
        return ("standardize", "raw", "row")
    # The quantiles of an indicator are an indicator.
    return ("standardize", "raw") if binary else ("standardize", "quantile")


def _says_nothing(features: Features, values: Tensor) -> bool:
    """Whether the features are uninformative: one indicator per node, or equal for all nodes."""
    n, c = features.shape
    if c == 0 or not bool((values != 0).any()):
        return True
    if isinstance(features, Tensor):
        indicators = n == c and torch.equal(features, features[0, 0] * torch.eye(n).to(features))
        return indicators or bool((features == features[:1]).all())
    pattern = features.pattern
    of_one_node = torch.bincount(pattern.column, minlength=c).max() <= 1
    return bool(pattern.nnz == n == c and of_one_node and (values == values[0]).all())


class Preparation:
    """Base class of scalings; a subclass implements :meth:`learn` and :meth:`transform`."""

    name = "raw"

    def fit(self, features: Features) -> FittedPreparation:
        """Learn from n x c features."""
        return FittedPreparation(self.name, self.learn(features), features.shape[1])

    def learn(self, features: Features) -> dict[str, Tensor]:
        """Return the numbers that :meth:`transform` needs."""
        return {}

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return the scaled features."""
        return features


class RowPreparation(Preparation):
    """Divide each row by its sum of absolute values."""

    name = "row"

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return rows with a sum of 1."""
        return normalize_rows(features)


class LogPreparation(Preparation):
    r"""Replace :math:`v` by :math:`\mathrm{sign}(v) \log(1 + |v|)`."""

    name = "log"

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return logarithms; zeros stay zeros."""
        return _map(features, lambda values: values.sign() * values.abs().log1p())


class TfidfPreparation(Preparation):
    r"""TF-IDF with a sublinear term frequency and rows of length 1.

    .. math:: x_{ij} \propto t(v_{ij}) \left(1 + \log \frac{1 + n}{1 + d_j}\right), \qquad
              t(v) = \begin{cases} 1 + \log v & v \ge 1 \\ v & v < 1 \end{cases}

    :math:`d_j` is the number of nodes with a non-zero value in column j, :math:`v` the absolute
    value. It equals scikit-learn's ``TfidfTransformer(sublinear_tf=True)`` for counts. Below 1 the
    logarithm would be negative, so fractions stay.
    """

    name = "tfidf"

    def learn(self, features: Features) -> dict[str, Tensor]:
        """Return the weight of each column."""
        n, c = features.shape
        if isinstance(features, SparseMatrix):
            stored = (features.values != 0).double()
            count = torch.zeros(c, dtype=torch.float64, device=stored.device)
            count = count.index_add(0, features.pattern.column, stored)
        else:
            count = (features != 0).double().sum(0)
        return {"idf": (1 + torch.log((1 + n) / (1 + count))).float().cpu()}

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return weighted rows of length 1; zero rows stay zero."""
        frequency = _map(features, _sublinear)
        if isinstance(frequency, Tensor):
            weighted = frequency * learned["idf"].to(frequency)
            length = weighted.norm(dim=1, keepdim=True)
            return weighted / torch.where(length > 0, length, 1)
        pattern = frequency.pattern
        values = frequency.values * learned["idf"].to(frequency.values)[pattern.column]
        squares = values.new_zeros(pattern.shape[0]).index_add_(0, pattern.row, values**2)
        length = torch.where(squares > 0, squares, 1).sqrt()
        return frequency.with_values(values / length[pattern.row])


class StandardPreparation(Preparation):
    """Center each column and divide it by its standard deviation; constant columns become 0."""

    name = "standardize"

    def learn(self, features: Features) -> dict[str, Tensor]:
        """Return the mean and the factor of each column."""
        dense = _dense(features).double()
        deviation = dense.std(0, correction=0)
        factor = torch.where(deviation > 1e-9, 1 / deviation.clamp_min(1e-9), 0.0)
        return {"mean": dense.mean(0).float().cpu(), "factor": factor.float().cpu()}

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return dense columns of mean 0 and deviation 1."""
        dense = _dense(features)
        return (dense - learned["mean"].to(dense)) * learned["factor"].to(dense)


class QuantilePreparation(Preparation):
    """Map each column to a normal distribution by its quantiles, which is robust to outliers.

    Tied values get the middle of their quantiles, as in scikit-learn's
    ``QuantileTransformer(output_distribution="normal")``. The columns are scaled to deviation 1.
    """

    name = "quantile"

    def learn(self, features: Features) -> dict[str, Tensor]:
        """Return the quantiles of each column, and its mean and deviation after the mapping."""
        dense = _dense(features).double().cpu().numpy()
        at = np.linspace(0, 1, min(NUM_QUANTILES, max(len(dense), 2)))
        quantiles = np.maximum.accumulate(np.quantile(dense, at, axis=0), axis=0)
        mapped = _normal_quantiles(dense, quantiles)
        deviation = mapped.std(0)
        factor = np.where(deviation > 1e-9, 1 / np.maximum(deviation, 1e-9), 0.0)
        learned = {"quantiles": quantiles, "mean": mapped.mean(0), "factor": factor}
        return {key: torch.from_numpy(np.ascontiguousarray(v)) for key, v in learned.items()}

    def transform(self, features: Features, learned: Mapping[str, Tensor]) -> Features:
        """Return dense columns with a normal distribution."""
        dense = _dense(features)
        mapped = _normal_quantiles(dense.double().cpu().numpy(), learned["quantiles"].numpy())
        scaled = (mapped - learned["mean"].numpy()) * learned["factor"].numpy()
        return torch.from_numpy(scaled).to(dense)


class StructurePreparation(Preparation):
    """Replace the features by 36 structural ones; see :mod:`.structural_features`."""

    name = "structure"

    def fit(self, features: Features) -> FittedPreparation:
        """Learn nothing: the edges decide."""
        return FittedPreparation(self.name)


_ALL = (Preparation, RowPreparation, TfidfPreparation, LogPreparation, StandardPreparation,
        QuantilePreparation, StructurePreparation)  # fmt: skip
#: The preparations by name.
PREPARATIONS: dict[str, Preparation] = {cls.name: cls() for cls in _ALL}


def _map(features: Features, function: Any) -> Features:
    """Apply an elementwise function with f(0) = 0."""
    if isinstance(features, Tensor):
        mapped: Tensor = function(features)
        return mapped
    return SparseMatrix(features.pattern, function(features.values))


def _sublinear(values: Tensor) -> Tensor:
    size = values.abs()
    return torch.where(size >= 1, 1 + size.clamp_min(1).log(), size)


def _dense(features: Features) -> Tensor:
    return features if isinstance(features, Tensor) else features.to_dense()


def _normal_quantiles(dense: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Return the normal quantile of each value; the mean of both ends where values tie."""
    at = np.linspace(0, 1, len(quantiles))
    shares = np.empty_like(dense)
    for column in range(dense.shape[1]):
        own, values = quantiles[:, column], dense[:, column]
        upper = np.interp(values, own, at)
        lower = -np.interp(-values, -own[::-1], -at[::-1])
        shares[:, column] = (upper + lower) / 2
    normal: np.ndarray = ndtri(np.clip(shares, EDGE, 1 - EDGE))
    return normal


def _structure(graph: Graph) -> np.ndarray:
    def compute() -> np.ndarray:
        return structural_features(graph.edges.cpu().numpy(), graph.num_nodes)

    features: np.ndarray = graph.cached("structural features", compute, of_structure=True)
    return features
