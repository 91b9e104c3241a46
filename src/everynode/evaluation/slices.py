"""Quality by slice: for which nodes the predictions fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from everynode.evaluation.intervals import Score, wilson
from everynode.graph import Graph

#: The lowest degree of each slice, and the lowest number of training labels of its class.
DEGREES, CLASS_SIZES = (0, 1, 2, 4, 8, 16), (0, 1, 5, 20, 100)
#: Values of a column that get slices of their own; the others share one.
MOST_VALUES = 12
#: A column of numbers is cut into this many slices of equal size.
QUANTILES = 4
#: The slice of nodes without a value.
MISSING = "missing"

Groups = Mapping[str, Sequence[str]]


class Slice(NamedTuple):
    """The quality on some nodes.

    Attributes
    ----------
    by : str
        What the nodes have in common: ``degree``, ``component``, ``class size`` or a column.
    name : str
        Which of its values.
    nodes : int
        The number of nodes.
    score : Score
        The share that is right, with its 95% interval.
    low : bool
        Whether the interval lies below the share of all nodes.
    """

    by: str
    name: str
    nodes: int
    score: Score
    low: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self._asdict()


def slice_quality(right: npt.NDArray[np.bool_], groups: Groups) -> tuple[Slice, ...]:
    """Return the share of right answers in every slice, with intervals.

    Parameters
    ----------
    right : array of bool of shape (n,)
        Whether each node is predicted right.
    groups : mapping of str to sequence of str
        What divides the nodes, and the slice of each node.

    Examples
    --------
    >>> right = np.array([True, True, False, False])
    >>> for one in slice_quality(right, {"city": ["Oslo", "Oslo", "Rome", "Rome"]}):
    ...     print(one.name, one.nodes, one.score)
    Oslo 2 1.000 (0.342 to 1.000)
    Rome 2 0.000 (0.000 to 0.658)
    """
    overall = float(right.mean()) if len(right) else 0.0
    rows = []
    for by, names in groups.items():
        of_node = np.asarray(names, dtype=object)
        for name in dict.fromkeys(sorted(names, key=_natural)):
            chosen = right[of_node == name]
            score = wilson(int(chosen.sum()), len(chosen))
            rows.append(Slice(by, name, len(chosen), score, score.high < overall))
    return tuple(rows)


def _natural(name: str) -> tuple[bool, float, str]:
    """Sort ranges such as ``4 to 7`` by their start, and words after them."""
    start = name.split(" ")[0].replace(",", "")
    try:
        return False, float(start), name
    except ValueError:
        return True, 0.0, name


def graph_groups(graph: Graph, nodes: npt.NDArray[np.int64]) -> dict[str, list[str]]:
    """Return the slices of nodes by degree and by component.

    A node without edges is isolated. Components are the largest one, and all others.
    """
    edges = graph.undirected_edges[0].cpu().numpy()
    n = graph.num_nodes
    degree = np.bincount(edges.ravel(), minlength=n)
    links = scipy.sparse.coo_array((np.ones(edges.shape[1]), (edges[0], edges[1])), shape=(n, n))
    _, component = connected_components(links, directed=False)
    sizes = np.bincount(component)
    largest = component == sizes.argmax()
    words = np.where(degree == 0, "isolated", np.where(largest, "largest", "smaller"))
    return {
        "degree": [_range(int(d), DEGREES, "isolated") for d in degree[nodes]],
        "component": [str(word) for word in words[nodes]],
    }


def class_groups(labels: npt.NDArray[np.int64], trained: npt.NDArray[np.int64]) -> list[str]:
    """Return the slice of each node by the training labels of its class.

    Parameters
    ----------
    labels : array of int
        The classes of the nodes.
    trained : array of int
        The classes of the training nodes.
    """
    counts = np.bincount(trained, minlength=int(labels.max(initial=0)) + 1)
    return [_range(int(counts[label]), CLASS_SIZES, "0") + " labels" for label in labels]


def _range(value: int, starts: Sequence[int], zero: str) -> str:
    """Return the range that a count falls into.

    >>> [_range(value, DEGREES, "isolated") for value in (0, 1, 5, 40)]
    ['isolated', '1', '4 to 7', '16 or more']
    """
    place = int(np.searchsorted(starts, value, side="right")) - 1
    start = starts[place]
    if place == len(starts) - 1:
        return f"{start} or more"
    end = starts[place + 1] - 1
    if end == 0:
        return zero
    return str(start) if end == start else f"{start} to {end}"


def column_groups(values: Sequence[str]) -> list[str]:
    """Return the slice of each node by a column: a value, or a range of numbers.

    Parameters
    ----------
    values : sequence of str
        The cells; empty where they are missing.
    """
    numbers = _as_numbers(values)
    present = Counter(value for value in values if value)
    if numbers is not None and len(present) > MOST_VALUES:
        known = numbers[~np.isnan(numbers)]
        ends = np.unique(np.quantile(known, np.linspace(0, 1, QUANTILES + 1)))
        places = np.clip(np.searchsorted(ends, numbers, side="right") - 1, 0, len(ends) - 2)
        names = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(ends)]
        return [
            MISSING if np.isnan(number) else names[place]
            for number, place in zip(numbers, places, strict=True)
        ]
    most = {value for value, _ in present.most_common(MOST_VALUES)}
    return [(value if value in most else "all others") if value else MISSING for value in values]


def _as_numbers(values: Iterable[str]) -> npt.NDArray[np.float64] | None:
    """Return cells as numbers; None if one of them is none."""
    try:
        return np.array([float(value) if value else np.nan for value in values])
    except ValueError:
        return None
