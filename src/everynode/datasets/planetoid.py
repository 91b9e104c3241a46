"""Planetoid's ``ind.<name>.*`` files: Cora, Citeseer and Pubmed with the public split (Yang, Cohen & Salakhutdinov, 2016).

They are Python 2 pickles. Nothing of NumPy or SciPy is unpickled: the few names the files use are mapped to inert stand-ins that only
keep what they are given, and the arrays are then built from plain numbers. Any other name is refused, so no code in a file can run.
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
from everynode.graph import UNLABELLED, Split

#: The public split validates on the nodes that follow the training nodes.
NUM_VAL = 500
#: Plain numbers, and no others: an object array could hold anything.
_NUMBERS = frozenset({"f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1"})


class _Dtype:
    """Stands in for ``numpy.dtype``: keeps its code and byte order."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]

    def resolve(self) -> np.dtype[Any]:
        if self.code not in _NUMBERS:
            raise ValueError(f"an array of type {self.code!r}")
        return np.dtype((self.order if self.order in "<>" else "=") + self.code)


class _Array:
    """Stands in for ``numpy.ndarray`` and for the function that rebuilds one: keeps shape, type and bytes."""

    state: tuple[Any, ...]

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def resolve(self) -> npt.NDArray[Any]:
        _, shape, dtype, fortran, content = self.state
        # Python 2 wrote byte strings, which arrive as text decoded with latin-1.
        flat = np.frombuffer(
            content.encode("latin-1") if isinstance(content, str) else content,
            dtype=dtype.resolve(),
        )
        if math.prod(shape) != flat.size:
            raise ValueError(f"an array of shape {shape} with {flat.size} values")
        return flat.reshape(shape, order="F" if fortran else "C")


class _Matrix:
    """Stands in for ``scipy.sparse.csr_matrix``."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def resolve(self) -> scipy.sparse.csr_array:
        parts = tuple(self.state[key].resolve() for key in ("data", "indices", "indptr"))
        matrix = scipy.sparse.csr_array(parts, shape=tuple(self.state["_shape"]))
        matrix.check_format(full_check=True)
        return matrix


_ADMITTED: dict[tuple[str, str], Any] = {
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
        """Only the names that the public files use, and stand-ins for those."""
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"the name {module}.{name}")
        return _ADMITTED[module, name]


def unpickle(content: bytes, where: object) -> Any:
    """What a Planetoid file holds: an array, a CSR array or a dict of lists; a :class:`DataError` for anything else."""
    try:
        value = _Unpickler(io.BytesIO(content), encoding="latin1").load()
        if isinstance(value, _Array | _Matrix):
            value = value.resolve()
        elif not isinstance(value, dict):
            raise ValueError(f"a {type(value).__name__}")
    except Exception as error:  # a broken pickle can raise just about anything
        raise DataError(
            f"{where} is not a Planetoid file, and nothing in it was run: it holds {error}. Fetch the file again."
        ) from error
    return value


def read(files: Mapping[str, bytes], where: str) -> Raw:
    """The graph in the eight files, keyed by :data:`PLANETOID_PARTS`; ``where`` names them in errors, e.g. ``folder/ind.cora``."""
    part = {
        key: unpickle(files[key], f"{where}.{key}")
        for key in PLANETOID_PARTS
        if key != "test.index"
    }
    for key, kind in {
        **dict.fromkeys(("x", "tx", "allx"), scipy.sparse.csr_array),
        "graph": dict,
    }.items():
        _expect(isinstance(part[key], kind), f"{where}.{key}", f"a {kind.__name__}")
    for key in ("y", "ty", "ally"):
        _expect(
            isinstance(part[key], np.ndarray) and part[key].ndim == 2,
            f"{where}.{key}",
            "a table of labels",
        )
    test = _test_index(files["test.index"], f"{where}.test.index")
    known, tested = part["allx"].shape[0], part["tx"].shape[0]
    _expect(len(test) == tested == len(part["ty"]), f"{where}.test.index", f"{tested} node numbers")
    _expect(len(part["ally"]) == known, f"{where}.ally", f"{known} rows")
    _expect(
        len(np.unique(test)) == tested and test.min(initial=known) >= known,
        f"{where}.test.index",
        f"different numbers from {known} on",
    )

    # Row i of tx is node test[i]. Citeseer's numbers have gaps: those nodes have neither features nor a label, and stay without.
    n = max(known, int(test.max(initial=-1)) + 1)
    row = np.full(n, -1)
    row[:known] = np.arange(known)
    row[test] = known + np.arange(tested)
    there = np.flatnonzero(row >= 0)
    stacked = scipy.sparse.vstack([part["allx"], part["tx"]], format="csr")
    place = scipy.sparse.csr_array(
        (np.ones(len(there), np.float32), (there, row[there])), shape=(n, stacked.shape[0])
    )
    one_hot = np.concatenate([part["ally"], part["ty"]])
    labels = np.full(n, UNLABELLED)
    labels[there] = np.where(one_hot.any(1), one_hot.argmax(1), UNLABELLED)[row[there]]
    train = len(part["y"])
    split = Split(
        torch.arange(train),
        torch.arange(train, min(train + NUM_VAL, known)),
        torch.from_numpy(np.sort(test)),
    )
    return Raw(
        place @ stacked, _arcs(part["graph"], f"{where}.graph"), labels, one_hot.shape[1], split
    )


def _expect(condition: bool, where: str, expected: str) -> None:
    if not condition:
        raise DataError(f"{where} should hold {expected}, and does not: fetch the file again.")


def _test_index(content: bytes, where: str) -> npt.NDArray[np.int64]:
    lines = content.split()
    for number, line in enumerate(lines, 1):
        if not line.isdigit():
            raise DataError(
                f"{where}, line {number}: {line[:40].decode('latin-1')!r} is not a node number."
            )
    return np.array([int(line) for line in lines], dtype=np.int64)


def _arcs(graph: dict[int, list[int]], where: str) -> npt.NDArray[np.int64]:
    """Every key to each of its neighbours, as the file lists them."""
    try:
        lengths = [len(neighbours) for neighbours in graph.values()]
        sources = np.repeat(np.array(list(graph), dtype=np.int64), lengths)
        targets = np.array(
            [int(node) for neighbours in graph.values() for node in neighbours], dtype=np.int64
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{where} should map node numbers to lists of node numbers: {error}."
        ) from error
    return np.stack([sources, targets])
