"""Reader of Geom-GCN's text files: WebKB, Wikipedia and Actor, and the ten public folds.

From "Geom-GCN: Geometric Graph Convolutional Networks" (Pei et al., ICLR 2020),
https://arxiv.org/abs/2002.05287.

``out1_node_feature_label.txt`` holds node number, features and class, separated by tabs. The
features are a 0/1 list (WebKB, Wikipedia) or the numbers of the features that are 1 (Actor).
``out1_graph_edges.txt`` holds source and target. Both files have a heading.
"""

from __future__ import annotations

import io
import zipfile

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from everynode.datasets.raw import Raw
from everynode.errors import DataError
from everynode.graph import Split

_ZERO, _COMMA = ord("0"), ord(",")


def read(
    nodes: bytes, edges: bytes, where_nodes: str, where_edges: str, *, listed: bool = False
) -> Raw:
    """Read the graph in the two files.

    With ``listed``, features are given as the numbers of the features that are 1.
    """
    features, labels = read_nodes(nodes, where_nodes, listed=listed)
    arcs = read_edges(edges, where_edges, len(labels))
    return Raw(features, arcs, labels, int(labels.max(initial=-1)) + 1)


def read_nodes(
    content: bytes, where: str, *, listed: bool = False
) -> tuple[scipy.sparse.csr_array, npt.NDArray[np.int64]]:
    """Read features and class indices, in the order of the node numbers."""
    lines = content.splitlines()[1:]
    n = len(lines)
    columns: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)] * n
    values: list[npt.NDArray[np.float32]] = [np.empty(0, np.float32)] * n
    labels = np.full(n, -1, dtype=np.int64)
    width = 0
    for number, line in enumerate(lines, 2):
        try:
            node_text, feature_text, label_text = line.split(b"\t")
            node, label = int(node_text), int(label_text)
            if not 0 <= node < n or labels[node] >= 0:
                raise ValueError(f"node number {node} is repeated or not in 0 to {n - 1}")
            if label < 0:
                raise ValueError(f"the class is {label}")
            if listed:
                numbers = [int(item) for item in feature_text.split(b",") if item]
                columns[node] = np.unique(np.array(numbers, dtype=np.int64))
                if len(columns[node]) and columns[node][0] < 0:
                    raise ValueError(f"feature number {columns[node][0]}")
                values[node] = np.ones(len(columns[node]), np.float32)
                size = int(columns[node].max(initial=-1)) + 1
                width = max(width, size)
            else:
                columns[node], values[node], size = _parse_row(feature_text)
                if number > 2 and size != width:
                    raise ValueError(f"{size} features where the lines before have {width}")
                width = size
            labels[node] = label
        except (ValueError, OverflowError) as error:
            raise DataError(f"{where}, line {number}: {_explain(error, line, 3)}.") from error
    if not n:
        raise DataError(f"{where} has no nodes: it is empty or incomplete.")
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    features = scipy.sparse.csr_array(
        (np.concatenate(values), np.concatenate(columns), indptr), shape=(n, width)
    )
    return features, labels


def _parse_row(text: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], int]:
    """Return the non-zero columns, their values and the length of a line such as ``0,1,0``."""
    characters = np.frombuffer(text, dtype=np.uint8)
    bits = characters[::2] - _ZERO  # unsigned: other characters wrap to values far above 1
    if len(characters) % 2 and int(bits.max()) <= 1 and bool((characters[1::2] == _COMMA).all()):
        columns = np.flatnonzero(bits)
        return columns, np.ones(len(columns), np.float32), len(bits)
    row = np.array([float(item) for item in text.split(b",")], dtype=np.float32)
    columns = np.flatnonzero(row)
    return columns, row[columns], len(row)


def read_edges(content: bytes, where: str, n: int) -> npt.NDArray[np.int64]:
    """Read the 2 x m source and target numbers, in the order of the file."""
    lines = content.splitlines()[1:]
    pairs = [line.split(b"\t") for line in lines]
    try:
        numbers = [(int(source), int(target)) for source, target in pairs]
        arcs = np.array(numbers, dtype=np.int64).reshape(-1, 2).T
    except (ValueError, OverflowError):
        arcs = np.empty((2, 0), np.int64)
    is_outside = ((arcs < 0) | (arcs >= n)).any(0)
    if arcs.shape[1] == len(lines) and not is_outside.any():
        return arcs
    for number, line in enumerate(lines, 2):  # find the line to blame
        try:
            source, target = map(int, line.split(b"\t"))
            if not (0 <= source < n and 0 <= target < n):
                raise ValueError(f"nodes {source} and {target}, but nodes are 0 to {n - 1}")
        except ValueError as error:
            raise DataError(f"{where}, line {number}: {_explain(error, line, 2)}.") from error
    raise DataError(f"{where} cannot be read.")  # pragma: no cover


def _explain(error: Exception, line: bytes, num_fields: int) -> str:
    actual = line.count(b"\t") + 1
    if actual != num_fields:
        return f"{actual} fields between tabs where {num_fields} are expected"
    return str(error)


def read_split(content: bytes, where: str, n: int) -> Split:
    """Read one fold: an ``.npz`` file with ``train_mask``, ``val_mask`` and ``test_mask``."""
    parts = []
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as masks:
            for part in Split._fields:
                mask = masks[f"{part}_mask"]
                if mask.shape != (n,):
                    raise ValueError(f"{part}_mask has shape {mask.shape}, but there are {n} nodes")
                parts.append(torch.from_numpy(np.flatnonzero(mask)))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{where} is not a split: {error}. Fetch the file again.") from error
    return Split(*parts)
