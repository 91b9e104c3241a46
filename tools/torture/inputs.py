"""Inputs for the readers: a random graph, written in one format, then damaged in its structure."""

from __future__ import annotations

import gzip
import io
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Values that programs and people put where something else belongs.
EXTREMES: list[Any] = [
    "", " ", "nan", "None", "-1", "0", "1e400", "1e-400", "007", "7.0", "1,5", "=1+1", "true", "ä" * 50,
    "\ufeff", "\u202e", "a\tb", 'say "hi"', "<x>", "&amp;", "2020-02-30", "9" * 40, "x" * 5000,
    True, False, None, 0, -1, 2**31, 2**63, 2**64, 10**30, 1.5, -0.0, float("inf"), float("nan"),
    [], {}, [1, 2], {"a": 1}, [[]],
]  # fmt: skip
FORMATS = ("csv", "tsv", "jsonl", "parquet", "json", "graphml", "gexf", "npz")
#: The formats with a node table and an edge table.
TABLES = ("csv", "tsv", "jsonl", "parquet")


@dataclass
class Case:
    """Files of one input, and the arguments with which they are read."""

    nodes: Path
    edges: Path | None
    format: str
    what: str


def make_case(seed: int, folder: Path) -> Case:
    """Write the input of a seed."""
    chance = random.Random(seed)
    format = FORMATS[seed % len(FORMATS)]
    nodes, edges = _random_graph(chance)
    damages: list[str] = []
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2))):
        damage = chance.choice(RECORD_DAMAGES)
        damages.append(damage.__name__.strip("_"))
        damage(nodes, edges, chance)
    if format in TABLES:
        contents = [WRITERS[format](table) for table in (nodes, edges)]
    else:
        contents = [WRITERS[format](nodes, edges, chance)]
    if chance.random() < 0.25:
        place = chance.randrange(len(contents))
        damage_bytes = chance.choice(BYTE_DAMAGES)
        damages.append(damage_bytes.__name__.strip("_"))
        contents[place] = damage_bytes(contents[place], chance)
    end = format
    if format not in ("parquet", "npz") and chance.random() < 0.1:
        contents, end = [gzip.compress(content, 1) for content in contents], f"{format}.gz"
        if chance.random() < 0.3:
            damages.append("broken_gzip")
            contents[0] = chance.choice(BYTE_DAMAGES)(contents[0], chance)
    paths = [folder / f"{name}.{end}" for name in ("nodes", "edges")]
    for path, content in zip(paths, contents, strict=False):
        path.write_bytes(content)
    edge_path = paths[1] if format in TABLES else None
    return Case(paths[0], edge_path, format, "+".join(damages) or "sound")


