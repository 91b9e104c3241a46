"""Convert graphs of other libraries to arguments of :meth:`everynode.Graph.from_arrays`."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from everynode.errors import DataError, UsageError
from everynode.graph.validation import UNLABELED, Split

if TYPE_CHECKING:  # both are slow to import
    import networkx
    from torch_geometric.data import Data

#: Node attributes of NetworkX that are likely to be labels, in lower case.
LIKE_LABELS = ("label", "y", "class", "target")


def refuse_pyg(data: Any, where: str, then: str = "{}") -> None:
    """Refuse a graph of PyG where something else is expected, and name the conversion."""
    if any(base.__module__.startswith("torch_geometric") for base in type(data).__mro__):
        refuse_several_types(data)
        call = then.format("Graph.from_pyg(data)")
        raise UsageError(f"{where}, not a {type(data).__name__}: call {call}.")


def refuse_several_types(data: Any) -> None:
    """Refuse a heterogeneous graph of PyG."""
    if hasattr(data, "edge_types"):
        raise UsageError(
            f"A {type(data).__name__} has several types of nodes and edges, and everynode takes "
            "one of each: call Graph.from_pyg(data.to_homogeneous()), or take one type."
        )


def pyg_arrays(data: Data) -> dict[str, Any]:
    """Return the arguments of ``from_arrays`` for a PyG ``Data``, on the CPU."""
    refuse_several_types(data)
    if data.edge_index is None:
        raise DataError(
            "This Data has no edge_index: set it (from adj_t: torch.stack(adj_t.t().coo()[:2]))."
        )
    data = copy.copy(data).cpu()  # a copy, because cpu() moves the object itself
    x = data.x
    if x is not None and x.is_sparse:
        x = x.to_sparse_csr()
    if x is not None and x.is_sparse_csr:
        x = scipy.sparse.csr_array((x.values(), x.col_indices(), x.crow_indices()), shape=x.shape)
    labels = data.y
    if labels is None:
        labels = torch.full((data.num_nodes,), UNLABELED)
    elif labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.is_floating_point():
        labels = torch.where(labels.isnan(), UNLABELED, labels)
        if bool((labels != labels.round()).any()):
            raise DataError(
                "The y of this Data has fractions: node classification needs class indices."
            )
        labels = labels.long()
    masks = [data.get(f"{part}_mask") for part in Split._fields]
    for part, mask in zip(Split._fields, masks, strict=True):
        if mask is not None and len(mask) != data.num_nodes:
            raise DataError(
                f"The {part}_mask is for {len(mask)} nodes, but there are {data.num_nodes}: "
                "give one value per node."
            )
    splits = [] if masks[0] is None else splits_from_masks(*masks)
    return {
        "features": x,
        "edge_index": data.edge_index,
        "labels": labels,
        "splits": splits,
        "edge_weight": data.get("edge_weight"),
    }


def splits_from_masks(train: Tensor, val: Tensor | None, test: Tensor | None) -> list[Split]:
    """Return splits from boolean masks of n or n x folds values, as in PyG."""
    columns = [torch.zeros_like(train) if m is None else m for m in (train, val, test)]
    columns = [m[:, None] if m.ndim == 1 else m for m in columns]
    folds = max(m.shape[1] for m in columns)
    columns = [m.expand(-1, folds) if m.shape[1] == 1 else m for m in columns]
    return [Split(*(m[:, fold].nonzero()[:, 0] for m in columns)) for fold in range(folds)]


def networkx_arrays(
    graph: networkx.Graph,
    features: str | Sequence[str] | None,
    label: str | None,
    weight: str | None,
) -> dict[str, Any]:
    """Return the arguments of ``from_arrays`` for a NetworkX graph.

    The parameters are those of :meth:`everynode.Graph.from_networkx`.
    """
    ids = list(graph.nodes)
    position = {node: i for i, node in enumerate(ids)}
    attributes = {str(name): None for node in ids for name in graph.nodes[node]}
    likely = next((name for name in attributes if name.lower() in LIKE_LABELS), None)
    # Only a hint: y may be a coordinate, as in graphs of OpenStreetMap.
    if label and label not in attributes and likely:
        warnings.warn(
            f"No node has the attribute {label!r}, but some have {likely!r}: "
            f"if it is the label, pass label={likely!r}.",
            stacklevel=3,
        )
    values = _plain([graph.nodes[node].get(label) if label else None for node in ids])
    classes = sorted(
        {v for v in values if v is not None and v == v}, key=lambda v: (str(type(v)), v)
    )
    index = {value: code for code, value in enumerate(classes)}
    labels = [index.get(value, UNLABELED) for value in values]
    rows: Any = None
    if features is not None:
        names = [features] if isinstance(features, str) else list(features)
        for node in ids:
            for attribute in names:
                if attribute not in graph.nodes[node]:
                    raise DataError(
                        f"Node {node!r} has no attribute {attribute!r}: "
                        "set it, or name other features (features=...)."
                    )
        rows = [
            graph.nodes[node][names[0]]
            if isinstance(features, str)
            else [graph.nodes[node][a] for a in names]
            for node in ids
        ]
        rows = np.asarray(rows, dtype=np.float32)
        rows = rows[:, None] if rows.ndim == 1 else rows
    pairs = [(position[a], position[b]) for a, b in graph.edges()]
    weights = [w for _, _, w in graph.edges(data=weight, default=1.0)] if weight else []
    edges = np.asarray(pairs, dtype=np.int64).reshape(-1, 2).T
    if not graph.is_directed():  # both directions, or every edge would count as one-way
        edges, weights = np.concatenate([edges, edges[::-1]], axis=1), [*weights, *weights]
    kept = None if all(w == 1 for w in weights) else weights
    return {
        "features": rows,
        "edge_index": edges,
        "labels": labels,
        "classes": classes,
        "edge_weight": kept,
        "directed": graph.is_directed(),
        "node_ids": ids,
    }


def _plain(values: list[Any]) -> list[Any]:
    """Convert floats without fractions to whole numbers: pandas stores 1 beside NaN as 1.0."""
    floats = [value for value in values if isinstance(value, float) and value == value]
    if not all(value.is_integer() for value in floats):
        return values
    return [
        int(value) if isinstance(value, float) and value == value else value for value in values
    ]
