"""Feature encoder: how the columns of a table become features."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse

from everynode.errors import DataError
from everynode.graph.validation import SPARSE_DENSITY
from everynode.io.cells import Cells
from everynode.io.column_encoder import ColumnEncoder
from everynode.io.column_names import UNKNOWN, DateOrder
from everynode.io.plain_numbers import encode_plain_columns
from everynode.io.summary import Notes
from everynode.io.tables import Table
from everynode.storage.plain_values import from_plain


@dataclass(frozen=True)
class FeatureEncoder:
    """Encoder of a table, which converts columns to features.

    :func:`everynode.read` fits it, model folders store it, and
    ``everynode.read(..., feature_encoder=...)`` applies it to later files.

    Attributes
    ----------
    columns : tuple of ColumnEncoder
        The encoder of each feature column.
    roles : mapping of str to str
        The column of each role: id, label, split, source, target, weight.
    classes : tuple
        The class names, in the order of the class indices.
    structural : bool
        Whether features are computed from the edges of each graph.
    matrix : int
        The width of a feature matrix in the file, which is used unchanged; 0 without one.
    weight_unit : float
        The mean edge weight. Weights are divided by it, so their unit has no effect.
    weight_comma : str
        The meaning of a comma in the weights.
    na : tuple of str
        Additional words for a missing value.
    unknown : str
        What to do with edges to unknown nodes: "refuse", "drop" or "add".
    edge_types : mapping of str to float
        The weight of each type of link; empty without types.

    Examples
    --------
    >>> import everynode as en
    >>> graph = en.read({"id": [1, 2], "city": ["Rome", "Oslo"]}, {"source": [1], "target": [2]},
    ...                 features="city:category")
    >>> graph.feature_encoder.feature_names
    ['city = Oslo', 'city = Rome']
    """

    columns: tuple[ColumnEncoder, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[Hashable, ...] = ()
    structural: bool = False
    matrix: int = 0
    weight_unit: float = 1.0
    weight_comma: str = ""
    na: tuple[str, ...] = ()
    unknown: str = "refuse"
    edge_types: Mapping[str, float] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features, without the structural ones, which come last."""
        names = [f"feature {i}" for i in range(self.matrix)]
        return names + [name for column in self.columns for name in column.feature_names]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        default = {f.name: f.default for f in dataclasses.fields(ColumnEncoder)}
        columns = [
            {key: value for key, value in dataclasses.asdict(c).items() if value != default[key]}
            for c in self.columns
        ]
        return {
            "columns": columns,
            "roles": dict(self.roles),
            "classes": list(self.classes),
            "structural": self.structural,
            "matrix": self.matrix,
            "weight_unit": self.weight_unit,
            "weight_comma": self.weight_comma,
            "na": list(self.na),
            "unknown": self.unknown,
            "edge_types": dict(self.edge_types),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FeatureEncoder:
        """Rebuild the encoder from the result of :meth:`to_dict`."""
        try:
            columns = tuple(from_plain(ColumnEncoder, column) for column in plain["columns"])
            encoder = from_plain(cls, {**plain, "columns": []})
            for column in columns:
                column.check()
            if encoder.matrix < 0 or encoder.weight_unit <= 0 or encoder.unknown not in UNKNOWN:
                raise ValueError("a value is out of range")
            if not all(weight > 0 for weight in encoder.edge_types.values()):
                raise ValueError("a weight of a type of link is not positive")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"This is not a feature encoder written by everynode ({error})."
            ) from None
        return dataclasses.replace(encoder, columns=columns)

    def transform(
        self,
        table: Table,
        notes: Notes,
        na: Sequence[str] = (),
        date_order: DateOrder | None = None,
    ) -> list[Any]:
        """Encode the rows of a table, one block of features per column."""
        used = [column for column in self.columns if column.kind != "ignored"]
        plain = encode_plain_columns(table, used, na)
        return [
            plain[column.name].take(column, table, notes)
            if column.name in plain
            else encode_block(column, Cells(table, column.name, na, date_order), notes)
            for column in used
        ]


def encode_block(column: ColumnEncoder, cells: Cells, notes: Notes) -> Any:
    """Encode one column; make the block sparse if that saves memory."""
    block = column.transform(cells, notes)
    if scipy.sparse.issparse(block) or np.count_nonzero(block) > SPARSE_DENSITY * block.size:
        return block
    return scipy.sparse.csc_array(block)


def join_blocks(blocks: Sequence[Any], n: int) -> Any:
    """Join blocks of features side by side; sparse if most values are zero."""
    blocks = _join_dense(blocks)
    width = sum(block.shape[1] for block in blocks)
    stored = sum(
        block.nnz if scipy.sparse.issparse(block) else np.count_nonzero(block) for block in blocks
    )
    if stored <= SPARSE_DENSITY * n * width and blocks:
        sparse = [scipy.sparse.csc_array(block) for block in blocks]
        return scipy.sparse.hstack(sparse, format="csr", dtype=np.float32)
    features = np.empty((n, width), np.float32)
    start = 0
    for block in blocks:
        dense = block.toarray() if scipy.sparse.issparse(block) else block
        features[:, start : start + block.shape[1]] = dense
        start += block.shape[1]
    return features


def _join_dense(blocks: Sequence[Any]) -> list[Any]:
    """Join neighboring dense blocks: a wide table may have 100,000 of them."""
    joined: list[Any] = []
    for is_sparse, run in groupby(blocks, scipy.sparse.issparse):
        neighbors = list(run)
        joined += neighbors if is_sparse else [np.hstack(neighbors)]
    return joined
