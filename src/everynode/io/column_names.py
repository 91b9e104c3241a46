"""The column names and words that the readers recognize, declared once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

#: What to do with edges to nodes that are not in the node table.
Unknown = Literal["refuse", "drop", "add"]
UNKNOWN: tuple[Unknown, ...] = get_args(Unknown)
#: The order of dates that end with the year: day or month first.
DateOrder = Literal["dmy", "mdy"]
ORDERS: tuple[DateOrder, ...] = get_args(DateOrder)
#: Usual column names per role, in lower case. The first match is used when no column is named.
USUAL_NAMES = {
    "id": ("id", "node", "node_id", "nodeid", "name", "index"),
    "label": ("label", "class"),
    "split": ("split",),
    "split_by": (),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight",),
    "edge_type": (),
}
#: Suffixes of the headings in Neo4j's import and export files, such as "personId:ID".
NEO4J_ENDS = {"id": ":id", "label": ":label", "source": ":start_id", "target": ":end_id"}
#: Columns of Gephi's layout and drawing, in lower case, and the columns that identify Gephi.
LAYOUT = frozenset(("x", "y", "z", "r", "g", "b", "size", "alpha", "timeset", "interval"))
LAYOUT_MARKS = frozenset(("x", "y", "r", "g", "b"))
#: The roles of columns in the node table and in the edge table.
NODE_ROLES = ("id", "label", "split", "split_by")
EDGE_ROLES = ("source", "target", "weight", "edge_type")
#: Roles that every graph needs: without a usual name, the first column is used.
REQUIRED_ROLES = ("id", "source", "target")
#: In place of a column name: no column has this role.
NONE = "none"
#: Words for features: all remaining columns, or features computed from the edges.
ALL, STRUCTURE = "all", "structure"
#: The prefix of a column that a list of features leaves out, as in "all,-stage".
WITHOUT = "-"
#: Words for the parts of a split, in lower case: 0 train, 1 validation, 2 test.
SPLIT_WORDS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "dev": 1,
    "test": 2,
    "testing": 2,
}
#: Words for a missing value, besides an empty cell.
MISSING_WORDS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "nan",
    "NaN",
    "NAN",
    "null",
    "NULL",
    "Null",
    "k.A.",
    "k. A.",
)
#: Class names that may mean "no label", in lower case. They cause a warning.
UNLABELED_WORDS = (
    *("-1", "-", "--", "?", ".", "none", "unknown", "unlabelled", "unlabeled"),
    *("missing", "tbd"),
)
#: Words for true and false, in lower case.
TRUE_WORDS = ("1", "true", "yes", "t", "y")
FALSE_WORDS = ("0", "false", "no", "f", "n")
#: Suffix for a node or edge attribute whose name is already a column.
CLASH_SUFFIX = " (attribute)"


def mark_reserved(attributes: Mapping[Any, Any], reserved: Collection[str]) -> dict[str, Any]:
    """Return attributes by name, with a suffix where the name is reserved for a column.

    >>> mark_reserved({"id": 1, "age": 2}, ["id"])
    {'id (attribute)': 1, 'age': 2}
    """
    return {
        f"{name}{CLASH_SUFFIX}" if str(name) in reserved else str(name): value
        for name, value in attributes.items()
    }
