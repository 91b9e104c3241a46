"""Reader of graphs in NumPy archives (.npz). A pickle is never opened."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from everynode.errors import DataError
from everynode.io.formats import ARRAY_BYTES, check_unpacked, unpacked_limit
from everynode.io.summary import Notes, counted
from everynode.io.tables import Table, make_table

#: The names of arrays, the first match is used.
EDGES = ("edge_index", "edges")
WEIGHTS = ("edge_weight", "edge_weights")
FEATURES = ("x", "features", "node_features", "attr_matrix")
LABELS = ("y", "labels", "node_labels")
#: The masks of a split with one fold or several, and the node numbers of its parts.
MASKS = ("train_mask", "val_mask", "test_mask"), ("train_masks", "val_masks", "test_masks")
INDICES = ("train_idx",), ("val_idx", "valid_idx"), ("test_idx",)
#: The arrays of a matrix that SciPy wrote, in any of its formats.
SCIPY_ARRAYS = (
    *("format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets"),
    "_is_array",
)
#: Errors of NumPy and zipfile for a damaged or foreign file.
DAMAGES = (
    *(ValueError, KeyError, EOFError, NotImplementedError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, SyntaxError, UnicodeError, MemoryError, struct.error),
    tokenize.TokenError,
)
#: The limit of node numbers: this, or this many times the number of edges, labels and feature rows.
SMALL_COUNT = 1_000_000
SPARSE_FACTOR = 100


def read_npz(path: Path, notes: Notes) -> tuple[Table, Table, Any, list[list[Any]]]:
    """Return the node table, edge table, feature matrix and splits of an archive.

    It may be a matrix from ``scipy.sparse.save_npz``, the layout of gnn-benchmark (``adj_data``,
    ``attr_data``, ``labels``, ...), or arrays such as ``edge_index``, ``x`` and ``y``.
    """
    arrays = _load_arrays(path, notes)
    how = f"NumPy archive ({', '.join(sorted(arrays))})"
    n = None
    if "format" in arrays or "adj_indptr" in arrays:
        matrix = _read_scipy(arrays, path) if "format" in arrays else _read_csr(arrays, "adj", path)
        adjacency = matrix.tocoo()
        if adjacency.shape[0] != adjacency.shape[1]:
            raise DataError(f"{path}: an adjacency matrix must be square. Got {_shape(adjacency)}.")
        n, source, target = adjacency.shape[0], adjacency.row, adjacency.col
        _check_count(n, f"{path}: the matrix has", "node", n - 1, adjacency.nnz)
        weight = None if (adjacency.data == 1).all() else adjacency.data
    else:
        source, target = _read_edges(arrays, path)
        weight = _read_weights(arrays, len(source), path)
    features = _read_csr(arrays, "attr", path) if "attr_data" in arrays else _pop(arrays, FEATURES)
    labels = _pop(arrays, LABELS)
    if n is None:
        sizes = [_num_rows(array) for array in (features, labels) if array is not None]
        last = max(int(source.max()), int(target.max()))
        _check_count(last, f"{path}: the edges name", "node", last, len(source), *sizes)
        n = max([last + 1, *sizes])
        source, target = source.astype(np.int64), target.astype(np.int64)
    for name, array in (("features", features), ("labels", labels)):
        if array is not None and (array.ndim > 2 or _num_rows(array) != n):
            raise DataError(f"{path}: there are {n:,} nodes but the {name} are {_shape(array)}.")
    node_columns: list[tuple[str, Any]] = [("id", np.arange(n))]
    if labels is not None:
        node_columns.append(("label", _label_column(labels, path)))
    edge_columns: list[tuple[str, Any]] = [("source", source), ("target", target)]
    if weight is not None:
        edge_columns.append(("weight", weight))
    nodes = make_table(str(path), node_columns, how, "node", range(n))
    edges = make_table(str(path), edge_columns, "", "edge", range(1, len(source) + 1))
    splits = _read_masks(arrays, n, path) or _read_indices(arrays, n, path)
    if arrays:
        notes.warn(f"Arrays of {path} were not used: {', '.join(sorted(arrays))}.", len(arrays))
    return nodes, edges, _check_features(features, path), splits


def _load_arrays(path: Path, notes: Notes) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            size = sum(member.file_size for member in archive.zip.infolist())
            check_unpacked(path, size, unpacked_limit(path, ARRAY_BYTES))
            for key in archive.files:
                try:
                    arrays[key] = archive[key]
                except ValueError:  # an array of Python objects, stored as a pickle
                    notes.warn(
                        f"The array {key!r} of {path} holds Python objects and was skipped: "
                        "pickles are never opened."
                    )
                if isinstance(arrays.get(key), bytes):  # NumPy returns the bytes of other members
                    del arrays[key]
                    notes.warn(f"The member {key!r} of {path} is no array, and was skipped.")
    except DataError:
        raise
    except DAMAGES as error:
        raise DataError(f"{path} is not a NumPy archive ({str(error)[:80]}).") from error
    except (TypeError, AttributeError):  # NumPy opened it, but as a single array
        raise DataError(
            f"{path} holds one array. A graph needs an archive of several, written by np.savez or "
            "scipy.sparse.save_npz."
        ) from None
    return arrays


def _pop(arrays: dict[str, Any], names: Sequence[str]) -> Any:
    """Remove and return the first of these arrays; the arrays that remain were not used."""
    return next((arrays.pop(name) for name in names if name in arrays), None)


def _shape(array: Any) -> str:
    return " x ".join(map(str, array.shape)) or "a single value"


def _num_rows(array: Any) -> int:
    return int(array.shape[0]) if array.ndim else 0


def _check_count(
    number: int, claim: str, unit: str, name: int, num_edges: int, *sizes: int
) -> None:
    """Refuse a node number far above the sizes of the arrays, because memory grows with it."""
    if number > max(SMALL_COUNT, SPARSE_FACTOR * max(num_edges, *sizes, 0)):
        raise DataError(
            f"{claim} {unit} {name:,}, with {counted(num_edges, 'edge')} in the file. Number the "
            "nodes from 0 without large gaps, or give an edge table, where ids may be any number."
        )


def _is_numeric(array: Any) -> bool:
    return array.dtype.kind in "biuf"


def _read_csr(arrays: dict[str, Any], prefix: str, path: Path) -> Any:
    keys = [f"{prefix}_{part}" for part in ("data", "indices", "indptr", "shape")]
    absent = [key for key in keys if key not in arrays]
    if absent:
        raise DataError(
            f"{path} has no array {absent[0]!r}. A sparse matrix needs {', '.join(keys)}."
        )
    data, indices, indptr, shape = (arrays.pop(key) for key in keys)
    if not _is_numeric(data):
        raise DataError(f"{path}: {keys[0]} is {data.dtype}, not numbers.")
    try:
        size = tuple(int(length) for length in shape)
        if size[1] > max(SMALL_COUNT, SPARSE_FACTOR * data.size):
            unit = "nodes" if prefix == "adj" else "features"
            raise DataError(
                f"{path}: {keys[3]} declares {size[1]:,} {unit}, with "
                f"{counted(data.size, 'value')} in the matrix. Correct {keys[3]}."
            )
        matrix = scipy.sparse.csr_array((data, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
        return matrix
    except DataError:
        raise
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise DataError(
            f"{path}: the arrays {', '.join(keys)} are not a sparse matrix ({error})."
        ) from None


def _read_scipy(arrays: dict[str, Any], path: Path) -> Any:
    for name in SCIPY_ARRAYS:
        arrays.pop(name, None)
    try:
        loaded = scipy.sparse.load_npz(path)
        _check_count(
            max(loaded.shape), f"{path}: the matrix has", "node", max(loaded.shape) - 1, loaded.nnz
        )
        matrix = scipy.sparse.csr_array(loaded)
        matrix.check_format(full_check=True)
        if not _is_numeric(matrix):
            raise ValueError(f"its values are {matrix.dtype}, not numbers")
        return matrix
    except DataError:
        raise
    except Exception as error:  # inconsistent arrays, in any of SciPy's formats
        raise DataError(
            f"{path} is not a sparse matrix written by scipy.sparse.save_npz ({str(error)[:80]})."
        ) from error


def _read_edges(arrays: dict[str, Any], path: Path) -> tuple[Any, Any]:
    edges = _pop(arrays, EDGES)
    if edges is None:
        raise DataError(
            f"{path} holds no edges. It needs a sparse matrix written by scipy.sparse.save_npz, or "
            "adj_data, adj_indices, adj_indptr and adj_shape, or an array named "
            f"{' or '.join(EDGES)}. It has: {', '.join(sorted(arrays)) or 'nothing'}."
        )
    is_pair_list = edges.ndim == 2 and 2 in edges.shape and edges.size
    if not is_pair_list or edges.dtype.kind not in "iu":
        raise DataError(
            f"{path}: the edges must be whole numbers, 2 x m or m x 2. Got {_shape(edges)} of "
            f"{edges.dtype}."
        )
    source, target = edges if edges.shape[0] == 2 else edges.T
    if min(source.min(), target.min()) < 0:
        raise DataError(f"{path}: the edges hold negative numbers. Nodes count from 0.")
    return source, target


def _read_weights(arrays: dict[str, Any], num_edges: int, path: Path) -> Any:
    name = next((name for name in WEIGHTS if name in arrays), WEIGHTS[0])
    weight = _pop(arrays, WEIGHTS)
    if weight is None:
        return None
    if weight.shape not in ((num_edges,), (num_edges, 1)):
        raise DataError(f"{path}: there are {num_edges:,} edges but {name} is {_shape(weight)}.")
    return weight.reshape(num_edges)


def _label_column(labels: Any, path: Path) -> Any:
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise DataError(
            f"{path}: {labels.shape[1]} labels per node. Exactly one label per node is supported."
        )
    if labels.dtype.kind not in "biufUSM":
        raise DataError(
            f"{path}: the labels are {labels.dtype}. Labels are words or whole numbers."
        )
    if labels.dtype.kind == "i":
        return [None if value < 0 else value for value in labels.tolist()]
    return labels.tolist()


def _check_features(features: Any, path: Path) -> Any:
    if features is None:
        return None
    values = features.data if scipy.sparse.issparse(features) else features
    if not _is_numeric(values):
        raise DataError(f"{path}: the features are {values.dtype}, not numbers.")
    features = features.astype(np.float32)
    return features if features.ndim == 2 else features[:, None]


def _read_masks(arrays: dict[str, Any], n: int, path: Path) -> list[list[Any]]:
    """Read the folds from masks of shape n, n x folds or folds x n."""
    names = next((names for names in MASKS if names[0] in arrays), None)
    if names is None:
        return []
    for name in names:
        if name in arrays and not _is_numeric(arrays[name]):
            raise DataError(f"{path}: {name} is {arrays[name].dtype}. Masks are true or false.")
        if name in arrays and not np.isin(arrays[name], (0, 1)).all():
            raise DataError(
                f"{path}: {name} holds other values than 0 and 1. Are they node numbers?"
            )
    first = np.atleast_2d(arrays[names[0]]).astype(bool)
    masks = [
        np.atleast_2d(arrays.pop(name)).astype(bool) if name in arrays else np.zeros_like(first)
        for name in names
    ]
    masks = [mask if mask.shape[1] == n else mask.T for mask in masks]
    if any(mask.shape != (len(masks[0]), n) for mask in masks):
        raise DataError(
            f"{path}: the masks {', '.join(names)} must all have {n:,} nodes and the same number "
            "of folds."
        )
    return [list(parts) for parts in zip(*masks, strict=True)]


def _read_indices(arrays: dict[str, Any], n: int, path: Path) -> list[list[Any]]:
    """Read one fold from the node numbers of its parts."""
    if not any(name in arrays for name in INDICES[0]):
        return []
    masks = []
    for names in INDICES:
        indices, mask = _pop(arrays, names), np.zeros(n, dtype=bool)
        if indices is not None:
            is_whole = indices.dtype.kind in "iu" or not indices.size
            in_range = not indices.size or 0 <= indices.min() <= indices.max() < n
            if indices.ndim != 1 or not is_whole or not in_range:
                raise DataError(
                    f"{path}: {' or '.join(names)} must hold whole numbers from 0 to {n - 1:,}, "
                    "the numbers of nodes."
                )
            mask[indices.astype(np.int64)] = True
        masks.append(mask)
    return [masks]
