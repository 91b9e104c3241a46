"""FeatureEncoder: how the columns of a table become features. Fitted once, kept with the model, and followed again for other files."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from everynode.errors import DataError
from everynode.graph.validation import SPARSE_DENSITY
from everynode.io.columns import Column, column_values
from everynode.io.summary import Notes
from everynode.io.tables import Table
from everynode.io.type_inference import KINDS


@dataclass(frozen=True)
class FeatureEncoder:
    """How a table's columns become features, and which columns are something else. Plain JSON by :meth:`to_dict`."""

    columns: tuple[Column, ...] = ()
    #: Which column is the id, label, split, source, target, weight.
    roles: Mapping[str, str] = field(default_factory=dict)
    #: What the labels stand for, in the order of the class indices.
    classes: tuple[Hashable, ...] = ()
    #: There are features from the structure of the graph: of each new graph they are computed anew.
    structural: bool = False
    #: The file gives the features as a matrix of so many columns, used as it is.
    matrix: int = 0
    #: Edge weights are divided by this, the mean of those that the feature_encoder was made of: in seconds or in hours, it is the same graph.
    weight_unit: float = 1.0
    #: What a comma in them stands for.
    weight_comma: str = ""
    #: How else these files write a missing value.
    na: tuple[str, ...] = ()
    #: What becomes of edges to nodes that the table of nodes does not have: refuse, drop or add.
    unknown: str = "refuse"

    @property
    def feature_names(self) -> list[str]:
        """What to call the features, but for those from the structure, which come last."""
        return [f"feature {i}" for i in range(self.matrix)] + [
            name for column in self.columns for name in column.feature_names
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, for JSON."""
        default = {f.name: f.default for f in dataclasses.fields(Column)}
        columns = [
            {key: value for key, value in dataclasses.asdict(c).items() if value != default[key]}
            for c in self.columns
        ]
        rest = {
            "roles": dict(self.roles),
            "classes": list(self.classes),
            "structural": self.structural,
            "matrix": self.matrix,
        }
        rest |= {
            "weight_unit": self.weight_unit,
            "weight_comma": self.weight_comma,
            "na": list(self.na),
            "unknown": self.unknown,
        }
        return {"columns": columns, **rest}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FeatureEncoder:
        """The feature_encoder that :meth:`to_dict` wrote."""
        try:
            given: list[dict[str, Any]] = [
                {k: tuple(v) if isinstance(v, list) else v for k, v in c.items()}
                for c in plain["columns"]
            ]
            columns = tuple(Column(**column) for column in given)
            if any(column.kind not in KINDS for column in columns):
                raise TypeError("a column of no known kind")
            return cls(
                columns, dict(plain["roles"]), tuple(plain["classes"]), bool(plain["structural"]), int(plain["matrix"]),
                float(plain["weight_unit"]), str(plain["weight_comma"]), tuple(map(str, plain["na"])),
                str(plain.get("unknown", "refuse")),  # models of 0.17 and before do not say it
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:
            raise DataError(
                f"This is not a feature_encoder that everynode wrote ({wrong})."
            ) from None

    def apply(self, table: Table, notes: Notes, na: Sequence[str] = ()) -> list[Any]:
        """The features of a table's rows, a block for each column; what is missing or new is noted."""
        return [
            _smaller(column_values(column, table, notes, na))
            for column in self.columns
            if column.kind != "ignored"
        ]


def join(blocks: Sequence[Any], n: int) -> Any:
    """Blocks of features side by side, sparse if they are mostly zero."""
    width = sum(block.shape[1] for block in blocks)
    stored = sum(block.nnz if scipy.sparse.issparse(block) else block.size for block in blocks)
    if stored <= SPARSE_DENSITY * n * width and blocks:
        return scipy.sparse.hstack(
            [scipy.sparse.csc_array(block) for block in blocks], format="csr", dtype=np.float32
        )
    features = np.empty((n, width), np.float32)
    start = 0
    for block in blocks:
        features[:, start : start + block.shape[1]] = (
            block.toarray() if scipy.sparse.issparse(block) else block
        )
        start += block.shape[1]
    return features


def _smaller(block: Any) -> Any:
    """A block in the form that takes less memory: a thousand columns of zeros and ones must not become a dense matrix on the way."""
    if scipy.sparse.issparse(block) or np.count_nonzero(block) > SPARSE_DENSITY * block.size:
        return block
    return scipy.sparse.csc_array(block)