def _random_graph(chance: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    n = chance.choice((3, 8, 20, 60))
    styles: list[Callable[[int], Any]] = [
        lambda i: i, lambda i: f"n{i}", lambda i: f"{i:03d}", lambda i: i * 10**12, lambda i: f"{i}.0",
    ]  # fmt: skip
    name = chance.choice(styles)
    nodes = [
        {
            "id": name(i),
            "label": "abc"[chance.randrange(2 + (n > 10))],
            "age": chance.randrange(90),
            "note": "".join(chance.choices(string.ascii_letters + " ,;", k=8)),
        }
        for i in range(n)
    ]
    edges = [
        {"source": name(chance.randrange(n)), "target": name(chance.randrange(n)), "weight": 1.0}
        for _ in range(chance.choice((2, n, 3 * n)))
    ]
    if chance.random() < 0.5:
        for edge in edges:
            del edge["weight"]
    return nodes, edges


Records = list[dict[str, Any]]


def _pick(nodes: Records, edges: Records, chance: random.Random) -> dict[str, Any]:
    return chance.choice(chance.choice([nodes, edges]) or [{}])


def _extreme_value(nodes: Records, edges: Records, chance: random.Random) -> None:
    record = _pick(nodes, edges, chance)
    if record:
        record[chance.choice(list(record))] = chance.choice(EXTREMES)


def _extreme_column(nodes: Records, edges: Records, chance: random.Random) -> None:
    table = chance.choice([nodes, edges])
    name, value = chance.choice(list(table[0]) or ["x"]), chance.choice(EXTREMES)
    for record in table:
        record[name] = value


def _repeated_node(nodes: Records, edges: Records, chance: random.Random) -> None:
    copy = dict(chance.choice(nodes))
    if chance.random() < 0.7:
        copy["label"] = "other"
    nodes.insert(chance.randrange(len(nodes) + 1), copy)


def _undeclared_end(nodes: Records, edges: Records, chance: random.Random) -> None:
    chance.choice(edges)[chance.choice(("source", "target"))] = chance.choice(["ghost", 999, "-5"])


def _missing_name(nodes: Records, edges: Records, chance: random.Random) -> None:
    record = _pick(nodes, edges, chance)
    if len(record) > 1:
        del record[chance.choice(list(record))]


def _new_name(nodes: Records, edges: Records, chance: random.Random) -> None:
    name = chance.choice(["id", "label", "source", "weight", "new", "", "a,b", "😀", " id"])
    _pick(nodes, edges, chance)[name] = chance.choice(EXTREMES)


def _id_of_another_type(nodes: Records, edges: Records, chance: random.Random) -> None:
    record = chance.choice(nodes)
    record["id"] = chance.choice([float(chance.randrange(9)), str(record.get("id")), True, [1]])


def _no_records(nodes: Records, edges: Records, chance: random.Random) -> None:
    table = chance.choice([nodes, edges])
    del table[chance.choice((1, len(table))) :]


RECORD_DAMAGES = (
    _extreme_value, _extreme_value, _extreme_column, _repeated_node, _undeclared_end,
    _missing_name, _new_name, _id_of_another_type, _no_records,
)  # fmt: skip


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 2, 10)) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _insert(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    words = [b"\0", b'"', b"\n", b"\r", b",", b"<", b"&", b"]", b"{", b"\xff\xfe", b"\xef\xbb\xbf"]
    return content[:place] + chance.choice(words) * chance.choice((1, 3)) + content[place:]


def _repeat_part(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    part = content[start : start + chance.randrange(200)]
    return content[:start] + part * chance.choice((1, 2, 50)) + content[start:]


def _drop_part(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(1, 60) :]


BYTE_DAMAGES = (_cut, _flip, _insert, _repeat_part, _drop_part)


def _names(table: Records) -> list[str]:
    return list(dict.fromkeys(name for record in table for name in record))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _csv(table: Records, delimiter: str = ",") -> bytes:
    import csv

    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    names = _names(table)
    writer.writerow(names)
    writer.writerows([[_text(record.get(name)) for name in names] for record in table])
    return out.getvalue().encode("utf-8", "replace")


def _jsonl(table: Records) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in table).encode()


def _parquet(table: Records) -> bytes:
    arrays = {}
    for name in _names(table):
        values = [record.get(name) for record in table]
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError):
            arrays[name] = pa.array([_text(value) for value in values])
    out = io.BytesIO()
    try:
        pq.write_table(pa.table(arrays), out)
    except pa.ArrowException:  # an empty struct, for example
        texts = {name: [_text(record.get(name)) for record in table] for name in arrays}
        out = io.BytesIO()
        pq.write_table(pa.table(texts), out)
    return out.getvalue()


def _json(nodes: Records, edges: Records, chance: random.Random) -> bytes:
    name = chance.choice(("links", "edges"))
    return json.dumps({"directed": False, "nodes": nodes, name: edges}).encode()


def _attributes(record: dict[str, Any], names: tuple[str, ...]) -> str:
    return "".join(f" {n}={quoteattr(_clean(record[n]))}" for n in names if n in record)


def _clean(value: Any) -> str:
    return "".join(c for c in _text(value) if c >= " " or c in "\t\n\r")


