"""Types of link: how strong each edge is in each type, and the weight of each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everynode.errors import DataError
from everynode.graph.validation import is_missing, tidy_edges

#: A column with more values than this does not hold types.
MOST_TYPES = 20


@dataclass(frozen=True, eq=False)
class EdgeTypes:
    r"""The types of the edges of a graph. The weight of edge e is a sum over its types:

    .. math:: w_e = \sum_t s_t a_{et}

    Two nodes may be linked by several types, and each adds its part.

    Parameters
    ----------
    names : tuple of str
        The types.
    strengths : Tensor
        m x T: the weight :math:`a_{et}` of edge e in type t, 0 if it is not of this type.
    weights : tuple of float, optional
        The weight :math:`s_t` of each type. None: not learned yet, so all are 1.

    Examples
    --------
    >>> types = EdgeTypes(("call", "mail"), torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    >>> types.edge_weights({"call": 1.0, "mail": 0.5}).tolist()
    [1.0, 2.0]
    """

    names: tuple[str, ...]
    strengths: Tensor
    weights: tuple[float, ...] | None = None

    def edge_weights(self, weights: Mapping[str, float]) -> Tensor:
        """Return the weight of each edge."""
        return self.strengths @ torch.tensor([float(weights[name]) for name in self.names])

    @property
    def relative(self) -> dict[str, float]:
        """The weight of each type, divided by the largest."""
        weights = self.weights or (1.0,) * len(self.names)
        return {
            name: weight / max(weights) for name, weight in zip(self.names, weights, strict=True)
        }


def tidy_typed_edges(
    edge_index: Any, edge_weight: Any, types: Any, n: int, directed: bool
) -> tuple[Tensor, Tensor | None, dict[str, int], EdgeTypes | None]:
    """Tidy the edges of each type as :func:`everynode.graph.validation.tidy_edges` does, and join.

    Returns the edges, their weights with equal types, the count of each repair, and the types.
    Without types it only tidies.
    """
    if types is None:
        return *tidy_edges(edge_index, edge_weight, n, directed), None
    values = np.asarray([None if is_missing(v) or v == "" else str(v) for v in types], dtype=object)
    edges = torch.as_tensor(np.ascontiguousarray(edge_index))
    missing = np.flatnonzero(values == None)  # noqa: E711 - element by element
    if edges.ndim != 2 or len(values) != edges.shape[1]:
        raise DataError(
            f"{edges.shape[-1]} edges have {len(values)} types: give one type per edge."
        )
    if len(missing):
        raise DataError(
            f"Edge {missing[0]} has no type ({len(missing)} such edges): give every edge a type."
        )
    names = tuple(sorted(set(values)))
    check_type_names(names, "edge_type", fewest=0)
    repairs = dict.fromkeys(("self_loops", "repeated_edges", "one_way_edges"), 0)
    parts = []
    for name in names:
        own = torch.from_numpy(values == name)
        weight = None if edge_weight is None else torch.as_tensor(edge_weight)[own]
        pairs, weight, found = tidy_edges(edges[:, own], weight, n, directed)
        parts.append((pairs, torch.ones(pairs.shape[1]) if weight is None else weight))
        repairs = {key: count + found[key] for key, count in repairs.items()}
    keys = [pairs[0] * n + pairs[1] for pairs, _ in parts]
    joined = torch.cat(keys).unique()
    strengths = torch.zeros(len(joined), len(names))
    for column, (key, (_, weight)) in enumerate(zip(keys, parts, strict=True)):
        strengths[torch.searchsorted(joined, key), column] = weight.float()
    total = strengths.sum(1)
    both = torch.stack([joined // max(n, 1), joined % max(n, 1)])
    return both, None if bool((total == 1).all()) else total, repairs, EdgeTypes(names, strengths)


def check_type_names(names: Sequence[str], what: str, *, fewest: int = 2) -> None:
    """Refuse fewer types than the fewest, and more than :data:`MOST_TYPES`."""
    if len(names) < fewest:
        raise DataError(
            f"{what} has one value only ({', '.join(names) or 'no edge'}), so there is nothing to "
            "weigh. Leave the types out, or name another column (edge_type='...', or --edge-type)."
        )
    if len(names) > MOST_TYPES:
        shown = ", ".join(map(repr, names[:3]))
        raise DataError(
            f"{what} has {len(names):,} values, such as {shown}. At most {MOST_TYPES} types can "
            "be weighed: group them, or name another column (edge_type='...', or --edge-type)."
        )
