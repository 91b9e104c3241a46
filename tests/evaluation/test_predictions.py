"""The table of predictions."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np

from everynode.evaluation.predictions import HEADING, Predictions, is_table


def table() -> Predictions:
    p = np.array([[0.75, 0.25], [0.125, 0.875], [0.5, 0.5]])
    return Predictions(("a", "b", "c"), ("x", "y"), p, ("x", None, "z"), ("train", "", "test"))


def test_predictions_are_beside_what_was_given():
    made = table()
    assert made.predicted.tolist() == [0, 1, 0]
    assert made.probability.tolist() == [0.75, 0.875, 0.5]
    assert made.labels.tolist() == [0, -1, -1], "z is a class that the model does not know"
    assert made.nodes("train").tolist() == [0]
    assert made.nodes("test").tolist() == []


def test_the_file_has_a_row_per_node_and_is_known_by_its_heading(tmp_path):
    file = tmp_path / "deep" / "predictions.csv"
    table().write_csv(file)
    with file.open(newline="") as opened:
        rows = list(csv.reader(opened))
    assert rows[0] == [*HEADING, "p_x", "p_y"]
    assert rows[1] == ["a", "x", "0.75", "yes", "x", "train", "x", "0.75", "0.25"]
    assert rows[2] == ["b", "y", "0.875", "no", "", "", "y", "0.125", "0.875"]
    assert (rows[3][4], rows[3][6]) == ("z", "z"), "final: the given label, else the prediction"
    assert is_table(file)
    file.write_text("id,label\n")
    assert not is_table(file)


def test_names_and_kept_columns_are_written_and_a_node_is_shown_with_its_name():
    made = dataclasses.replace(
        table(), shown={"name": ("Ann", "", "Cem"), "label": ("1", "2", "3")}, name_column="name"
    )
    heading, first, *_ = csv.reader(made.to_csv().splitlines())
    assert heading == [*HEADING, "name", "label (attribute)", "p_x", "p_y"]
    assert first[len(HEADING) : len(HEADING) + 2] == ["Ann", "1"]
    assert (made.name(0), made.name(1)) == ("Ann (a)", "b")
