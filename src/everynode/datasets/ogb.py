"""The Open Graph Benchmark's raw layout for node classification (Hu et al., 2020), in ``arxiv.zip`` and as that unpacks.

Read directly: the ``ogb`` package asks questions on stdin and fails with recent torch. ``raw/edge.csv.gz`` (source, target),
``raw/node-feat.csv.gz``, ``raw/node-label.csv.gz``, ``split/time/{train,valid,test}.csv.gz`` (node numbers); no headings.
"""

from __future__ import annotations

import gzip
import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from everynode.datasets.entries import OGB_FILES
from everynode.datasets.raw import Raw
from everynode.errors import DataError
from everynode.graph import UNLABELLED, Split


def read(files: Mapping[str, bytes], where: str) -> Raw:
    """The graph in the six files, keyed by :data:`OGB_FILES`; ``where`` is their folder, for errors."""
    table = {
        name: _table(files[name], f"{where}/{name}", np.float32 if "feat" in name else np.float64)
        for name in OGB_FILES
    }
    features, edges = table["raw/node-feat.csv.gz"], table["raw/edge.csv.gz"]
    n = len(features)
    if edges.size and edges.shape[1] != 2:
        raise DataError(
            f"{where}/raw/edge.csv.gz has {edges.shape[1]} columns where 2 are expected."
        )
    label_table = table["raw/node-label.csv.gz"]
    if label_table.shape != (n, 1):
        raise DataError(
            f"{where}/raw/node-label.csv.gz has {label_table.shape[0]} x {label_table.shape[1]} labels for {n} nodes."
        )
    labels = _whole(
        np.where(np.isnan(label_table[:, 0]), UNLABELLED, label_table[:, 0]),
        f"{where}/raw/node-label.csv.gz",
    )
    parts = [
        torch.from_numpy(np.sort(_whole(table[name].ravel(), f"{where}/{name}")))
        for name in OGB_FILES[3:]
    ]
    arcs = _whole(edges.reshape(-1, 2), f"{where}/raw/edge.csv.gz").T
    return Raw(
        features, np.ascontiguousarray(arcs), labels, int(labels.max(initial=-1)) + 1, Split(*parts)
    )


def unpack(archive: bytes, where: str) -> dict[str, bytes]:
    """The six files out of OGB's archive, in which they lie below one folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            inside = {name.partition("/")[2]: name for name in opened.namelist()}
            return {name: opened.read(inside[name]) for name in OGB_FILES}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataError(f"{where} is damaged ({error}): fetch it again.") from error
    except KeyError as error:
        raise DataError(f"{where} does not hold {error.args[0]}: fetch it again.") from error


def _table(content: bytes, where: str, dtype: type) -> npt.NDArray[Any]:
    try:
        # streamed: arxiv's features are 300 MB of text once unpacked
        with (
            gzip.open(io.BytesIO(content), "rt", encoding="ascii") as text,
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings(
                "ignore", "loadtxt: input contained no data"
            )  # an empty split is allowed
            return np.loadtxt(text, delimiter=",", dtype=dtype, ndmin=2, comments=None)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{where} is damaged or cut short ({error}): unpack the archive again."
        ) from error
    except ValueError as error:
        # NumPy adds advice about its own parameters after a semicolon
        raise DataError(
            f"{where} is not a table of numbers: {str(error).split(';')[0].rstrip('.')}."
        ) from error


def _whole(values: npt.NDArray[Any], where: str) -> npt.NDArray[np.int64]:
    """Whole numbers; float64 holds them exactly up to 2**53."""
    bad = np.flatnonzero(
        ~np.isfinite(values.ravel()) | (values.ravel() != np.floor(values.ravel()))
    )
    if len(bad):
        raise DataError(f"{where}: {values.ravel()[bad[0]]} is not a whole number.")
    return values.astype(np.int64)
