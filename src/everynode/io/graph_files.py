"""Files that hold a whole graph: GraphML and GEXF, node-link JSON, and NumPy archives in the usual layouts; never a pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from everynode.errors import DataError
from everynode.io.summary import Notes, counted
from everynode.io.tables import CLASH, Table, check_path, ending, make_table, unpacked

#: The endings of files that hold nodes and edges.
ENDINGS = ("graphml", "gexf", "json", "npz")
#: The names of arrays in an archive: as edges, features, labels.
EDGES, FEATURES, LABELS = (
    ("edge_index", "edges"),
    ("x", "features", "node_features", "attr_matrix"),
    ("y", "labels", "node_labels"),
)
WEIGHTS = ("edge_weight", "edge_weights")
#: The arrays in which SciPy keeps a sparse matrix, in any of its formats.
SCIPY = (
    "format",
    "shape",
    "data",
    "indices",
    "indptr",
    "row",
    "col",
    "coords",
    "offsets",
    "_is_array",
)
#: The parts of a split: masks, of one fold or several, or the numbers of their nodes.
MASKS = ("train_mask", "val_mask", "test_mask"), ("train_masks", "val_masks", "test_masks")
INDICES = ("train_idx",), ("val_idx", "valid_idx"), ("test_idx",)


class Whole(NamedTuple):
    """The two tables of a file, and what does not fit into tables."""

    #: None if there are edges alone.
    nodes: Table | None
    edges: Table
    #: n x c, if the file gives the features as a matrix.
    features: Any = None
    #: Train, validation and test masks, one or several folds.
    splits: Sequence[Sequence[Any]] = ()
    #: Whether the file says that its edges lead one way.
    directed: bool = False


def is_whole(source: Any) -> bool:
    """Whether this is a NetworkX graph, or a path whose ending says that it holds nodes and edges."""
    if isinstance(source, str | os.PathLike):
        return ending(Path(source)) in ENDINGS
    return hasattr(source, "nodes") and hasattr(source, "edges") and hasattr(source, "is_directed")


def read_whole(source: Any, notes: Notes) -> Whole:
    """The graph in a file, its format by its ending; or a NetworkX graph, its attributes being the columns."""
    if not isinstance(source, str | os.PathLike):
        return _tables(source, "the graph", "networkx")
    path = Path(source)
    check_path(path)
    kind = ending(path)
    try:
        if kind == "npz":
            return _read_npz(path, notes)
        return _tables(_read_networkx(path, kind), str(path), kind)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error


# ---------------------------------------------------------------------- through NetworkX


def _read_networkx(path: Path, kind: str) -> Any:
    import networkx

    try:
        if kind == "json":
            with unpacked(path) as file:
                content = json.loads(file.read())
            return networkx.node_link_graph(
                content, edges="edges" if "edges" in content else "links"
            )
        return networkx.read_graphml(path) if kind == "graphml" else networkx.read_gexf(path)
    except OSError:
        raise
    except Exception as error:  # other people's parser: on a broken file it fails in any way
        way_out = (
            'write {"nodes": [...], "links": [...]}'
            if kind == "json"
            else "write it again with the program that made it"
        )
        raise DataError(
            f"{path} is not {kind} as it should be ({type(error).__name__}: {str(error)[:80]}): {way_out}."
        ) from error


def _tables(graph: Any, where: str, kind: str) -> Whole:
    ids = list(graph.nodes)
    if not ids or not graph.number_of_edges():
        raise DataError(
            f"{where} holds {counted(len(ids), 'node')} and {counted(graph.number_of_edges(), 'edge')}: a graph needs both."
        )
    caption = (
        {"label": "name"} if kind == "gexf" else {}
    )  # what GEXF writes beside a node is no class
    people = [_apart(graph.nodes[i], caption, ("id", *caption.values())) for i in ids]
    columns = [("id", ids), *_columns(people)]
    columns = [
        (name, cells)
        for name, cells in columns
        if name != f"id{CLASH}" or list(map(str, cells)) != list(map(str, ids))
    ]
    nodes = make_table(where, columns, kind, "node", ids)
    ends = list(graph.edges(data=True))
    columns = [("source", [a for a, *_ in ends]), ("target", [b for _, b, _ in ends])]
    columns += _columns([_apart(data, {}, ("source", "target")) for *_, data in ends])
    edges = make_table(where, columns, "", "edge", range(1, len(ends) + 1))
    return Whole(nodes, edges, directed=graph.is_directed())


def _apart(
    attributes: Mapping[Any, Any], renamed: Mapping[str, str], taken: Sequence[str]
) -> dict[str, Any]:
    """Attributes by their names, those that are called like something else by another."""
    return {
        renamed.get(str(key), f"{key}{CLASH}" if str(key) in taken else str(key)): value
        for key, value in attributes.items()
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any]]]:
    return [
        (name, [row.get(name) for row in rows])
        for name in dict.fromkeys(key for row in rows for key in row)
    ]


# ---------------------------------------------------------------------- NumPy archives


def _read_npz(path: Path, notes: Notes) -> Whole:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {}
            for key in archive.files:
                try:
                    arrays[key] = archive[key]
                except ValueError:  # an array of Python objects, which only a pickle can hold
                    notes.warn(
                        f"The array {key!r} of {path} holds Python objects and was passed over: no pickle is ever opened."
                    )
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError, NotImplementedError) as error:
        raise DataError(f"{path} is not a NumPy archive ({str(error)[:80]}).") from error
    except (TypeError, AttributeError):  # NumPy opened something, but it is not an archive
        raise DataError(
            f"{path} holds one array: a graph needs an archive of several, written by np.savez or scipy.sparse.save_npz."
        ) from None
    how = f"NumPy archive ({', '.join(sorted(arrays))})"
    n = None
    if "format" in arrays or "adj_indptr" in arrays:
        adjacency = (
            _load_scipy(arrays, path) if "format" in arrays else _matrix(arrays, "adj", path)
        ).tocoo()
        if adjacency.shape[0] != adjacency.shape[1]:
            raise DataError(
                f"{path}: an adjacency matrix is square; this one is {' x '.join(map(str, adjacency.shape))}."
            )
        n, source, target = adjacency.shape[0], adjacency.row, adjacency.col
        weight = None if (adjacency.data == 1).all() else adjacency.data
    else:
        source, target = _edge_array(arrays, path)
        weight = _weights(arrays, len(source), path)
    features = _matrix(arrays, "attr", path) if "attr_data" in arrays else _take(arrays, FEATURES)
    labels = _take(arrays, LABELS)
    if n is None:
        n = max(
            [int(end.max()) + 1 for end in (source, target)]
            + [len(a) for a in (features, labels) if a is not None]
        )
    for what, array in (("features", features), ("labels", labels)):
        if array is not None and (array.ndim > 2 or array.shape[0] != n):
            raise DataError(
                f"{path}: there are {n:,} nodes but the {what} are {' x '.join(map(str, array.shape))}."
            )
    columns: list[tuple[str, Any]] = [("id", np.arange(n))]
    if labels is not None:
        columns.append(("label", _label_column(labels, path)))
    nodes = make_table(str(path), columns, how, "node", range(n))
    ends: list[tuple[str, Any]] = [("source", source), ("target", target)]
    if weight is not None:
        ends.append(("weight", weight))
    edges = make_table(str(path), ends, "", "edge", range(1, len(source) + 1))
    splits = _folds(arrays, n, path) or _listed_parts(arrays, n, path)
    if arrays:
        notes.warn(f"Arrays of {path} were not used: {', '.join(sorted(arrays))}.", len(arrays))
    return Whole(nodes, edges, _features(features, path), splits)


def _take(arrays: dict[str, Any], names: Sequence[str]) -> Any:
    """The first of these arrays that is there. What is used is taken out: in the end those are left that nobody wanted."""
    return next((arrays.pop(name) for name in names if name in arrays), None)


def _matrix(arrays: dict[str, Any], prefix: str, path: Path) -> Any:
    keys = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
    lacking = [key for key in keys if key not in arrays]
    if lacking:
        raise DataError(
            f"{path} has no array {lacking[0]!r}: a sparse matrix needs {', '.join(keys)}."
        )
    data, indices, indptr, shape = (arrays.pop(key) for key in keys)
    try:
        matrix = scipy.sparse.csr_array(
            (data, indices, indptr), shape=tuple(int(size) for size in shape)
        )
        matrix.check_format(full_check=True)
        return matrix
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"{path}: the arrays {', '.join(keys)} are no sparse matrix ({error})."
        ) from None


def _load_scipy(arrays: dict[str, Any], path: Path) -> Any:
    for name in SCIPY:
        arrays.pop(name, None)
    try:
        matrix = scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        matrix.check_format(full_check=True)
        return matrix
    except Exception as error:  # the arrays do not fit each other, in any of SciPy's formats
        raise DataError(
            f"{path} is no sparse matrix as scipy.sparse.save_npz writes it ({str(error)[:80]})."
        ) from error


def _edge_array(arrays: dict[str, Any], path: Path) -> tuple[Any, Any]:
    edges = _take(arrays, EDGES)
    if edges is None:
        raise DataError(
            f"{path} holds no edges: give a sparse matrix as scipy.sparse.save_npz writes it, adj_data, adj_indices, adj_indptr and "
            f"adj_shape, or an array named {' or '.join(EDGES)}. It has: {', '.join(sorted(arrays)) or 'nothing'}."
        )
    if (
        edges.ndim != 2
        or 2 not in edges.shape
        or not np.issubdtype(edges.dtype, np.integer)
        or not edges.size
    ):
        raise DataError(
            f"{path}: the edges must be whole numbers, 2 x m or m x 2. Got {' x '.join(map(str, edges.shape))} of {edges.dtype}."
        )
    source, target = edges if edges.shape[0] == 2 else edges.T
    if min(source.min(), target.min()) < 0:
        raise DataError(f"{path}: the edges hold negative numbers; nodes count from 0.")
    return source.astype(np.int64), target.astype(np.int64)


def _weights(arrays: dict[str, Any], m: int, path: Path) -> Any:
    name = next((name for name in WEIGHTS if name in arrays), WEIGHTS[0])
    weight = _take(arrays, WEIGHTS)
    if weight is None:
        return None
    if weight.shape not in ((m,), (m, 1)):
        raise DataError(
            f"{path}: there are {m:,} edges but {name} is {' x '.join(map(str, weight.shape))}."
        )
    return weight.reshape(m)


def _label_column(labels: Any, path: Path) -> Any:
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise DataError(f"{path}: {labels.shape[1]} labels a node. One label a node is needed.")
    if np.issubdtype(labels.dtype, np.signedinteger):
        return [None if value < 0 else value for value in labels.tolist()]
    return labels.tolist()


def _features(features: Any, path: Path) -> Any:
    if features is None:
        return None
    values = features.data if scipy.sparse.issparse(features) else features
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool) or np.iscomplexobj(
        values
    ):
        raise DataError(f"{path}: the features are {values.dtype}, not numbers.")
    return (
        features.astype(np.float32) if features.ndim == 2 else features.astype(np.float32)[:, None]
    )


def _folds(arrays: dict[str, Any], n: int, path: Path) -> list[list[Any]]:
    """Masks, n, n x folds or folds x n, as folds."""
    names = next((names for names in MASKS if names[0] in arrays), None)
    if names is None:
        return []
    first = np.atleast_2d(arrays[names[0]]).astype(bool)
    masks = [
        np.atleast_2d(arrays.pop(name)).astype(bool) if name in arrays else np.zeros_like(first)
        for name in names
    ]
    masks = [mask if mask.shape[1] == n else mask.T for mask in masks]
    if any(mask.shape != (len(masks[0]), n) for mask in masks):
        raise DataError(
            f"{path}: the masks {', '.join(names)} are not for {n:,} nodes and the same number of folds."
        )
    return [list(parts) for parts in zip(*masks, strict=True)]


def _listed_parts(arrays: dict[str, Any], n: int, path: Path) -> list[list[Any]]:
    """The numbers of the nodes of each part as masks, one fold."""
    if not any(name in arrays for name in INDICES[0]):
        return []
    masks = []
    for names in INDICES:
        listed, mask = _take(arrays, names), np.zeros(n, dtype=bool)
        if listed is not None:
            whole = listed.ndim == 1 and (
                np.issubdtype(listed.dtype, np.integer) or not listed.size
            )
            if not whole or (listed.size and not 0 <= listed.min() <= listed.max() < n):
                raise DataError(
                    f"{path}: {' or '.join(names)} must hold whole numbers from 0 to {n - 1:,}, those of nodes."
                )
            mask[listed.astype(np.int64)] = True
        masks.append(mask)
    return [masks]
