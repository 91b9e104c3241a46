"""The table of edges: which nodes each joins, with which weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everynode.errors import DataError
from everynode.io.feature_encoder import FeatureEncoder
from everynode.io.ids import find, texts
from everynode.io.summary import Notes, counted
from everynode.io.tables import EXAMPLES, Table
from everynode.io.type_inference import as_numbers, clean, comma_in

Ints = npt.NDArray[np.int64]


class EdgeTable(NamedTuple):
    """The edges of a table, as in the file: with its loops and repeats."""

    #: 2 x m node indices.
    pairs: Ints
    #: A positive weight for each, or None where all are one.
    weight: npt.NDArray[np.float64] | None
    #: Where each is in the table.
    rows: Ints
    #: What a comma in the weights stands for.
    comma: str = ""


def nodes_of(edges: Table, roles: Mapping[str, str]) -> pa.ChunkedArray:
    """The ids of the nodes that have an edge, in the order in which they first appear as a source, then as a target."""
    both = [chunk for role in ("source", "target") for chunk in texts(edges, roles[role]).chunks]
    return pa.chunked_array([pc.unique(pa.chunked_array(both))])


def add_nodes(
    nodes: Table, ids: pa.ChunkedArray, edges: Table, roles: Mapping[str, str], notes: Notes
) -> tuple[Table, pa.ChunkedArray]:
    """The table of nodes, and its ids, with the nodes that only the edges know, everything else about them missing."""
    new = []
    for role in ("source", "target"):
        ends = texts(edges, roles[role])
        new += ends.filter(pa.array(find(ends, ids, edges, roles[role], Notes()) < 0)).chunks
    added = pc.unique(pa.chunked_array(new, pa.string()))
    if len(added):
        alike = _alike(added, ids)
        say = notes.warn if alike else notes.repair
        say(
            f"{counted(len(added), 'node')} added that only {edges.where} has ({added[0].as_py()!r}){alike}.",
            len(added),
        )
    columns = {
        name: pa.chunked_array([*column.chunks, pa.nulls(len(added), column.type)])
        for name, column in nodes.columns.items()
    }
    numbers = [*(nodes.numbers[i] for i in range(nodes.num_rows)), *added.to_pylist()]
    return dataclasses.replace(nodes, columns=columns, numbers=numbers), pa.chunked_array(
        [*ids.chunks, added]
    )


def read_edge_table(
    edges: Table,
    roles: Mapping[str, str],
    ids: pa.ChunkedArray,
    unknown: str,
    notes: Notes,
    feature_encoder: FeatureEncoder | None,
) -> EdgeTable:
    """The edges between known nodes; if ``unknown`` is refuse, there may be no others. ``feature_encoder``: of what a model learned from."""
    ends = [texts(edges, roles[role]) for role in ("source", "target")]
    pairs = np.stack(
        [
            find(end, ids, edges, roles[role], notes)
            for role, end in zip(("source", "target"), ends, strict=True)
        ]
    )
    keep = (pairs >= 0).all(0)
    strange = np.flatnonzero(~keep)
    if len(strange):
        examples = "; ".join(
            f"{edges.unit} {edges.numbers[row]}: {ends[int(pairs[0, row] >= 0)][row].as_py()!r}"
            for row in strange[:EXAMPLES].tolist()
        )
        chunks = [
            chunk
            for end, place in zip(ends, pairs, strict=True)
            for chunk in end.filter(pa.array(place < 0)).chunks
        ]
        alike = _alike(pa.chunked_array(chunks, pa.string()), ids)
        way = f"{'write the ids alike, or ' if alike else ''}name the right columns, or let these nodes be added"
        if feature_encoder and not alike:  # those that the model learned from, most likely
            way = "give the whole graph, with the rows of these nodes in it; or let them be added without any"
        if unknown == "refuse":
            raise DataError(
                f"{edges.where} has {counted(len(strange), 'edge')} to nodes that are not among the {len(ids):,} given "
                f"({examples}){alike}: {way}, or their edges dropped (unknown='add' or 'drop', --unknown ...)."
            )
        if not keep.any():
            raise DataError(
                f"No edge of {edges.where} is between two of the {len(ids):,} nodes given ({examples}){alike}: {way} "
                "(unknown='add', or --unknown add)."
            )
        dropped = f"{counted(len(strange), 'edge')} of {edges.where} to unknown nodes dropped ({examples})"
        if 2 * len(strange) > edges.num_rows:
            notes.warn(f"{dropped}, more than half of its {edges.num_rows:,}{alike}.", len(strange))
        else:
            notes.repair(f"{dropped}{alike}.", len(strange))
    weight, comma = None, ""
    if "weight" in roles:
        weight, comma = _weights(
            edges, roles["weight"], feature_encoder.weight_comma if feature_encoder else None
        )
        zero = np.flatnonzero(keep & (weight == 0))
        if len(zero):
            notes.repair(
                f"{counted(len(zero), 'edge')} of {edges.where} of weight 0 dropped ({edges.rows(zero)}).",
                len(zero),
            )
            keep &= weight != 0
    if edges.num_rows and not (keep & (pairs[0] != pairs[1])).any():
        notes.warn(
            f"No edge of {edges.where} joins two nodes: they are told apart by their columns alone. Are its columns the right ones?"
        )
    return EdgeTable(
        pairs[:, keep], None if weight is None else weight[keep], np.flatnonzero(keep), comma
    )


def _alike(strange: pa.ChunkedArray, ids: pa.ChunkedArray) -> str:
    """The first of some unknown ids that is a known one but for capitals and spaces, for the end of a sentence."""

    def plain(texts: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.replace_substring_regex(pc.utf8_lower(texts), r"[\s\p{Zs}]", "")

    found = pc.index_in(plain(strange), value_set=plain(ids).combine_chunks())
    first = next(iter(np.flatnonzero(np.asarray(found.is_valid())).tolist()), None)
    if first is None:
        return ""
    return f"; {strange[first].as_py()!r} and {ids[found[first].as_py()].as_py()!r} differ only in capitals or spaces"


def _weights(edges: Table, name: str, before: str | None) -> tuple[npt.NDArray[np.float64], str]:
    cells = clean(edges[name])
    if (
        pa.types.is_nested(cells.type)
        or pa.types.is_temporal(cells.type)
        or pa.types.is_binary(cells.type)
    ):
        raise DataError(f"{edges.where}, column {name!r} holds {cells.type}: weights are numbers.")
    # what was taken for thousands in training may have been fractions: a file that shows it is refused below
    comma = (
        before
        if before == "thousands"
        else comma_in(cells, f"Column {name!r} of {edges.where}", before)
    )
    weight = as_numbers(cells, comma)
    wrong = np.flatnonzero(
        ~(weight >= 0)
        | (weight > np.finfo(np.float32).max)
        | ((weight > 0) & (weight < np.finfo(np.float32).tiny))
    )
    if len(wrong):
        given = edges[name][int(wrong[0])].as_py()
        raise DataError(
            f"{edges.row(wrong[0])}, column {name!r} holds {'nothing' if given in (None, '') else repr(given)} "
            f"({counted(len(wrong), 'such row')}): weights are positive numbers. Correct them, or use none "
            "(weight='none', or --weight none)."
        )
    return weight, comma


def note_repairs(links: EdgeTable, repairs: Mapping[str, int], edges: Table, notes: Notes) -> None:
    """What the graph dropped from the edges, with the first places."""
    source, target = links.pairs
    stays = "" if links.weight is None else "; the largest weight stays"
    if repairs["self_loops"]:
        loops = links.rows[source == target]
        notes.repair(
            f"{counted(len(loops), 'self-loop')} of {edges.where} dropped ({edges.rows(loops)}).",
            len(loops),
        )
    if repairs["repeated_edges"]:
        key = source * (int(links.pairs.max()) + 1) + target
        order = np.argsort(key, kind="stable")
        again = np.sort(order[1:][(np.diff(key[order]) == 0)])
        again = links.rows[again[source[again] != target[again]]]
        notes.repair(
            f"{counted(len(again), 'repeated edge')} of {edges.where} dropped ({edges.rows(again)}){stays}.",
            len(again),
        )
    twice = (
        len(source) - repairs["self_loops"] - repairs["repeated_edges"] - repairs["one_way_edges"]
    ) // 2
    if (
        twice and repairs["one_way_edges"]
    ):  # neither each edge once, nor each in both directions; a directed graph has none
        notes.repair(
            f"{counted(twice, 'edge')} of {edges.where} given in both directions taken as one{stays}.",
            twice,
        )
