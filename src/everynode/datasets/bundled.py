"""The bundled graph: Citeseer with its public split, stored as arrays without pickles."""

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

#: The path of the file below this package, and its name in ``digests.txt``.
CITESEER = "bundled_data/citeseer.npz"


def pack(raw: Raw) -> bytes:
    """Pack a graph with 0/1 features and a split into the bytes of an ``.npz`` file.

    The same graph gives the same bytes on every machine.
    """
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
    # Not compressed: compressors differ between machines.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for key, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(
                member, array.astype(_smallest_type(array)), version=(1, 0), allow_pickle=False
            )
            info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(info, member.getvalue())
    return out.getvalue()


def _smallest_type(array: npt.NDArray[Any]) -> str:
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    return next(
        code
        for code in ("<i1", "<i2", "<i4", "<i8")
        if np.iinfo(code).min <= low and high <= np.iinfo(code).max
    )


def unpack(content: bytes) -> Raw:
    """Unpack the bytes that :func:`pack` returned."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {key: archive[key].astype(np.int64) for key in archive.files}
    num_nodes, num_features, num_classes = arrays["shape"].tolist()
    columns, ends = arrays["feature_columns"], arrays["feature_ends"]
    features = scipy.sparse.csr_array(
        (np.ones(len(columns), np.float32), columns, ends), shape=(num_nodes, num_features)
    )
    split = Split(*(torch.from_numpy(arrays[part]) for part in Split._fields))
    return Raw(features, arrays["arcs"], arrays["labels"], num_classes, split)


def read() -> Raw:
    """Read the bundled Citeseer and verify its digest."""
    file = resources.files("everynode.datasets").joinpath(CITESEER)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise DataError(
            f"{file} is missing from the installation: install everynode again."
        ) from error
    verify(content, CITESEER, file, "Install everynode again.")
    return unpack(content)
