"""The graph as the page shows it."""

from __future__ import annotations

from dataclasses import replace

from app.conftest import ODD
from everynode.app.graph_view import GraphView, node_columns
from everynode.app.project import Source


def test_it_shows_names_columns_neighbors_and_labels(source: Source) -> None:
    view = GraphView.read(source)
    assert (view.num_nodes, view.name_column) == (120, "name")
    assert view.name(0) == ODD
    assert [name for name, _cell in view.cells(1)] == ["name", "size", "mood"]
    assert (view.id_column, view.label_column) == ("id", "team")
    assert set(view.classes) == {"team0", "team1", "team2"}
    for node in (0, 5):
        links = view.graph.edges.tolist()
        expected = {b for a, b in zip(*links, strict=True) if a == node}
        expected |= {a for a, b in zip(*links, strict=True) if b == node}
        assert view.neighbors(node) == sorted(expected)


def test_the_search_finds_ids_and_names_the_best_first(source: Source) -> None:
    view = GraphView.read(source)
    assert view.ids[view.search("n11")[0]] == "n11"
    assert view.search("PERSON 7")[0] == view.place["n7"]
    assert view.search("  ") == []
    assert view.search("nobody") == []


def test_labels_may_be_missing_and_columns_too(source: Source, tables) -> None:
    view = GraphView.read(replace(source, label="none", features="all,-team"))
    assert view.classes == ()
    assert (view.labels == -1).all()
    alone = GraphView.read(Source(edges=str(tables[1])))
    assert alone.name(0) == alone.ids[0]
    assert alone.cells(0) == []


def test_node_columns_end_where_the_edges_begin(source: Source) -> None:
    summary = GraphView.read(source).graph.summary
    assert summary is not None
    assert {column.name for column in node_columns(summary)} == {
        "id",
        "name",
        "size",
        "mood",
        "team",
    }
