"""The generators of tables: unknown marks are refused, and the benchmark's table is right."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from readme import filled  # noqa: E402
from tables.unseen import (  # noqa: E402
    COLUMNS,
    RUNNING,
    cells_table,
    few_labels_table,
    read_cells,
    shares_table,
    unseen_table,
)


def rows(path: Path, values: list[tuple]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(values)
    return path


def cell(
    graph: str, split: int, system: str, kind: str, accuracy: float, half: str = "unseen",
    validation: str = "yes", design: int = 1,
) -> tuple:  # fmt: skip
    return graph, half, "5", validation, split, system, kind, accuracy, 100, 1.0, design


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


def test_the_default_beside_the_others_by_half_of_the_graphs(tmp_path):
    values = []
    for graph, half, ours in (
        ("citeseer", "unseen", 0.8), ("actor", "unseen", 0.4), ("cora", "design", 0.1),
    ):  # fmt: skip
        for split in range(2):
            values += [
                cell(graph, split, "everynode", "default", ours + 0.02 * split, half),
                cell(graph, split, "PyG GCN", "outsider", 0.5, half),
                cell(graph, split, "logistic", "outsider", 0.45 if graph == "actor" else 0.6, half),
                cell(graph, split, "gcn:row", "candidate", 0.99, half),
            ]
    values.append(cell("pubmed", 0, "everynode", "default", 1.0))  # others are missing
    file = rows(tmp_path / "unseen.csv", values)
    table = unseen_table(file)
    assert "| **everynode, default** | 61.0 | 11.0 |" in table
    assert "| PyG GCN | 50.0 | 50.0 |" in table
    assert "| logistic | 52.5 | 60.0 |" in table
    assert "| *the best of the others, cell by cell* | 55.0 | 60.0 |" in table
    assert "| cells | 2 | 1 |" in table
    assert "gcn:row" not in table
    assert "Unseen: actor, citeseer; design: 1 graphs" in table
    assert "pubmed" not in table

    every = cells_table(file)
    assert "3 cells. The default is -12.3 points (standard error 20.3) from" in every
    assert "clearly ahead in 1 cells, clearly behind in 1 " in every
    assert (
        "Median -9.0; mean by half: unseen +6.0, design -49.0; more than 3 points behind in 2."
        in every
    )
    worst = every.splitlines()[4]
    assert worst.startswith("| cora | design | 5 a class | yes | 2 | 100 | 11.0 | 60.0 (logistic)")
    assert worst.endswith("| **−49.0** |")


def test_the_latest_design_counts_and_the_first_two_differ_without_a_validation_set(tmp_path):
    for validation, designs, earlier in (
        ("no", (1, 2), True), ("yes", (1, 2), False), ("yes", (1, 3), True), ("no", (2, 3), True),
    ):  # fmt: skip
        values = [
            cell(graph, split, system, kind, 0.5, "design", validation=validation, design=design)
            for graph, split, design in (("dblp", 0, designs[0]), ("acm", 0, designs[1]))
            for system, kind in (("everynode", "default"), ("logistic", "outsider"))
        ]
        found = {c.graph: c.earlier for c in read_cells(rows(tmp_path / "u.csv", values))}
        assert found == {"acm": False, "dblp": earlier}


def test_splits_of_the_latest_design_replace_earlier_ones(tmp_path):
    values = []
    for graph, design, ours in (("acm", 1, 0.1), ("acm", 2, 0.7), ("dblp", 1, 0.4)):
        of = {"half": "design", "validation": "no", "design": design}
        values += [
            cell(graph, design, "everynode", "default", ours, **of),
            cell(graph, design, "logistic", "outsider", 0.5, **of),
        ]
    file = rows(tmp_path / "unseen.csv", values)
    assert {(c.graph, c.earlier): c.regret for c in read_cells(file)} == pytest.approx(
        {("acm", False): 0.2, ("dblp", True): -0.1}
    )
    assert "| dblp† | design |" in cells_table(file)
    assert "† Measured with" in cells_table(file)


def test_the_estimated_class_shares_by_half(tmp_path):
    found = {
        "command": "python x", "priors": [None, 0.3], "graphs": [["acm"], ["cora"]],
        "cells": [2, 1], "chosen": [0.3, 0.3],
        "means": [{"5": [[1.0, -2.0], [0.9, 1.0]]}, {"5": [[0.8, 0.5], [0.7, -0.5]]}],
    }  # fmt: skip
    file = tmp_path / "shares.json"
    file.write_text(json.dumps(found))
    table = shares_table(file)
    assert "| weight of the prior | 5/class, first half | 5/class, second half |" in table
    assert "| no estimate | 1.000, −2.0 | 0.800, +0.5 |" in table
    assert "| 0.3 (chosen by the first and second half) | 0.900, +1.0 | 0.700, −0.5 |" in table
    assert "First half: acm (2 draws). Second half: cora (1 draws)." in table


def test_what_each_half_chooses_for_few_labels_is_bold(tmp_path):
    means = [
        {"folds": folds, "design": "fold networks", "halves": [[loss, 0.7], [loss + 0.1, 0.8]]}
        for folds, loss in ((3, 1.0), (5, 0.9))
    ]
    found = {
        "command": "python x", "graphs": [["acm"], ["cora"]], "cells": [2, 1], "means": means,
        "chosen": [means[1], means[0]], "rows": [{"graph": "acm"}, {"graph": "cora"}],
    }  # fmt: skip
    file = tmp_path / "few.json"
    file.write_text(json.dumps(found))
    table = few_labels_table(file)
    assert "| 3 | fold networks | 1.000 | **1.100** | 70.0 | 80.0 |" in table
    assert "| 5 | fold networks | **0.900** | 1.000 | 70.0 | 80.0 |" in table
    assert "First half: acm (2 draws). Second half: cora (1 draws)." in table
