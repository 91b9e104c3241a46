"""Edge table: the two nodes and the weight of each edge."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.edge_type_column import read_types
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.ids import Ints, find_positions, index_in, read_ids
from everynode.io.missing_values import clean
from everynode.io.parsing import Floats, as_numbers, possible_commas, resolve_comma
from everynode.io.summary import Notes, counted
from everynode.io.tables import EXAMPLES, Table


class Ends(NamedTuple):
    """The source and target ids of all edges, and their positions among the node ids.

    Attributes
    ----------
    ids : tuple of pyarrow.ChunkedArray
        The source ids and the target ids.
    positions : array of shape (2, m)
        The position of each id; -1 for an unknown node.
    """

    ids: tuple[pa.ChunkedArray, pa.ChunkedArray]
    positions: Ints

    def unknown(self) -> pa.ChunkedArray:
        """Return the ids of unknown nodes: those of the sources, then those of the targets."""
        chunks = [
            chunk
            for ids, positions in zip(self.ids, self.positions, strict=True)
            for chunk in ids.filter(pa.array(positions < 0)).chunks
        ]
        return pa.chunked_array(chunks, pa.string())


class EdgeTable(NamedTuple):
    """The edges as listed in the file, with self-loops and repetitions.

    Attributes
    ----------
    pairs : array of shape (2, m)
        Node positions.
    weight : array of shape (m,) or None
        A positive weight per edge.
    rows : array of shape (m,)
        The row of each edge in the table.
    comma : str
        The meaning of a comma in the weights.
    types : array of str of shape (m,) or None
        The type of each edge.
    """

    pairs: Ints
    weight: Floats | None
    rows: Ints
    comma: str = ""
    types: npt.NDArray[np.object_] | None = None

    @property
    def mean_weight(self) -> float:
        """The mean weight; 1 without weights."""
        if self.weight is None or not len(self.weight):
            return 1.0
        return float(self.weight.mean())

    def in_units(self, unit: float) -> EdgeTable:
        """Return the edges with weights in multiples of ``unit``; without weights if all are 1."""
        if self.weight is None:
            return self
        scaled = self.weight / unit
        return self._replace(weight=None if (scaled == 1).all() else scaled)


def node_ids(edges: Table, roles: Mapping[str, str]) -> tuple[pa.ChunkedArray, Ends]:
    """Return the ids of all nodes with an edge: sources first, in order of appearance."""
    sources, targets = _read_end_ids(edges, roles)
    ids = pa.chunked_array([pc.unique(pa.chunked_array([*sources.chunks, *targets.chunks]))])
    positions = np.stack([index_in(sources, ids), index_in(targets, ids)])
    return ids, Ends((sources, targets), positions)


def find_ends(edges: Table, roles: Mapping[str, str], ids: pa.ChunkedArray, notes: Notes) -> Ends:
    """Find the nodes of each edge among the ids."""
    end_ids = _read_end_ids(edges, roles)
    positions = [
        find_positions(values, ids, edges, roles[role], notes)
        for role, values in zip(("source", "target"), end_ids, strict=True)
    ]
    return Ends(end_ids, np.stack(positions))


def _read_end_ids(
    edges: Table, roles: Mapping[str, str]
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    return read_ids(edges, roles["source"]), read_ids(edges, roles["target"])


def add_nodes(
    nodes: Table, ids: pa.ChunkedArray, ends: Ends, edges: Table, notes: Notes
) -> tuple[Table, pa.ChunkedArray, Ends]:
    """Add the nodes that occur only in the edges. Their other columns are missing."""
    added = pc.unique(ends.unknown())
    if not len(added):
        return nodes, ids, ends
    similar = _similar_id(added, ids)
    note = notes.warn if similar else notes.repair
    note(
        f"{counted(len(added), 'node')} added that only {edges.where} has "
        f"({added[0].as_py()!r}){similar}.",
        len(added),
    )
    joined = np.bincount(ends.positions[ends.positions >= 0], minlength=len(ids)) > 0
    if 2 * joined.sum() < len(ids):
        alone = int((~joined).sum())
        notes.warn(
            f"{alone:,} of {counted(len(ids), 'node')} in {nodes.where} have no edge, while "
            f"{counted(len(added), 'node')} were added. If the ids do not match, name the right "
            "columns (--id, --source, --target).",
            alone,
        )
    columns = {
        name: pa.chunked_array([*column.chunks, pa.nulls(len(added), column.type)])
        for name, column in nodes.columns.items()
    }
    numbers = [*(nodes.numbers[i] for i in range(nodes.num_rows)), *added.to_pylist()]
    positions = ends.positions.copy()
    for row, end_ids in zip(positions, ends.ids, strict=True):
        is_new = row < 0
        row[is_new] = len(ids) + index_in(end_ids.filter(pa.array(is_new)), added)
    return (
        dataclasses.replace(nodes, columns=columns, numbers=numbers),
        pa.chunked_array([*ids.chunks, added]),
        ends._replace(positions=positions),
    )


def read_edge_table(
    edges: Table,
    roles: Mapping[str, str],
    ends: Ends,
    ids: pa.ChunkedArray,
    unknown: str,
    notes: Notes,
    feature_encoder: FeatureEncoder | None,
) -> EdgeTable:
    """Read the edges between known nodes, and their weights.

    With ``unknown="refuse"``, an edge to an unknown node is an error.
    """
    pairs = ends.positions
    keep = np.all(pairs >= 0, axis=0)
    if not keep.all():
        _drop_unknown(edges, ends, keep, ids, unknown, notes, is_prediction=bool(feature_encoder))
    weight, comma = None, ""
    if "weight" in roles:
        training = feature_encoder.weight_comma if feature_encoder else None
        weight, comma = _read_weights(edges, roles["weight"], training)
        zero = np.flatnonzero(keep & (weight == 0))
        if len(zero):
            notes.repair(
                f"{counted(len(zero), 'edge')} of {edges.where} with weight 0 dropped "
                f"({edges.rows(zero)}).",
                len(zero),
            )
            keep &= weight != 0
    if edges.num_rows and not (keep & (pairs[0] != pairs[1])).any():
        notes.warn(
            f"No edge of {edges.where} joins two nodes, so only the columns of the nodes can "
            "distinguish them. Check the source and target columns."
        )
    weight = None if weight is None else weight[keep]
    types = None
    if "edge_type" in roles:
        trained = feature_encoder.edge_types if feature_encoder else ()
        types = read_types(edges, roles["edge_type"], trained)[keep]
    return EdgeTable(pairs[:, keep], weight, np.flatnonzero(keep), comma, types)


def _drop_unknown(
    edges: Table,
    ends: Ends,
    keep: npt.NDArray[np.bool_],
    ids: pa.ChunkedArray,
    unknown: str,
    notes: Notes,
    *,
    is_prediction: bool,
) -> None:
    """Refuse the edges to unknown nodes, or note that they are dropped."""
    rows = np.flatnonzero(~keep)
    examples = "; ".join(
        f"{edges.unit} {edges.numbers[row]}: "
        f"{ends.ids[int(ends.positions[0, row] >= 0)][row].as_py()!r}"
        for row in rows[:EXAMPLES].tolist()
    )
    similar = _similar_id(ends.unknown(), ids)
    first_advice = "Write the ids alike, name" if similar else "Name"
    advice = f"{first_advice} the right columns (--id, --source, --target), or add these nodes"
    if is_prediction and not similar:  # most likely the nodes of the training graph
        advice = "Give the whole graph, with the rows of these nodes, or add them without any"
    if unknown == "refuse":
        few = not similar and not is_prediction and 2 * len(rows) <= edges.num_rows
        advice = "" if few else f"{advice}, or go on without: "
        raise DataError(
            f"{edges.where} has {counted(len(rows), 'edge')} to nodes that are not among the "
            f"{len(ids):,} in the node table ({examples}){similar}. {advice}--unknown drop leaves "
            "these edges out, --unknown add adds the nodes (in Python: unknown='add' or 'drop')."
        )
    if not keep.any():
        raise DataError(
            f"No edge of {edges.where} joins two of the {len(ids):,} nodes in the node table "
            f"({examples}){similar}. {advice} (unknown='add', or --unknown add)."
        )
    text = f"{counted(len(rows), 'edge')} of {edges.where} to unknown nodes dropped ({examples})"
    if 2 * len(rows) > edges.num_rows:
        notes.warn(f"{text}, more than half of its {edges.num_rows:,}{similar}.", len(rows))
    else:
        notes.repair(f"{text}{similar}.", len(rows))


def _similar_id(unknown: pa.ChunkedArray, ids: pa.ChunkedArray) -> str:
    """Describe the first unknown id that differs from a known id only in case or spaces."""

    def fold(texts: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.replace_substring_regex(pc.utf8_lower(texts), r"[\s\p{Zs}]", "")

    matches = index_in(fold(unknown), fold(ids))
    first = next(iter(np.flatnonzero(matches >= 0).tolist()), None)
    if first is None:
        return ""
    pair = f"{unknown[first].as_py()!r} and {ids[int(matches[first])].as_py()!r}"
    return f"; {pair} differ only in capitals or spaces"


def _read_weights(edges: Table, name: str, training: str | None) -> tuple[Floats, str]:
    cells = clean(edges[name])
    kind = cells.type
    other_types = (
        pa.types.is_nested,
        pa.types.is_temporal,
        pa.types.is_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    )
    if any(is_type(kind) for is_type in other_types):
        raise DataError(f"{edges.where}, column {name!r} holds {kind}. Weights are numbers.")
    comma = training
    # Thousands in training may have been fractions; files that prove it are refused below.
    if comma is None or comma != "thousands":
        where = f"Column {name!r} of {edges.where}"
        comma = resolve_comma(cells, possible_commas(cells), where, training=training)
    weight = as_numbers(cells, comma)
    limits = np.finfo(np.float32)
    is_denormal = (weight > 0) & (weight < limits.tiny)
    wrong = np.flatnonzero(~(weight >= 0) | (weight > limits.max) | is_denormal)
    if len(wrong):
        cell = edges[name][int(wrong[0])].as_py()
        raise DataError(
            f"{edges.row(wrong[0])}, column {name!r} holds "
            f"{'nothing' if cell in (None, '') else repr(cell)} "
            f"({counted(len(wrong), 'such row')}). Weights are positive numbers. Correct them, or "
            "use no weights (weight='none', or --weight none)."
        )
    return weight, comma


def note_repairs(table: EdgeTable, repairs: Mapping[str, int], edges: Table, notes: Notes) -> None:
    """Note the edges that the graph dropped, with their first rows."""
    source, target = table.pairs
    kept = "" if table.weight is None else "; the largest weight is kept"
    if repairs["self_loops"]:
        loops = table.rows[source == target]
        notes.repair(
            f"{counted(len(loops), 'self-loop')} of {edges.where} dropped ({edges.rows(loops)}).",
            len(loops),
        )
    if repairs["repeated_edges"]:
        key = source * (int(table.pairs.max()) + 1) + target
        if table.types is not None:  # two types may link the same nodes
            names, codes = np.unique(table.types.astype(str), return_inverse=True)
            key = key * len(names) + codes
        order = np.argsort(key, kind="stable")
        repeated = np.sort(order[1:][np.diff(key[order]) == 0])
        repeated = table.rows[repeated[source[repeated] != target[repeated]]]
        notes.repair(
            f"{counted(len(repeated), 'repeated edge')} of {edges.where} dropped "
            f"({edges.rows(repeated)}){kept}.",
            len(repeated),
        )
    num_once = repairs["self_loops"] + repairs["repeated_edges"] + repairs["one_way_edges"]
    num_both = (len(source) - num_once) // 2
    # No note if all edges are listed once, or all in both directions.
    if num_both and repairs["one_way_edges"]:
        notes.repair(
            f"{counted(num_both, 'edge')} of {edges.where} listed in both directions, counted "
            f"once{kept}.",
            num_both,
        )
