"""The graphs and labels that NodeClassifier takes, from a Graph or from arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import validate_data

from everynode.errors import DataError, UsageError
from everynode.evaluation.edge_type_weights import learn_edge_types
from everynode.graph import UNLABELED, Graph, Split
from everynode.graph.conversions import refuse_pyg
from everynode.graph.label_encoding import as_row, in_order, unlabeled
from everynode.machine import usable_device

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier


def training_graph(
    model: NodeClassifier,
    X: Any,
    y: Any,
    edge_index: Any,
    edge_weight: Any,
    encoded: tuple[Any, list[Any]] | None,
) -> Graph:
    """Return the graph to train on, on the chosen device."""
    refuse_pyg(X, "NodeClassifier takes an everynode Graph", "fit({})")
    if isinstance(X, Graph):
        if y is not None or edge_index is not None or edge_weight is not None:
            raise UsageError(
                "A Graph has its own labels and edges: call fit(graph) without y, edge_index "
                "and edge_weight."
            )
        graph = X
        model.n_features_in_ = X.num_features
        model.__dict__.pop("feature_names_in_", None)  # of an earlier fit on a table
    elif encoded is None:
        raise UsageError(
            "NodeClassifier requires y to be passed, but the target y is None: give labels, "
            "with -1 for unlabeled nodes."
        )
    else:
        X = validate_data(model, X, accept_sparse="csr", reset=True, dtype=np.float32)
        codes, classes = encoded
        if len(codes) != X.shape[0]:
            raise DataError(
                "Found input variables with inconsistent numbers of samples: "
                f"{X.shape[0]} rows of X, {len(codes)} labels."
            )
        edges = np.zeros((2, 0), dtype=np.int64) if edge_index is None else edge_index
        graph = Graph.from_arrays(X, edges, codes, classes=classes, edge_weight=edge_weight)
    return graph if model.device is None else moved(graph, usable_device(model.device))


def prediction_graph(model: NodeClassifier, X: Any, edge_index: Any, edge_weight: Any) -> Graph:
    """Return the graph to predict, with the type and on the device of the networks."""
    parameter = next(model.network_.parameters(), torch.empty(0))
    if isinstance(X, Graph):
        return moved(with_type_weights(X, model.edge_types_), parameter.device)
    X = validate_data(model, X, accept_sparse="csr", reset=False, dtype=np.float32)
    if edge_index is None and model._had_edges:
        warnings.warn(
            "The model was fitted with edges, but edge_index is missing. Predictions without "
            "edges are less accurate.",
            stacklevel=4,
        )
    edges = np.zeros((2, 0), dtype=np.int64) if edge_index is None else edge_index
    graph = Graph.from_arrays(
        X,
        edges,
        np.full(X.shape[0], UNLABELED),
        classes=model.classes_.tolist(),
        edge_weight=edge_weight,
        directed=model.directed_,
    )
    return moved(graph.to(parameter.dtype), parameter.device)


def weigh_types(graph: Graph, fold: int, seed: int) -> Graph:
    """Return the graph with learned weights of its types of link, if it has types without them."""
    if graph.edge_types is None or graph.edge_types.weights is not None:
        return graph
    nodes = (graph.labels >= 0).nonzero()[:, 0]
    if graph.splits:
        nodes = torch.cat([graph.nodes(part, fold) for part in ("train", "val")])
    return learn_edge_types(graph, nodes, seed=seed).graph


def type_weights(graph: Graph) -> dict[str, float] | None:
    """Return the weight of each type of link."""
    types = graph.edge_types
    if types is None or types.weights is None:
        return None
    return dict(zip(types.names, types.weights, strict=True))


def with_type_weights(graph: Graph, weights: Mapping[str, float] | None) -> Graph:
    """Return the graph with the weights of a model; a graph that has them keeps its cache."""
    if weights is None or type_weights(graph) == weights:
        return graph
    return graph.with_edge_type_weights(weights)


def graph_truth(graph: Graph, part: str | None, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the labeled nodes of a part (None: test) of a fold, and their class names."""
    part = "test" if part is None else part
    if part not in Split._fields:
        raise UsageError(f"score(graph, part) takes 'train', 'val' or 'test'. Got {part!r}.")
    nodes = graph.nodes(part, fold).cpu().numpy()
    if not len(nodes):
        raise DataError(f"Graph {graph.name!r} has no labeled {part} node to score on.")
    # Compare names, because another graph may number its classes differently.
    return nodes, in_order(graph.classes)[graph.labels.cpu().numpy()[nodes]]


def array_truth(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of ``y`` that have a label, and their labels."""
    if y is None:
        raise UsageError("score(X, y, edge_index=...) needs the labels y.")
    y = as_row(y)
    nodes = np.flatnonzero(~unlabeled(y))
    if not len(nodes):
        raise DataError("No node has a label in y to score on.")
    return nodes, y[nodes]


def moved(graph: Graph, device: torch.device) -> Graph:
    """Return the graph on a device; a graph that is there already keeps its cache."""
    return graph if graph.labels.device == device else graph.to(device)
