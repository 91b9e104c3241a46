"""People's own graphs: tables of nodes and edges (or one file with both) in, a checked graph out, with what was understood of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everynode.data import ids
from everynode.data.cells import Kind
from everynode.data.labels import Labels, read_labels, read_split
from everynode.data.recipe import Recipe
from everynode.data.tables import Table, open_table
from everynode.data.understood import Notes, Taken, Understood
from everynode.errors import DataError, UsageError
from everynode.errors import unknown as refuse
from everynode.graph import Graph

#: The names under which a column is found if none is given.
USUAL = {
    "id": ("id", "node", "node_id", "nodeid", "name"),
    "label": ("label", "labels", "class"),
    "split": ("split",),
    "source": ("source", "src", "from"),
    "target": ("target", "dst", "to"),
    "weight": ("weight",),
}
#: In place of a column's name: there is none, whatever the columns are called.
NONE = "none"


def read(
    nodes: Any = None,
    edges: Any = None,
    *,
    id: str | None = None,
    label: str | None = None,
    features: str | Sequence[str] | None = "all",
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    split: str | None = None,
    directed: bool = False,
    recipe: Recipe | None = None,
    name: str | None = None,
    unknown: Literal["refuse", "drop"] = "refuse",
    na: Sequence[str] = (),
) -> Graph:
    """A graph from a table of nodes and a table of edges, from edges alone, or from one file that holds both.

    ``nodes``, ``edges``: paths, or pandas, polars or Arrow tables. A path's ending tells its format.
    ``id``, ``label``, ``split``, ``source``, ``target``, ``weight``: the columns; by default those with the usual names, else (id,
    source, target) the first ones. ``"none"``: no such column.
    ``features``: ``"all"`` other columns, the names of some (``"age,zip:category"`` also says what a column is), or None to compute
    features from the structure, as happens if there are no columns to use.
    ``recipe``: that of another graph (``graph.recipe``), to get the same features from these files.
    ``unknown``: what to do with edges to nodes that the table of nodes does not have. ``na``: more ways to write a missing value.

    >>> people = {"id": ["ann", "bob", "eve"], "age": [30, 40, 50], "team": ["red", "blue", None]}
    >>> graph = read(people, {"from": ["ann", "bob"], "to": ["bob", "eve"]}, label="team")
    >>> graph
    Graph 'graph': 3 nodes, 2 edges, 1 features (dense), 2 classes, 2 labelled, 0 splits
    >>> graph.understood.unlabelled
    1
    """
    if unknown not in ("refuse", "drop"):
        refuse("way with unknown nodes", unknown, ("refuse", "drop"))
    if edges is None:
        raise UsageError("Give the edges, or one file that holds nodes and edges (GraphML, GEXF, npz).")
    notes = Notes()
    asked = {"id": id, "label": label, "split": split, "source": source, "target": target, "weight": weight}
    ends = open_table(edges, notes, edges=True)
    people = open_table(nodes, notes) if nodes is not None else None
    roles = _roles(asked, people, ends, recipe)
    taken: list[Taken] = []

    if people is None:
        known = _ids_of_edges(ends, roles)
        people = Table(ends.where, {roles["id"]: known}, unit="row")
    else:
        known = ids.texts(people, roles["id"])
        ids.check_unique(known, people, roles["id"])
    pairs = _pairs(ends, roles, known, unknown, notes)

    labels = read_labels(people, roles.get("label"), notes, na, classes=recipe.classes if recipe else None)
    splits = read_split(people, roles.get("split"), notes)
    if recipe is None:
        wanted = _wanted(features, people, roles)
        recipe = dataclasses.replace(Recipe.fit(people, wanted, notes, na), roles=roles, classes=labels.classes)
    matrix = recipe.apply(people, notes, na)
    graph = Graph.from_arrays(
        matrix, pairs.T, labels.codes, classes=labels.classes, splits=splits, directed=directed, name=name or _name(nodes, edges),
        node_ids=ids.natural(known),
    )  # fmt: skip
    taken += [Taken(roles[role], role) for role in ("id", "label", "split") if role in roles]
    taken += [column.taken for column in recipe.columns]
    taken += [Taken(roles[role], role) for role in ("source", "target", "weight") if role in roles]
    understood = Understood(
        files={table.where: table.how for table in (people, ends) if table.how},
        columns=tuple(taken),
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        directed=directed,
        features="from the columns",
        num_features=graph.num_features,
        classes=labels.counts(),
        split={part: len(nodes) for part, nodes in zip(("train", "val", "test"), graph.splits[0], strict=True)} if graph.splits else {},
        notes=tuple(notes.notes),
    )
    return dataclasses.replace(graph, recipe=recipe, understood=understood)


def read_csv(nodes: Any, edges: Any = None, **options: Any) -> Graph:
    """:func:`read` for delimited text, whatever the files are called."""
    return read(nodes, edges, **options)


def _name(nodes: Any, edges: Any) -> str:
    path = next((source for source in (nodes, edges) if isinstance(source, str | Path)), None)
    return Path(path).name.split(".")[0] if path is not None else "graph"


def _roles(asked: Mapping[str, str | None], nodes: Table | None, edges: Table, recipe: Recipe | None) -> dict[str, str]:
    """Which column is what."""
    roles: dict[str, str] = {}
    for role, given in asked.items():
        table = edges if role in ("source", "target", "weight") else nodes
        if given == NONE or table is None:
            continue
        column = given or (recipe.roles.get(role) if recipe else None)
        if column is not None:
            if given is None and column not in table.columns and role in ("label", "split"):
                continue  # new nodes need no labels
            table[column]
        else:
            column = _usual(role, table, taken=set(roles.values()) if table is edges else set())
        if column is not None:
            roles[role] = column
    roles.setdefault("id", "id")
    if roles["source"] == roles["target"]:
        raise UsageError(f"Source and target are both the column {roles['source']!r} of {edges.where}: name two.")
    return roles


def _usual(role: str, table: Table, taken: set[str]) -> str | None:
    lower = {name.lower().strip(): name for name in reversed(table.columns)}
    found = next((lower[name] for name in USUAL[role] if name in lower), None)
    if found is not None or role not in ("id", "source", "target"):
        return found
    rest = [name for name in table.columns if name not in taken]
    if not rest:
        raise DataError(f"{table.where} has no column for the {role}s. {table.column_list()}")
    return rest[0]


def _wanted(features: str | Sequence[str] | None, nodes: Table, roles: Mapping[str, str]) -> dict[str, Kind | None]:
    """The columns to make features of, and what each is if that was said."""
    if features is None:
        return {}
    if features == "all":
        used = {roles.get(role) for role in ("id", "label", "split")}
        return {name: None for name in nodes.columns if name not in used}
    wanted: dict[str, Kind | None] = {}
    for word in features.split(",") if isinstance(features, str) else features:
        column, _, kind = word.strip().rpartition(":") if word.strip() not in nodes.columns and ":" in word else (word.strip(), "", "")
        nodes[column]
        wanted[column] = kind or None  # type: ignore[assignment]
    return wanted


def _ids_of_edges(edges: Table, roles: Mapping[str, str]) -> pa.ChunkedArray:
    both = [chunk for role in ("source", "target") for chunk in ids.texts(edges, roles[role]).chunks]
    return pa.chunked_array([pc.unique(pa.chunked_array(both))])


def _pairs(edges: Table, roles: Mapping[str, str], known: pa.ChunkedArray, unknown: str, notes: Notes) -> Any:
    ends = [ids.texts(edges, roles[role]) for role in ("source", "target")]
    found = np.stack(
        [ids.find(end, known, edges, roles[role], notes) for role, end in zip(("source", "target"), ends, strict=True)], axis=1
    )
    strange = np.flatnonzero((found < 0).any(1))
    if len(strange):
        examples = "; ".join(
            f"{edges.unit} {edges.numbers[row]}: {ends[int(found[row, 0] >= 0)][int(row)].as_py()!r}" for row in strange[:3].tolist()
        )
        if unknown == "refuse":
            raise DataError(
                f"{edges.where} has {len(strange):,} edges to nodes that are not among the {len(known):,} nodes ({examples}): add these nodes, "
                "name the right id column, or drop such edges (unknown='drop')."
            )
        notes.repair(f"{len(strange):,} edges of {edges.where} to unknown nodes dropped ({examples}).", len(strange))
        found = np.delete(found, strange, axis=0)
    return found


__all__ = ["Labels", "read", "read_csv"]
