"""Geom-GCN's text files (Pei et al., 2020): WebKB, Wikipedia and Actor, and the ten splits that everybody uses.

``out1_node_feature_label.txt``: node number, features, class, between tabs. The features are 0/1 for every feature (WebKB, Wikipedia)
or the numbers of those that are 1 (Actor). ``out1_graph_edges.txt``: source and target. Both have one line of headings.
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
    """The graph in the two files; ``listed`` when features are given as the numbers of those that are 1."""
    features, labels = read_nodes(nodes, where_nodes, listed=listed)
    return Raw(
        features,
        read_edges(edges, where_edges, len(labels)),
        labels,
        int(labels.max(initial=-1)) + 1,
    )


def read_nodes(
    content: bytes, where: str, *, listed: bool = False
) -> tuple[scipy.sparse.csr_array, npt.NDArray[np.int64]]:
    """Features and class indices, in the order of the node numbers (the lines need not be)."""
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
                raise ValueError(f"node number {node} is a repeat or not one of 0 to {n - 1}")
            if label < 0:
                raise ValueError(f"the class is {label}")
            if listed:
                columns[node] = np.unique(
                    np.array(
                        [int(item) for item in feature_text.split(b",") if item], dtype=np.int64
                    )
                )
                if len(columns[node]) and columns[node][0] < 0:
                    raise ValueError(f"feature number {columns[node][0]}")
                values[node] = np.ones(len(columns[node]), np.float32)
                size = int(columns[node].max(initial=-1)) + 1
                width = max(width, size)
            else:
                columns[node], values[node], size = _row(feature_text)
                if number > 2 and size != width:
                    raise ValueError(f"{size} features where the lines before have {width}")
                width = size
            labels[node] = label
        except (ValueError, OverflowError) as error:
            raise DataError(f"{where}, line {number}: {_explain(error, line, 3)}.") from error
    if not n:
        raise DataError(f"{where} has no nodes: it is empty or cut short.")
    indptr = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    return scipy.sparse.csr_array(
        (np.concatenate(values), np.concatenate(columns), indptr), shape=(n, width)
    ), labels


def _row(text: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], int]:
    """The non-zero columns, their values and the length of a line such as ``0,1,0``."""
    characters = np.frombuffer(text, dtype=np.uint8)
    bits = characters[::2] - _ZERO  # wraps far above 1 for anything but 0 and 1
    if len(characters) % 2 and int(bits.max()) <= 1 and bool((characters[1::2] == _COMMA).all()):
        where = np.flatnonzero(bits)
        return where, np.ones(len(where), np.float32), len(bits)
    row = np.array([float(item) for item in text.split(b",")], dtype=np.float32)
    where = np.flatnonzero(row)
    return where, row[where], len(row)


def read_edges(content: bytes, where: str, n: int) -> npt.NDArray[np.int64]:
    """2 x m, source and target, as the file lists them."""
    lines = content.splitlines()[1:]
    pairs = [line.split(b"\t") for line in lines]
    try:
        arcs = (
            np.array([(int(source), int(target)) for source, target in pairs], dtype=np.int64)
            .reshape(-1, 2)
            .T
        )
    except (ValueError, OverflowError):
        arcs = np.empty((2, 0), np.int64)
    outside = ((arcs < 0) | (arcs >= n)).any(0)
    if arcs.shape[1] == len(lines) and not outside.any():
        return arcs
    for number, line in enumerate(lines, 2):  # something is wrong: say where
        try:
            source, target = map(int, line.split(b"\t"))
            if not (0 <= source < n and 0 <= target < n):
                raise ValueError(f"nodes {source} and {target}, but nodes are 0 to {n - 1}")
        except ValueError as error:
            raise DataError(f"{where}, line {number}: {_explain(error, line, 2)}.") from error
    raise DataError(f"{where} cannot be read.")  # pragma: no cover


def _explain(error: Exception, line: bytes, fields: int) -> str:
    found = line.count(b"\t") + 1
    return (
        f"{found} fields between tabs where {fields} are expected"
        if found != fields
        else str(error)
    )


def read_split(content: bytes, where: str, n: int) -> Split:
    """One fold: an ``.npz`` with the masks ``train_mask``, ``val_mask`` and ``test_mask``."""
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
