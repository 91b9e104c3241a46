"""Whatever is in people's files, reading them gives a graph or one clear sentence, never another exception."""

from __future__ import annotations

import csv
import json

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

import everynode as en
from everynode.errors import EverynodeError
from everynode.io import FeatureEncoder
from everynode.io.type_inference import KINDS

quick = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
ENDINGS = ["csv", "tsv", "txt", "csv.gz", "jsonl", "parquet", "npz", "json", "graphml", "gexf"]
#: Cells that have broken one reader or another.
EVIL = st.sampled_from(
    ["", " ", "NA", "nan", "inf", "-inf", "1e999", "1e308", "007", "7", "7.0", "+7", "-0", "0x10", "1_000", "1,5", "1,234", "true", "No",
     "1.234", "1.234,5", "2020-01-31", "2020-02-31", "31.12.2020", "9999-99-99", '"', '""', "'", "a b", "a\nb", "\r", "\t", ";", "|", "#",
     "=1+1", "é", "日本語", "\u202e", "\ufeff", "\u2028", "null", "None", "train", "test",
     "9" * 30, "x" * 300, "\\", "a,b", "[1,2]", "{}", "%",
     "€5", "5 EUR", "EUR5", "83%", "($1.5)", "(5)", "-£1,234.5", "1.234 €"]
)  # fmt: skip
CELLS = EVIL | st.integers(0, 6).map(str) | st.text(max_size=6)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "label": st.sampled_from(["label", "x", "none", "nothing"]),
        "split": st.sampled_from(["split", "y", "none"]),
        "id": st.sampled_from(["id", "x"]),
        "weight": st.sampled_from(["weight", "none"]),
        "features": st.sampled_from(["all", "structure", "all,structure", "x", None])
        | st.sampled_from(KINDS).map(lambda kind: f"x:{kind}"),
        "unknown": st.sampled_from(["refuse", "drop", "add"]),
        "directed": st.booleans(),
        "na": st.sampled_from([["7"], ["7.0", "inf", "2020-01-31"], [""]]),
    },
)  # fmt: skip


def attempt(*sources, **options) -> None:
    """A graph that holds together, which its own feature encoder reads again; or a sentence."""
    try:
        graph = en.read(*sources, **options)
    except EverynodeError as refused:
        text = str(refused)
        assert text.endswith((".", "?"))
        return
    assert graph.summary.nodes == graph.num_nodes == len(graph.node_ids)
    json.dumps(graph.summary.to_dict())
    assert str(graph.summary)
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(graph.feature_encoder.to_dict()))
    )
    assert feature_encoder == graph.feature_encoder
    kept = {
        key: value for key, value in options.items() if key not in ("features", "label", "split")
    }
    again = en.read(*sources, **kept, feature_encoder=feature_encoder)
    assert again.num_features == graph.num_features
    assert again.classes == graph.classes


@quick
@given(
    nodes=st.binary(max_size=200),
    edges=st.binary(max_size=100),
    ends=st.tuples(st.sampled_from(ENDINGS), st.sampled_from(ENDINGS)),
)
@example(nodes=b"\x1f\x8b", edges=b"", ends=("csv", "csv"))
@example(nodes=b"\xff\xfe\x00", edges=b"\xfe\xff", ends=("csv", "csv"))
def test_random_bytes(tmp_path, nodes, edges, ends):
    paths = [tmp_path / f"{name}.{end}" for name, end in zip(("nodes", "edges"), ends, strict=True)]
    for path, content in zip(paths, (nodes, edges), strict=True):
        path.write_bytes(content)
    attempt(*paths)
    attempt(paths[0])
    attempt(None, paths[1])


@st.composite
def text_tables(draw):
    """A heading, mostly sensible, and rows of evil cells, mostly of its length."""
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    names = draw(
        st.lists(
            st.sampled_from(["id", "x", "y", "label", "split", "weight", "source", "target", ""]),
            min_size=1,
            max_size=5,
        )
    )
    rows = draw(st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), max_size=8))
    if draw(st.integers(0, 9)) == 0:
        rows.append(draw(st.lists(CELLS, max_size=6)))
    quoted = draw(st.booleans())

    def cell(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if quoted else value

    lines = [delimiter.join(cell(value) for value in row) for row in [names, *rows]]
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines).encode(encoding, "replace")


@quick
@given(nodes=text_tables(), edges=text_tables(), options=OPTIONS)
def test_random_text(tmp_path, nodes, edges, options):
    (tmp_path / "nodes.csv").write_bytes(nodes)
    (tmp_path / "edges.csv").write_bytes(edges)
    attempt(tmp_path / "nodes.csv", tmp_path / "edges.csv", **options)


@st.composite
def sound_tables(draw):
    """Ids that are right, and edges between them; everything else evil."""
    n = draw(st.integers(2, 12))
    columns = {name: draw(st.lists(CELLS, min_size=n, max_size=n)) for name in ("x", "y")}
    labels = draw(st.lists(st.sampled_from(["a", "b", " a", "", "c"]), min_size=n, max_size=n))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12))
    nodes = {"id": list(range(n)), **columns, "label": labels}
    return nodes, {"source": [a for a, _ in ends], "target": [b for _, b in ends]}


@quick
@given(
    tables=sound_tables(), options=OPTIONS, delimiter=st.sampled_from([None, ",", ";", "\t", "|"])
)
def test_evil_cells_between_sound_ids(tmp_path, tables, options, delimiter):
    if delimiter is None:
        attempt(*tables, **options)
        return
    paths = [tmp_path / "nodes.csv", tmp_path / "edges.csv"]
    for path, table in zip(paths, tables, strict=True):
        with path.open("w", encoding="utf-8", newline="", errors="replace") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    attempt(*paths, **options)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | CELLS
    | st.dates()
    | st.datetimes()
    | st.binary(max_size=3)
)
NESTED = (
    VALUES
    | st.lists(st.floats(), max_size=3)
    | st.lists(CELLS, max_size=2)
    | st.dictionaries(st.text(max_size=2), VALUES, max_size=2)
)


@quick
@given(
    rows=st.lists(st.tuples(NESTED, NESTED), min_size=2, max_size=6),
    kind=st.sampled_from([None, "number", "vector", "text", "date", "category"]),
)
def test_python_values_of_every_kind(rows, kind):
    nodes = {"id": list(range(len(rows))), "x": [a for a, _ in rows], "label": [b for _, b in rows]}
    attempt(nodes, {"source": [0], "target": [1]}, features="x" if kind is None else f"x:{kind}")
    attempt(nodes, {"source": nodes["x"], "target": nodes["label"]}, label="none", unknown="drop")
    attempt(
        {"id": nodes["x"], "y": nodes["label"]},
        {"source": [0], "target": [1], "weight": [nodes["x"][0]]},
        unknown="drop",
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"nodes": [], "links": []}',
        '{"nodes": [{"id": [1]}], "links": []}',
        "[]",
        "3",
        '{"a": 1}',
        "{",
        "[" * 10**5,
    ],
)
def test_json_that_is_no_graph(tmp_path, content):
    (tmp_path / "graph.json").write_text(content)
    attempt(tmp_path / "graph.json")
    (tmp_path / "graph.jsonl").write_text(content)
    attempt(tmp_path / "graph.jsonl", tmp_path / "graph.jsonl")
