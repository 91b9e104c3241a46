"""One-click repairs of the roles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.conftest import write_tables
from everynode.app.graph_view import GraphView
from everynode.app.project import Source
from everynode.app.repairs import repairs, with_role
from everynode.errors import DataError


def offers(source: Source) -> dict[str, Source]:
    """Read the files and return the repairs by their text."""
    try:
        summary, error = GraphView.read(source).graph.summary, ""
    except DataError as problem:
        summary, error = None, str(problem)
    return dict(repairs(source, summary, error))


def test_edges_to_unknown_nodes_are_dropped_or_their_nodes_added(
    tables: tuple[Path, Path], source: Source
) -> None:
    with tables[1].open("a") as file:
        file.write("n1,stranger,1\n")
    found = offers(source)
    assert set(found) == {"Leave these edges out", "Add these nodes"}
    assert GraphView.read(found["Leave these edges out"]).num_nodes == 120
    assert GraphView.read(found["Add these nodes"]).num_nodes == 121


def test_a_label_is_proposed_and_a_weight(source: Source) -> None:
    found = offers(replace(source, label="none"))
    assert set(found) == {"mood is the label", "team is the label", "Use strength as weight"}
    view = GraphView.read(found["team is the label"])
    assert set(view.classes) == {"team0", "team1", "team2"}
    assert GraphView.read(found["Use strength as weight"]).graph.weights is not None


def test_a_leaking_column_is_left_out(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, known=1.0)
    lines = nodes.read_text().splitlines()
    lines = [
        lines[0] + ",code",
        *(f"{line},{line.rpartition(',')[2].replace('team', 'c')}" for line in lines[1:]),
    ]
    nodes.write_text("\n".join(lines))
    source = Source(nodes=str(nodes), edges=str(edges), label="team")
    found = offers(source)
    assert "Leave out code" in found
    assert "Leave out code" not in offers(found["Leave out code"])


def test_ambiguous_dates_get_an_order(tables: tuple[Path, Path], source: Source) -> None:
    lines = tables[0].read_text().splitlines()
    lines = [
        lines[0] + ",since",
        *(f"{line},0{1 + i % 9}/0{1 + i % 7}/2020" for i, line in enumerate(lines[1:])),
    ]
    tables[0].write_text("\n".join(lines))
    found = offers(source)
    assert found["The day comes first"].date_order == "dmy"
    assert found["The month comes first"].date_order == "mdy"


def test_a_column_that_is_no_split_is_turned_off(tables: tuple[Path, Path], source: Source) -> None:
    text = tables[0].read_text().replace("mood", "split", 1)
    tables[0].write_text(text)
    found = offers(source)
    assert found["It is not a split"].split == "none"
    assert GraphView.read(found["It is not a split"]).num_nodes == 120


@pytest.mark.parametrize(
    ("role", "edges", "field", "value"),
    [
        ("id", False, "id", "x"), ("label", False, "label", "x"), ("name", False, "display", "x"),
        ("split", False, "split", "x"), ("left out", False, "features", "all,-x"),
        ("source", True, "source", "x"), ("weight", True, "weight", "x"), ("not used", True, "weight", "none"),
    ],
)  # fmt: skip
def test_a_menu_sets_one_role(role: str, edges: bool, field: str, value: str) -> None:
    assert getattr(with_role(Source(), "x", role, edges=edges), field) == value


def test_a_column_gives_its_old_role_up() -> None:
    changed = with_role(Source(label="x", split="s"), "x", "feature")
    assert (changed.label, changed.split, changed.features) == ("none", "s", "all")
    assert with_role(Source(), "age", "feature") == Source()
    assert with_role(Source(), "Label", "feature").label == "none"
    assert with_role(Source(source="x"), "x", "target", edges=True) == Source(
        source=None, target="x"
    )
    assert with_role(Source(features="a,b"), "c", "feature").features == "a,b,c"
    assert with_role(Source(features="a,b"), "b", "left out").features == "a"
