"""Unused weights: a column of the edge table that looks like a weight but has no role."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
import pyarrow.compute as pc

from everynode.io.missing_values import clean
from everynode.io.parsing import as_numbers, is_text, likely_comma, possible_commas
from everynode.io.tables import Table, is_unnamed

#: Only this many rows are looked at.
LOOKED_AT = 10_000
#: Names of columns that hold numbers, but no strengths: ids and times.
NO_WEIGHT = re.compile(r"(^|[^a-z])(id|index|key|code|type|time|timestamp|date|day|year)s?$", re.I)


def unused_weight(edges: Table, used: Collection[str]) -> str:
    """Return the first unused column whose numbers may be weights; empty without one.

    Weights are positive. Constants, flags, row numbers, ids and times do not count.

    >>> import pyarrow as pa
    >>> columns = {"from": ["a", "b", "c"], "to": ["b", "c", "a"], "messages": [3, 9, 1]}
    >>> table = Table("links.csv", {name: pa.chunked_array([c]) for name, c in columns.items()})
    >>> unused_weight(table, ("from", "to"))
    'messages'
    """
    free = [name for name in edges.columns if name not in used and not is_unnamed(name)]
    return next((name for name in free if _may_be_weight(edges, name)), "")


def _may_be_weight(edges: Table, name: str) -> bool:
    cells = clean(edges[name].slice(0, LOOKED_AT))
    kind = cells.type
    if NO_WEIGHT.search(name) or cells.null_count or not len(cells):
        return False
    if is_text(cells):
        numbers = as_numbers(cells, likely_comma(possible_commas(cells)))
    elif str(kind).startswith(("int", "uint", "double")):
        numbers = as_numbers(cells)
    else:
        return False
    is_row_number = len(numbers) > 2 and bool((np.diff(numbers) == 1).all())
    is_positive = bool((numbers > 0).all() and np.isfinite(numbers).all())
    return is_positive and not is_row_number and len(pc.unique(cells)) > 2
