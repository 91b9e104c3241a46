"""Findings about a graph, the arrays behind them, and their wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from everynode.graph import Graph
from everynode.sparse import SparseMatrix

Ints = npt.NDArray[np.int64]
Facts = dict[str, Any]


class Finding(NamedTuple):
    """One sentence about a graph.

    Attributes
    ----------
    level : {"info", "warning"}
        Whether the finding makes a score on the graph less meaningful.
    text : str
        The sentence.
    """

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True)
class Report:
    """The result of :func:`everynode.datasets.check`.

    Attributes
    ----------
    name : str
        The name of the graph.
    facts : dict
        Measured values.
    findings : tuple of Finding
        Sentences about the graph.

    Examples
    --------
    >>> from everynode.datasets import check, generate
    >>> report = check(generate(1000, 3000, 8, 4))
    >>> report.facts["nodes"], report.findings[0].level
    (1000, 'info')
    """

    name: str
    facts: Facts = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the findings that are warnings."""
        return tuple(finding.text for finding in self.findings if finding.level == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "name": self.name,
            "facts": self.facts,
            "findings": [finding._asdict() for finding in self.findings],
        }


class Fold(NamedTuple):
    """The nodes of a split as arrays.

    Attributes
    ----------
    train, val, test : array of int
        The node indices.
    """

    train: Ints
    val: Ints
    test: Ints


class Subject:
    """The graph as arrays, computed once for all checks.

    Parameters
    ----------
    graph, directed, others, drawn, held_out, folds
        See :func:`everynode.datasets.diagnostics.check`.

    Attributes
    ----------
    n : int
        Number of nodes.
    labels : array of int
        Class index of each node; -1 if unlabeled.
    splits : list of Fold
        The folds.
    adjacency : scipy.sparse.csr_array
        The undirected edges.
    degree : array of int
        Number of neighbors of each node.
    features : scipy.sparse.csr_array
        The features of each node.
    neighborhood : array of int
        A number for each set of neighbors: equal for nodes with the same neighbors, unique for
        every isolated node.
    """

    def __init__(
        self,
        graph: Graph,
        directed: Graph | None,
        others: Sequence[Graph],
        drawn: bool,
        held_out: int,
        folds: int,
    ) -> None:
        self.graph, self.others, self.drawn = graph, others, drawn
        self.held_out, self.folds = held_out, folds
        self.directed = graph if graph.directed else directed
        self.n = graph.num_nodes
        self.labels: Ints = graph.labels.cpu().numpy()
        self.splits = [Fold(*(part.cpu().numpy() for part in split)) for split in graph.splits]
        a, b = graph.undirected_edges[0].cpu().numpy()
        ones = np.ones(2 * len(a), np.int8)
        self.adjacency = scipy.sparse.csr_array(
            (ones, (np.r_[a, b], np.r_[b, a])), shape=(self.n, self.n)
        )
        self.adjacency.sort_indices()
        self.degree: Ints = np.diff(self.adjacency.indptr)
        self.features = feature_rows(graph)
        self.neighborhood = group_rows(self.adjacency)
        is_isolated = self.degree == 0
        self.neighborhood[is_isolated] = -1 - np.flatnonzero(is_isolated)


def feature_rows(graph: Graph) -> scipy.sparse.csr_array:
    """Return the features as a SciPy matrix with sorted columns."""
    features = graph.features
    if isinstance(features, SparseMatrix):
        rows = features.to_scipy()
    else:
        rows = scipy.sparse.csr_array(features.cpu().numpy())
    rows.sort_indices()
    return rows


def group_rows(matrix: scipy.sparse.csr_array) -> Ints:
    """Return one number per row; equal rows have equal numbers."""
    groups: dict[tuple[bytes, bytes], int] = {}
    keys = (
        (matrix.indices[a:b].tobytes(), matrix.data[a:b].tobytes())
        for a, b in pairwise(matrix.indptr)
    )
    return np.array([groups.setdefault(key, len(groups)) for key in keys], dtype=np.int64)


def percent(share: float) -> str:
    """Return a share as a percentage.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * share:.1f} %"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "node"), counted(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def name_folds(folds: Sequence[int], total: int) -> str:
    """Name some of the folds of a graph.

    >>> name_folds([0], 1), name_folds([0, 1], 2), name_folds([0, 2], 3)
    ('the split', 'every fold', 'folds 0, 2')
    """
    if total == 1:
        return "the split"
    if len(folds) == total:
        return "every fold"
    return f"{'fold' if len(folds) == 1 else 'folds'} {', '.join(map(str, folds))}"
