"""Reader of Planetoid's ``ind.<name>.*`` files: Cora, Citeseer and Pubmed with the public split.

From "Revisiting Semi-Supervised Learning with Graph Embeddings" (Yang, Cohen and Salakhutdinov,
ICML 2016), https://arxiv.org/abs/1603.08861.

The files are Python 2 pickles. No code in them can run: their few names are mapped to inert
stand-ins, which only keep their arguments, and any other name is refused. The arrays are then built
from plain numbers.
"""

from __future__ import annotations

import io
import math
import pickle
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from everynode.datasets.entries import PLANETOID_PARTS
from everynode.datasets.raw import Raw
from everynode.errors import DataError
from everynode.graph import UNLABELED, Split

#: The validation nodes of the public split follow its training nodes.
NUM_VAL = 500
#: Only types of plain numbers: an object array could hold anything.
_NUMBER_TYPES = frozenset({"f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1"})


class _Dtype:
    """Stand-in for ``numpy.dtype``: keeps its code and byte order."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def resolve(self) -> np.dtype[Any]:
        if self.code not in _NUMBER_TYPES:
            raise ValueError(f"an array of type {self.code!r}")
        return np.dtype((self.order if self.order in "<>" else "=") + self.code)


class _Array:
    """Stand-in for ``numpy.ndarray`` and its constructor: keeps shape, type and bytes."""

    state: tuple[Any, ...]

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def resolve(self) -> npt.NDArray[Any]:
        _, shape, dtype, fortran, content = self.state
        # The byte strings of Python 2 arrive as text, decoded with latin-1.
        data = content.encode("latin-1") if isinstance(content, str) else content
        flat = np.frombuffer(data, dtype=dtype.resolve())
        if math.prod(shape) != flat.size:
            raise ValueError(f"an array of shape {shape} with {flat.size} values")
        return flat.reshape(shape, order="F" if fortran else "C")


class _Matrix:
    """Stand-in for ``scipy.sparse.csr_matrix``."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def resolve(self) -> scipy.sparse.csr_array:
        parts = tuple(self.state[key].resolve() for key in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_array(parts, shape=tuple(self.state["_shape"]))
        matrix.check_format(full_check=True)
        return matrix


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name that the public files use; refuse any other name."""
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"the name {module}.{name}")
        return _STAND_INS[module, name]


def unpickle(content: bytes, where: object) -> Any:
    """Read an array, a CSR array or a dict of lists from a Planetoid file.

    Anything else raises :class:`DataError`.
    """
    try:
        value = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        if isinstance(value, _Array | _Matrix):
            value = value.resolve()
        elif not isinstance(value, dict):
            raise ValueError(f"a {type(value).__name__}")
    except Exception as error:  # a broken pickle may raise anything
        raise DataError(
            f"{where} is not a Planetoid file, and nothing in it was run: it holds {error}. Fetch "
            "the file again."
        ) from error
    return value


def read(files: Mapping[str, bytes], where: str) -> Raw:
    """Read the graph in the eight files.

    ``files`` has the keys of :data:`PLANETOID_PARTS`. ``where`` names the files in messages, as in
    ``folder/ind.cora``.
    """
    part = {
        key: unpickle(files[key], f"{where}.{key}")
        for key in PLANETOID_PARTS
        if key != "test.index"
    }
    test = _parse_test_index(files["test.index"], f"{where}.test.index")
    _check_parts(part, test, where)
    num_known, num_test = part["allx"].shape[0], part["tx"].shape[0]
    # Row i of tx is node test[i]. Citeseer's numbers have gaps: those nodes have neither features
    # nor a label.
    n = max(num_known, int(test.max(initial=-1)) + 1)
    row = np.full(n, -1)
    row[:num_known] = np.arange(num_known)
    row[test] = num_known + np.arange(num_test)
    present = np.flatnonzero(row >= 0)
    stacked = scipy.sparse.vstack([part["allx"], part["tx"]], format="csr")
    permutation = scipy.sparse.csr_array(
        (np.ones(len(present), np.float32), (present, row[present])), shape=(n, stacked.shape[0])
    )
    one_hot = np.concatenate([part["ally"], part["ty"]])
    labels = np.full(n, UNLABELED)
    labels[present] = np.where(one_hot.any(1), one_hot.argmax(1), UNLABELED)[row[present]]
    num_train = len(part["y"])
    split = Split(
        torch.arange(num_train),
        torch.arange(num_train, min(num_train + NUM_VAL, num_known)),
        torch.from_numpy(np.sort(test)),
    )
    arcs = _read_arcs(part["graph"], f"{where}.graph")
    return Raw(permutation @ stacked, arcs, labels, one_hot.shape[1], split)


def _check_parts(part: Mapping[str, Any], test: npt.NDArray[np.int64], where: str) -> None:
    """Refuse inconsistent files."""
    for key in ("x", "tx", "allx"):
        _expect(isinstance(part[key], scipy.sparse.csr_array), f"{where}.{key}", "a csr_array")
    _expect(isinstance(part["graph"], dict), f"{where}.graph", "a dict")
    for key in ("y", "ty", "ally"):
        is_table = isinstance(part[key], np.ndarray) and part[key].ndim == 2
        _expect(is_table, f"{where}.{key}", "a table of labels")
    num_known, num_test = part["allx"].shape[0], part["tx"].shape[0]
    index_file = f"{where}.test.index"
    _expect(len(test) == num_test == len(part["ty"]), index_file, f"{num_test} node numbers")
    _expect(len(part["ally"]) == num_known, f"{where}.ally", f"{num_known} rows")
    is_valid = len(np.unique(test)) == num_test and test.min(initial=num_known) >= num_known
    _expect(is_valid, index_file, f"distinct numbers from {num_known} on")


def _expect(condition: bool, where: str, expected: str) -> None:
    if not condition:
        raise DataError(f"{where} does not hold {expected}. Fetch the file again.")


def _parse_test_index(content: bytes, where: str) -> npt.NDArray[np.int64]:
    lines = content.split()
    for number, line in enumerate(lines, 1):
        if not line.isdigit():
            raise DataError(
                f"{where}, line {number}: {line[:40].decode('latin-1')!r} is not a node number."
            )
    return np.array([int(line) for line in lines], dtype=np.int64)


def _read_arcs(graph: dict[int, list[int]], where: str) -> npt.NDArray[np.int64]:
    """Return an arc from every node to each of its neighbors, in the order of the file."""
    try:
        lengths = [len(neighbors) for neighbors in graph.values()]
        sources = np.repeat(np.array(list(graph), dtype=np.int64), lengths)
        targets = np.array(
            [int(node) for neighbors in graph.values() for node in neighbors], dtype=np.int64
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{where} does not map node numbers to lists of node numbers: {error}."
        ) from error
    return np.stack([sources, targets])