def _graphml(nodes: Records, edges: Records, chance: random.Random) -> bytes:
    lines = ['<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    keys: dict[tuple[str, str], str] = {}
    for domain, table in (("node", nodes), ("edge", edges)):
        for name in _names(table):
            if name not in ("id", "source", "target"):
                keys[domain, name] = f"k{len(keys)}"
                kind = "double" if name in ("age", "weight") else "string"
                lines.append(
                    f'<key id="{keys[domain, name]}" for="{domain}" '
                    f'attr.name={quoteattr(_clean(name))} attr.type="{kind}"/>'
                )
    lines.append('<graph edgedefault="undirected">')
    for domain, table in (("node", nodes), ("edge", edges)):
        for record in table:
            data = "".join(
                f'<data key="{keys[domain, n]}">{escape(_clean(v))}</data>'
                for n, v in record.items() if (domain, n) in keys
            )  # fmt: skip
            own = ("id",) if domain == "node" else ("source", "target")
            lines.append(f"<{domain}{_attributes(record, own)}>{data}</{domain}>")
    return "\n".join([*lines, "</graph></graphml>"]).encode("utf-8", "replace")


def _gexf(nodes: Records, edges: Records, chance: random.Random) -> bytes:
    names = [n for n in _names(nodes) if n != "id"]
    lines = ['<gexf version="1.2"><graph defaultedgetype="undirected"><attributes class="node">']
    for i, name in enumerate(names):
        kind = "double" if name == "age" else "string"
        lines.append(f'<attribute id="{i}" title={quoteattr(_clean(name))} type="{kind}"/>')
    lines.append("</attributes><nodes>")
    for record in nodes:
        values = "".join(
            f'<attvalue for="{i}" value={quoteattr(_clean(record[n]))}/>'
            for i, n in enumerate(names) if n in record
        )  # fmt: skip
        lines.append(f"<node{_attributes(record, ('id',))}><attvalues>{values}</attvalues></node>")
    lines.append("</nodes><edges>")
    own = ("source", "target", "weight")
    lines += [f'<edge id="{i}"{_attributes(edge, own)}/>' for i, edge in enumerate(edges)]
    return "\n".join([*lines, "</edges></graph></gexf>"]).encode("utf-8", "replace")


def _npz(nodes: Records, edges: Records, chance: random.Random) -> bytes:
    n, m = len(nodes), len(edges)
    kinds = ["<i8", "<i4", "<u8", "<f8", "|b1", "<U5", "|S3", "<M8[s]", "<m8[s]", "<c16", "<f2"]
    arrays: dict[str, Any] = {
        "edge_index": np.array([[chance.randrange(max(n, 1)) for _ in range(m)] for _ in "st"]),
        "x": np.random.default_rng(n).normal(size=(n, 4)),
        "y": np.array([chance.randrange(3) for _ in range(n)]),
    }
    if chance.random() < 0.3:
        arrays["edge_weight"] = np.ones(m)
    if chance.random() < 0.3:
        arrays["train_mask"] = np.ones(n, bool)
    for _ in range(chance.choice((0, 1, 2))):
        name, kind = chance.choice(list(arrays)), chance.choice(kinds)
        changes: list[Callable[[Any], Any]] = [
            lambda a, kind=kind: a.astype(kind), lambda a: a[..., :-1], lambda a: a.T,
            lambda a: a.reshape(-1)[:1].reshape(()), lambda a: a + 10**8, lambda a: a - 5,
            lambda a: np.where(np.ones_like(a), np.nan, a), lambda a: a[None], lambda a: a[:0],
            lambda a: a.astype(object), lambda a: a * 10**15,
        ]  # fmt: skip
        try:
            arrays[name] = chance.choice(changes)(arrays[name])
        except (TypeError, ValueError, IndexError, OverflowError, RuntimeError):
            continue
    out = io.BytesIO()
    chance.choice((np.savez, np.savez_compressed))(out, **arrays)
    return out.getvalue()


WRITERS: dict[str, Callable[..., bytes]] = {
    "csv": _csv, "tsv": lambda table: _csv(table, "\t"), "jsonl": _jsonl, "parquet": _parquet,
    "json": _json, "graphml": _graphml, "gexf": _gexf, "npz": _npz,
}  # fmt: skip
