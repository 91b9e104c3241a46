"""Runs as CSV and JSON: the same runs give the same bytes."""

from __future__ import annotations

import csv
import io
import json

from everynode.report.export import runs_csv, runs_json

RECORDS = {
    "b": {
        "key": "b",
        "seed": 1,
        "settings": {"tv": 0.5},
        "confusion": [[1, 0], [0, 1]],
        "none": None,
    },
    "a": {"key": "a", "seed": 0, "settings": {"tv": 5.0}, "positions": [[0, 0]], "labels": [1]},
}


def test_rows_are_sorted_by_key_and_nested_entries_have_dotted_names():
    rows = list(csv.DictReader(io.StringIO(runs_csv(RECORDS))))
    assert [row["key"] for row in rows] == ["a", "b"]
    assert list(rows[0]) == ["key", "confusion", "seed", "settings.tv"]
    assert json.loads(rows[1]["confusion"]) == [[1, 0], [0, 1]]


def test_the_order_of_the_records_does_not_matter():
    back = dict(reversed(RECORDS.items()))
    assert runs_csv(RECORDS) == runs_csv(back)
    assert runs_json(RECORDS) == runs_json(back)
    assert [record["key"] for record in json.loads(runs_json(RECORDS))] == ["a", "b"]
