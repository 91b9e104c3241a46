"""The column with the type of each link."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everynode.errors import DataError
from everynode.graph.edge_types import check_type_names
from everynode.io.cells import Cells
from everynode.io.summary import counted
from everynode.io.tables import Table


def read_types(edges: Table, name: str, trained: Collection[str] = ()) -> npt.NDArray[np.object_]:
    """Return the type of each row as text; refuse missing types, and types new to a model."""
    cells = Cells(edges, name)
    if cells.type in ("vector", "other", "date"):
        raise DataError(
            f"{edges.column(name)} holds {cells.values.type}. The type of a link is a word or a "
            "whole number."
        )
    text = cells.values.cast(pa.string())
    values = np.array(text.to_pylist(), dtype=object)
    missing = np.flatnonzero(np.asarray(text.is_null()))
    if len(missing):
        raise DataError(
            f"{edges.row(missing[0])}, column {name!r} is empty "
            f"({counted(len(missing), 'such row')}). Every link needs a type: fill it in, or leave "
            "--edge-type out."
        )
    names = sorted(set(values))
    if not trained:
        check_type_names(names, edges.column(name))
        return values
    strange = np.flatnonzero(~np.isin(values.astype(str), list(trained)))
    if len(strange):
        raise DataError(
            f"{edges.row(strange[0])}, column {name!r} holds the type {values[strange[0]]!r}, which"
            f" is new to the model ({counted(len(strange), 'such row')}). It knows "
            f"{', '.join(trained)}: correct the type, remove these rows, or fit again."
        )
    return values
