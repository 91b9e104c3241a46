"""Plain numbers: columns taken together give the same as columns one by one, at once."""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow as pa
import pytest

import everynode as en
from everynode.io import feature_encoder, plain_numbers, table_features
from everynode.io.labels import Labels
from everynode.io.summary import Notes
from everynode.io.tables import make_table

NUM_ROWS = 60
EDGES = {"source": list(range(NUM_ROWS)), "target": [(i + 1) % NUM_ROWS for i in range(NUM_ROWS)]}
#: Cells of columns that are plain, nearly plain, or only look so.
CELLS = {
    "float": lambda c: f"{c.gauss(0, 1):.3f}",
    "whole": lambda c: c.randrange(1000),
    "scientific": lambda c: f"{c.gauss(0, 1):.3e}",
    "outliers": lambda c: c.choice([0.5, 1, 2]) if c.random() < 0.99 else 1e9,
    "mostly zero": lambda c: c.choice([0, 0, 0, 0, 5, 7]),
    "yes or no": lambda c: c.randrange(2),
    "0.0 or 1.0": lambda c: c.choice(["0.0", "1.0", "1"]),
    "one value": lambda c: "3",
    "one value, two texts": lambda c: c.choice(["3", "3.0"]),
    "missing": lambda c: c.choice(["", "NA", "nan", "4.5", "-2"]),
    "one or missing": lambda c: c.choice(["1", ""]),
    "seven or missing": lambda c: c.choice(["7", ""]),
    "empty": lambda c: "",
    "blanks": lambda c: f" {c.randrange(9)} ",
    "codes": lambda c: f"{c.randrange(1000):04d}",
    "decimal comma": lambda c: f"{c.randrange(9)},{c.randrange(10)}",
    "thousands": lambda c: f"{c.randrange(1, 9)}.{c.randrange(100, 999)}.{c.randrange(100, 999)}",
    "plus": lambda c: f"+{c.randrange(9)}",
    "euros": lambda c: f"{c.randrange(9)} EUR",
    "a typo": lambda c: "x" if c.random() < 0.02 else c.randrange(50),
    "words": lambda c: c.choice(["red", "blue"]),
    "none of use": lambda c: "-0",
}


def table_of(seed):
    chance = random.Random(seed)
    columns = {"id": list(range(NUM_ROWS))}
    columns["label"] = [chance.choice("ab") if i % 3 else "" for i in range(NUM_ROWS)]
    for number in range(12):
        name = chance.choice(list(CELLS))
        columns[f"{name} {number}"] = [CELLS[name](chance) for _ in range(NUM_ROWS)]
    leak = [1.0 if label == "a" else -1.0 for label in columns["label"]]
    columns["leak"] = [value + chance.choice([0, 0.1]) for value in leak]
    columns["bit"] = [int(label == "a") for label in columns["label"]]
    columns["beside"] = [chance.randrange(9) if label else "" for label in columns["label"]]
    return {name: list(map(str, column)) for name, column in columns.items()}


@pytest.fixture
def one_by_one(monkeypatch):
    def read(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr(plain_numbers, "plain_columns", lambda *_: [])
            return en.read(*arguments, **options)

    return read


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", [{}, {"na": ["?"]}, {"na": ["-2"]}], ids=str)
def test_columns_together_are_as_one_by_one(seed, options, one_by_one):
    table = table_of(seed)
    together = en.read(table, EDGES, **options)
    single = one_by_one(table, EDGES, **options)
    assert together.feature_encoder.to_dict() == single.feature_encoder.to_dict()
    assert together.summary.to_dict() == single.summary.to_dict()
    assert np.array_equal(together.dense_features, single.dense_features)
    other = {name: column for name, column in table_of(seed).items() if name != "label"}
    for name in ("leak", "bit"):
        other[name] = ["", *other[name][1:-1], "2"]  # the columns had no missing values
    encoder = together.feature_encoder
    new, new_single = (
        read(other, EDGES, feature_encoder=encoder, **options) for read in (en.read, one_by_one)
    )
    assert np.array_equal(new.dense_features, new_single.dense_features)
    assert new.summary.to_dict() == new_single.summary.to_dict()


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 1, None] * 20),
        pa.array([2**60, 2**60 + 1, 2**60 + 2] * 20),
        pa.array([True, False, True] * 20),
        pa.array([0.5, float("nan"), 3.0] * 20, pa.float32()),
        pa.array([2**63, 2**64 - 1, 0] * 20, pa.uint64()),
        pa.array([7] * 60, pa.int8()),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_that_are_no_text(column, one_by_one):
    table = pa.table({"id": list(range(60)), "x": column})
    together, single = en.read(table, EDGES), one_by_one(table, EDGES)
    assert together.feature_encoder.to_dict() == single.feature_encoder.to_dict()
    assert np.array_equal(together.dense_features, single.dense_features)


def test_plain_numbers_take_no_cells_of_their_own(monkeypatch):
    def refuse(*_):
        raise AssertionError("one by one")

    monkeypatch.setattr(table_features, "Cells", refuse)
    monkeypatch.setattr(feature_encoder, "Cells", refuse)
    chance = random.Random(0)
    kinds = ("float", "whole", "yes or no", "missing", "one value", "mostly zero", "blanks")
    columns = {name: [str(CELLS[name](chance)) for _ in range(NUM_ROWS)] for name in kinds}
    table = {"id": list(map(str, range(NUM_ROWS))), **columns}
    table["label"] = list("ab" * (NUM_ROWS // 2))
    graph = en.read(table, EDGES)
    again = en.read(table, EDGES, feature_encoder=graph.feature_encoder)
    assert np.array_equal(again.dense_features, graph.dense_features)


def test_the_time_of_a_column_is_a_tenth_of_one_by_one():
    chance = np.random.default_rng(0)
    values = chance.normal(size=(600, 40)).round(3).astype(str)
    table = make_table(
        "wide.csv", [(f"c{i}", row) for i, row in enumerate(values.tolist())], "", "row", range(40)
    )
    labels = Labels(np.arange(40) % 2, ("a", "b"))
    kinds = dict.fromkeys(table.columns)

    def seconds(together):
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            if together:
                plain_numbers.fit_plain_columns(table, kinds, labels)
            else:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(plain_numbers, "plain_columns", lambda *_: [])
                    few = dict.fromkeys(list(kinds)[:60])
                    table_features._fit_transform(
                        few, table, labels, Notes(), na=(), date_order=None
                    )
            best = min(best, time.process_time() - began)
        return best

    assert seconds(True) < seconds(False)  # ten times as many columns
