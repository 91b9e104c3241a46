"""A graph in a folder: its features stay on disk and are read as they are needed, so that it may be larger than memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from everynode.errors import DataError
from everynode.graph.graph import Split, labelled_nodes
from everynode.graph.matrix_rows import FileRows
from everynode.graph.neighbors import Neighbours
from everynode.graph.validation import check_labels, check_split, tidy_edges, tidy_split

FORMAT = 1
CARD = "graph.json"
#: Rows that are read or written at once.
ROWS = 65536


@dataclass(frozen=True, eq=False, repr=False)
class DiskGraph:
    """An undirected graph without edge weights whose features and neighbours are files. Open one, or :meth:`write` it first.

    The folder holds ``graph.json``, ``features.npy`` (n x c, float32), ``crow.npy`` and ``col.npy`` (the neighbours, CSR), ``labels.npy``
    and ``train.npy``, ``val.npy``, ``test.npy``. In memory are 8 bytes a node for ``crow``, as many for the degrees and for the labels, and
    of ``col``, which is mapped, what was looked at: 8 bytes an edge at most. Of the features there is nothing.
    """

    folder: Path
    name: str
    classes: tuple[Hashable, ...]
    features: FileRows
    neighbours: Neighbours
    labels: Tensor
    splits: tuple[Split, ...]
    #: Of the content.
    digest: str

    dtype = torch.float32
    directed = False

    @classmethod
    def open(cls, folder: Path | str) -> DiskGraph:
        """The graph in a folder that :meth:`write` has written."""
        folder = Path(folder)
        try:
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
            if card["format"] != FORMAT:
                raise DataError(
                    f"{folder / CARD} is of format {card['format']}, not {FORMAT}: a newer everynode wrote it."
                )
            crow, labels, *parts = (
                np.load(folder / f"{name}.npy") for name in ("crow", "labels", *Split._fields)
            )
            features, col = (
                FileRows.of_npy(folder / "features.npy"),
                np.load(folder / "col.npy", mmap_mode="r"),
            )
            classes, name, digest = tuple(card["classes"]), str(card["name"]), str(card["digest"])
        except DataError:
            raise
        except FileNotFoundError as error:
            raise DataError(
                f"{folder} is not a graph's folder: {Path(error.filename).name} is missing; write it again."
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{folder} cannot be read as a graph ({error}): write it again."
            ) from error
        n = len(labels)
        if features.shape[0] != n or len(crow) != n + 1 or crow[-1] != len(col):
            raise DataError(
                f"The files of {folder} are not of one graph ({n} labels, {features.shape[0]} rows): write it again."
            )
        split = Split(*(torch.from_numpy(part) for part in parts))
        return cls(
            folder,
            name,
            classes,
            features,
            Neighbours(crow, col),
            torch.from_numpy(labels),
            (split,),
            digest,
        )

    @classmethod
    def write(
        cls,
        folder: Path | str,
        features: npt.NDArray[Any] | Iterable[npt.NDArray[Any]],
        edge_index: npt.ArrayLike,
        labels: npt.ArrayLike,
        *,
        split: Sequence[Any],
        classes: Sequence[Hashable],
        name: str = "graph",
    ) -> DiskGraph:
        """Write a graph into a folder and open it.

        ``features``: n x c, or blocks of its rows one after the other, for what does not fit into memory. ``edge_index``: 2 x m, each
        edge in one direction or both; loops and repeats are dropped. ``labels``: class indices, -1 for unlabelled. ``split``: train,
        validation and test nodes.
        """
        folder = Path(folder)
        y = torch.as_tensor(np.asarray(labels, dtype=np.int64))
        n = len(y)
        check_labels(y, len(classes))
        parts = tidy_split(split, n)
        check_split(parts, n, 0)
        edges, _, _ = tidy_edges(edge_index, None, n, directed=False)
        neighbours = Neighbours.of_edges(edges.numpy(), n)
        sha = hashlib.sha256(repr((n, tuple(classes))).encode())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / CARD).unlink(
                missing_ok=True
            )  # without it the folder holds no graph, until all of it is there
            arrays = {"crow": neighbours.crow, "col": neighbours.col, "labels": y.numpy()}
            arrays |= {
                part: index.numpy() for part, index in zip(Split._fields, parts, strict=True)
            }
            for file, array in arrays.items():
                np.save(folder / f"{file}.npy", array)
                sha.update(np.ascontiguousarray(array).data)
            blocks = _blocks_of(features) if isinstance(features, np.ndarray) else features
            _write_rows(folder / "features.npy", blocks, n, sha)
            card = {
                "format": FORMAT,
                "name": name,
                "classes": list(classes),
                "digest": sha.hexdigest(),
            }
            (folder / CARD).write_text(json.dumps(card), encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"Cannot write {folder}: {error.strerror or error}; free some space or choose another folder."
            ) from error
        return cls.open(folder)

    def __repr__(self) -> str:
        return (
            f"DiskGraph {self.name!r}: {self.num_nodes} nodes, {self.num_edges} edges, {self.num_features} features, "
            f"{self.num_classes} classes, in {self.folder}"
        )

    @property
    def num_nodes(self) -> int:
        """n."""
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """m: undirected edges."""
        return len(self.neighbours.col) // 2

    @property
    def num_features(self) -> int:
        """c_in."""
        return self.features.shape[1]

    @property
    def num_classes(self) -> int:
        """k."""
        return len(self.classes)

    def nodes(self, part: str, fold: int = 0) -> Tensor:
        """The labelled nodes of 'train', 'val' or 'test'."""
        return labelled_nodes(self, part, fold)

    def rows(self, nodes: npt.NDArray[Any]) -> Tensor:
        """The features of some nodes, read from disk."""
        return torch.from_numpy(self.features.read(nodes))


def _blocks_of(features: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(features), ROWS):
        yield features[start : start + ROWS]


def _write_rows(path: Path, blocks: Iterable[npt.NDArray[Any]], n: int, sha: Any) -> None:
    """Blocks of rows as one .npy file, each checked."""
    done, width = 0, None
    with path.open("wb") as file:
        for given in blocks:
            block = np.ascontiguousarray(given, dtype=np.float32)
            if width is None and block.ndim == 2:
                width = block.shape[1]
                np.lib.format.write_array_header_1_0(
                    file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
                )
            if block.ndim != 2 or block.shape[1] != width or done + len(block) > n:
                raise DataError(
                    f"Features for {n} nodes must come in blocks of rows of one width; got shape {block.shape} at row {done}."
                )
            if not np.isfinite(block).all():
                node, column = np.argwhere(~np.isfinite(block))[0]
                raise DataError(
                    f"Feature {column} of node {done + node} is {block[node, column]}: features must be finite numbers."
                )
            file.write(block.astype("<f4", copy=False).data)
            sha.update(block.data)
            done += len(block)
    if done != n or width is None:
        raise DataError(f"{n} nodes have labels but {done} have features: give one row per node.")
