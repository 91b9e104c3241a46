"""Reader of the raw files of the Open Graph Benchmark, zipped or not.

From "Open Graph Benchmark: Datasets for Machine Learning on Graphs" (Hu et al., NeurIPS 2020),
https://arxiv.org/abs/2005.00687.

The ``ogb`` package asks questions on stdin and fails with recent versions of torch. The files have
no headings: ``raw/edge.csv.gz`` (source, target), ``raw/node-feat.csv.gz``,
``raw/node-label.csv.gz``, and ``split/time/{train,valid,test}.csv.gz`` (node numbers).
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
from everynode.graph import UNLABELED, Split

_EDGES, _FEATURES, _LABELS, *_SPLIT = OGB_FILES


def read(files: Mapping[str, bytes], where: str) -> Raw:
    """Read the graph in the six files.

    ``files`` has the keys of :data:`OGB_FILES`. ``where`` is their folder, for messages.
    """
    tables = {
        name: _parse(files[name], f"{where}/{name}", single=name == _FEATURES) for name in OGB_FILES
    }
    features, edges, labels = tables[_FEATURES], tables[_EDGES], tables[_LABELS]
    n = len(features)
    if edges.size and edges.shape[1] != 2:
        raise DataError(f"{where}/{_EDGES} has {edges.shape[1]} columns where 2 are expected.")
    if labels.shape != (n, 1):
        raise DataError(
            f"{where}/{_LABELS} has {labels.shape[0]} x {labels.shape[1]} labels for {n} nodes."
        )
    codes = np.where(np.isnan(labels[:, 0]), UNLABELED, labels[:, 0])
    codes = _as_integers(codes, f"{where}/{_LABELS}")
    parts = [_as_integers(tables[name].ravel(), f"{where}/{name}") for name in _SPLIT]
    arcs = _as_integers(edges.reshape(-1, 2), f"{where}/{_EDGES}").T
    split = Split(*(torch.from_numpy(np.sort(part)) for part in parts))
    num_classes = int(codes.max(initial=-1)) + 1
    return Raw(features, np.ascontiguousarray(arcs), codes, num_classes, split)


def unpack(archive: bytes, where: str) -> dict[str, bytes]:
    """Extract the six files from OGB's archive, where they are below one folder."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = {name.partition("/")[2]: name for name in opened.namelist()}
            return {name: opened.read(members[name]) for name in OGB_FILES}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise DataError(f"{where} is damaged ({error}): fetch it again.") from error
    except KeyError as error:
        raise DataError(f"{where} does not hold {error.args[0]}: fetch it again.") from error


def _parse(content: bytes, where: str, *, single: bool) -> npt.NDArray[Any]:
    dtype = np.float32 if single else np.float64
    try:
        # Streamed: the features of ogbn-arxiv are 300 MB of text.
        with (
            gzip.open(io.BytesIO(content), "rt", encoding="ascii") as text,
            warnings.catch_warnings(),
        ):
            # A part of the split may be empty.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            return np.loadtxt(text, delimiter=",", dtype=dtype, ndmin=2, comments=None)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{where} is damaged or incomplete ({error}): unpack the archive again."
        ) from error
    except ValueError as error:
        # After a semicolon, NumPy advises on its own parameters.
        reason = str(error).split(";")[0].rstrip(".")
        raise DataError(f"{where} is not a table of numbers: {reason}.") from error


def _as_integers(values: npt.NDArray[Any], where: str) -> npt.NDArray[np.int64]:
    """Convert to integers, which float64 holds exactly up to 2**53."""
    flat = values.ravel()
    wrong = np.flatnonzero(~np.isfinite(flat) | (flat != np.floor(flat)))
    if len(wrong):
        raise DataError(f"{where}: {flat[wrong[0]]} is not a whole number.")
    return values.astype(np.int64)
