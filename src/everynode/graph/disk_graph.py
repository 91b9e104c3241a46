"""Graph in a folder: its features stay on disk, so it may be larger than memory."""

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
from everynode.graph.graph import Split, labeled_nodes
from everynode.graph.matrix_rows import FileRows
from everynode.graph.neighbors import Neighbors
from everynode.graph.validation import check_labels, check_split, tidy_edges, tidy_split
from everynode.storage.json_text import parse_json

FORMAT = 1
CARD = "graph.json"
#: Rows written at once.
ROWS = 65536


@dataclass(frozen=True, eq=False, repr=False)
class DiskGraph:
    """Undirected graph without edge weights, with features and neighbors in files.

    Create the folder with :meth:`write`, or open an existing one with :meth:`open`. It holds
    ``graph.json``, ``features.npy`` (n x c, float32), ``crow.npy`` and ``col.npy`` (the neighbors,
    CSR), ``labels.npy``, ``train.npy``, ``val.npy`` and ``test.npy``.

    Memory: 8 bytes per node each for ``crow``, the degrees and the labels, and at most 8 bytes per
    edge for the used parts of ``col``, which is memory-mapped. Features take none.

    Attributes
    ----------
    folder : Path
        The folder.
    features : FileRows
        The features, read row by row.
    neighbors : Neighbors
        The neighbors of every node.
    labels, classes, splits, name
        As in :class:`~everynode.graph.graph.Graph`; there is one split.
    digest : str
        Digest of the content.

    Examples
    --------
    >>> import tempfile
    >>> from everynode.datasets import generate
    >>> g = generate(20, 40, 8, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     disk = DiskGraph.write(
    ...         folder, g.features.numpy(), g.edges, g.labels, split=g.splits[0], classes=g.classes
    ...     )
    >>> disk.num_nodes, disk.num_edges == g.num_edges
    (20, True)
    """

    folder: Path
    name: str
    classes: tuple[Hashable, ...]
    features: FileRows
    neighbors: Neighbors
    labels: Tensor
    splits: tuple[Split, ...]
    digest: str

    dtype = torch.float32
    directed = False

    @classmethod
    def open(cls, folder: Path | str) -> DiskGraph:
        """Open a folder that :meth:`write` has written."""
        folder = Path(folder)
        try:
            card = parse_json((folder / CARD).read_text(encoding="utf-8"))
            if card["format"] != FORMAT:
                raise DataError(
                    f"{folder / CARD} is of format {card['format']}, not {FORMAT}: "
                    "a newer everynode wrote it."
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
                f"{folder} is not a graph's folder: {Path(error.filename).name} is missing; "
                "write it again."
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{folder} cannot be read as a graph ({error}): write it again."
            ) from error
        n = len(labels)
        if features.shape[0] != n or len(crow) != n + 1 or crow[-1] != len(col):
            raise DataError(
                f"The files of {folder} are not of one graph "
                f"({n} labels, {features.shape[0]} rows): write it again."
            )
        split = Split(*(torch.from_numpy(part) for part in parts))
        return cls(
            folder,
            name,
            classes,
            features,
            Neighbors(crow, col),
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

        Parameters
        ----------
        folder
            The folder; it is created if necessary.
        features
            n x c matrix, or an iterable of blocks of its rows if it does not fit into memory.
        edge_index
            2 x m node indices; each edge in one direction or both. Self-loops and repeated edges
            are dropped.
        labels
            Class indices, -1 for unlabeled.
        split
            Train, validation and test nodes, as indices or masks.
        classes
            Class names, in the order of their indices.
        name
            Name for messages and reports.
        """
        folder = Path(folder)
        y = torch.as_tensor(np.asarray(labels, dtype=np.int64))
        n = len(y)
        check_labels(y, len(classes))
        parts = tidy_split(split, n)
        check_split(parts, n, 0)
        edges, _, _ = tidy_edges(edge_index, None, n, directed=False)
        neighbors = Neighbors.of_edges(edges.numpy(), n)
        sha = hashlib.sha256(repr((n, tuple(classes))).encode())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The card is removed first and written last: without it, the folder has no graph.
            (folder / CARD).unlink(missing_ok=True)
            arrays = {"crow": neighbors.crow, "col": neighbors.col, "labels": y.numpy()}
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
                f"Cannot write {folder}: {error.strerror or error}; "
                "free some space or choose another folder."
            ) from error
        return cls.open(folder)

    def __repr__(self) -> str:
        return (
            f"DiskGraph {self.name!r}: {self.num_nodes} nodes, {self.num_edges} edges, "
            f"{self.num_features} features, {self.num_classes} classes, in {self.folder}"
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return self.features.shape[0]

    @property
    def num_edges(self) -> int:
        """Number of undirected edges, m."""
        return len(self.neighbors.col) // 2

    @property
    def num_features(self) -> int:
        """Number of features, c_in."""
        return self.features.shape[1]

    @property
    def num_classes(self) -> int:
        """Number of classes, k."""
        return len(self.classes)

    def nodes(self, part: str, fold: int = 0) -> Tensor:
        """Return the labeled nodes of 'train', 'val' or 'test'."""
        return labeled_nodes(self, part, fold)

    def rows(self, nodes: npt.NDArray[Any]) -> Tensor:
        """Read the features of some nodes from disk."""
        return torch.from_numpy(self.features.read(nodes))


def _blocks_of(features: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    for start in range(0, len(features), ROWS):
        yield features[start : start + ROWS]


def _write_rows(path: Path, blocks: Iterable[npt.NDArray[Any]], n: int, sha: Any) -> None:
    """Check blocks of rows and write them as one .npy file."""
    done, width = 0, None
    with path.open("wb") as file:
        for rows in blocks:
            block = np.ascontiguousarray(rows, dtype=np.float32)
            if width is None and block.ndim == 2:
                width = block.shape[1]
                np.lib.format.write_array_header_1_0(
                    file, {"descr": "<f4", "fortran_order": False, "shape": (n, width)}
                )
            if block.ndim != 2 or block.shape[1] != width or done + len(block) > n:
                raise DataError(
                    f"Features for {n} nodes must come in blocks of rows of one width; "
                    f"got shape {block.shape} at row {done}."
                )
            if not np.isfinite(block).all():
                node, column = np.argwhere(~np.isfinite(block))[0]
                raise DataError(
                    f"Feature {column} of node {done + node} is {block[node, column]}: "
                    "features must be finite numbers."
                )
            file.write(block.astype("<f4", copy=False).data)
            sha.update(block.data)
            done += len(block)
    if done != n or width is None:
        raise DataError(f"{n} nodes have labels but {done} have features: give one row per node.")
