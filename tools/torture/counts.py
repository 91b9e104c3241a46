"""An independent reader: the ids of the nodes and the number of edges, by the standard library."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
from tools.torture.inputs import Case


class Counts(NamedTuple):
    """What a file holds: distinct ids, and rows of the edge list."""

    nodes: int
    edges: int


def count(case: Case, id_column: str, ends: tuple[str, str]) -> Counts | None:
    """Return the counts of an input; None if the standard library cannot tell."""
    try:
        if case.format == "npz":
            return _npz(case.nodes)
        if case.format in ("graphml", "gexf"):
            return _xml(case.nodes)
        if case.format == "json":
            return _json(case.nodes)
        assert case.edges is not None
        nodes, edges = (_rows(path, case.format) for path in (case.nodes, case.edges))
        ids = {_plain(row[id_column]) for row in nodes}
        return Counts(len(ids), sum(_plain(row[ends[0]]) != "" for row in edges))
    except (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, csv.Error):
        return None
    except ElementTree.ParseError:
        return None


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def _plain(value: Any) -> str:
    """Return an id as text; 7 and 7.0 are one id."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value).strip()


def _rows(path: Path, format: str) -> list[dict[str, Any]]:
    if format == "parquet":
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
        return rows
    text = _content(path).decode("utf-8-sig")
    if format == "jsonl":
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    delimiter = "," if format == "csv" else "\t"
    lines = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    records = [row for row in lines if any(cell.strip() for cell in row)]
    names = [name.strip() for name in records[0]]
    if delimiter not in text.splitlines()[0] or len(set(map(len, records))) > 1:
        raise ValueError("another layout")
    return [dict(zip(names, row, strict=True)) for row in records[1:]]


def _json(path: Path) -> Counts:
    graph = json.loads(_content(path))
    edges = graph.get("links") or graph.get("edges") or []
    ids = {_plain(node.get("id", number)) for number, node in enumerate(graph["nodes"])}
    return Counts(len(ids), len(edges))


def _xml(path: Path) -> Counts:
    root = ElementTree.fromstring(_content(path))
    tags = [(element.tag.rpartition("}")[2], element) for element in root.iter()]
    ids = {element.get("id", "").strip() for tag, element in tags if tag == "node"}
    return Counts(len(ids), sum(tag == "edge" for tag, _ in tags))


def _npz(path: Path) -> Counts:
    with np.load(path, allow_pickle=False) as archive:
        edges = archive["edge_index"]
        sizes = [len(archive[name]) for name in ("x", "y") if name in archive.files]
        pairs = edges if edges.shape[0] == 2 else edges.T
        return Counts(max([int(edges.max()) + 1, *sizes]), pairs.shape[1])
