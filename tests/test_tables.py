"""The generators of tables: unknown marks are refused, and the benchmark's table is right."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from readme import filled  # noqa: E402
from tables.unseen import COLUMNS, RUNNING, unseen_table  # noqa: E402


def rows(path: Path, values: list[tuple]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(values)
    return path


def cell(graph: str, regime: str, split: int, system: str, kind: str, accuracy: float) -> tuple:
    return graph, regime, "yes", split, system, kind, accuracy, 100, 1.0


def test_a_page_that_asks_for_an_unknown_table_is_refused():
    with pytest.raises(SystemExit, match=r"page\.md asks for nothing"):
        filled("<!-- nothing:begin -->\n<!-- nothing:end -->", "page.md")


def test_a_table_that_does_not_end_is_refused():
    with pytest.raises(SystemExit, match="does not end"):
        filled("<!-- speed:begin -->\n", "page.md")


def test_a_table_takes_the_place_of_what_stood_there():
    made = filled("a\n<!-- machine:begin -->\nold\n<!-- machine:end -->\nb", "page.md")
    assert made.startswith("a\n<!-- machine:begin -->\n| threads")
    assert "old" not in made


def test_without_results_the_page_says_that_the_benchmark_runs(tmp_path):
    assert unseen_table(tmp_path / "none.csv") == RUNNING


def test_the_default_beside_the_others_on_graphs_outside_the_design(tmp_path):
    values = []
    for graph, ours in (("citeseer", 0.8), ("actor", 0.4), ("cora", 0.0)):  # cora: design half
        for split in range(2):
            values += [
                cell(graph, "5", split, "everynode", "default", ours + 0.02 * split),
                cell(graph, "5", split, "PyG GCN", "outsider", 0.5),
                cell(graph, "5", split, "logistic", "outsider", 0.3),
                cell(graph, "5", split, "gcn:row", "candidate", 0.99),
            ]
    values.append(cell("pubmed", "5", 0, "everynode", "default", 1.0))  # others are missing
    table = unseen_table(rows(tmp_path / "unseen.csv", values))
    assert "| **everynode, default** | 61.0 |" in table
    assert "| PyG GCN | 50.0 |" in table
    assert "PyG GCN +11.0" in table
    assert "gcn:row" not in table
    assert "2 graphs" in table
    assert "actor, citeseer" in table
