"""The graph that comes with the package: Citeseer with its public split, in arrays and without pickles."""

from __future__ import annotations

import io
import zipfile
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from everynode.datasets.files import verify
from everynode.datasets.raw import Raw
from everynode.errors import DataError
from everynode.graph import Split

#: Its path below this package, and its name in ``digests.txt``.
CITESEER = "bundled_data/citeseer.npz"


def pack(raw: Raw) -> bytes:
    """A graph with 0/1 features and a split as the bytes of an ``.npz``: the same graph gives the same bytes everywhere."""
    features = scipy.sparse.csr_array(raw.features)
    features.sum_duplicates()
    if raw.split is None or not (features.data == 1).all():
        raise DataError("Only a graph with 0/1 features and one split can be bundled.")
    arrays: dict[str, npt.NDArray[Any]] = {
        "shape": np.array([*features.shape, raw.num_classes]),
        "feature_ends": features.indptr,
        "feature_columns": features.indices,
        "arcs": raw.arcs,
        "labels": raw.labels,
        **{part: nodes.numpy() for part, nodes in zip(Split._fields, raw.split, strict=True)},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(
        out, "w", zipfile.ZIP_STORED
    ) as archive:  # stored: compressors differ between machines
        for key, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(
                member, array.astype(_smallest(array)), version=(1, 0), allow_pickle=False
            )
            archive.writestr(
                zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue()
            )
    return out.getvalue()


def _smallest(array: npt.NDArray[Any]) -> str:
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    return next(
        code
        for code in ("<i1", "<i2", "<i4", "<i8")
        if np.iinfo(code).min <= low and high <= np.iinfo(code).max
    )


def unpack(content: bytes) -> Raw:
    """The graph that :func:`pack` packed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        part = {key: archive[key].astype(np.int64) for key in archive.files}
    n, c, k = part["shape"].tolist()
    columns, ends = part["feature_columns"], part["feature_ends"]
    features = scipy.sparse.csr_array(
        (np.ones(len(columns), np.float32), columns, ends), shape=(n, c)
    )
    return Raw(
        features,
        part["arcs"],
        part["labels"],
        k,
        Split(*(torch.from_numpy(part[name]) for name in Split._fields)),
    )


def read() -> Raw:
    """The bundled Citeseer, checked against its digest."""
    file = resources.files("everynode.datasets").joinpath(CITESEER)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(
            f"{file} is missing from the installation: install everynode again."
        ) from error
    verify(content, CITESEER, file, "Install everynode again.")
    return unpack(content)
