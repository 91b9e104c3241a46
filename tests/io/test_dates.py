"""Dates in the orders and with the times that people write."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import everynode as en
from everynode.errors import DataError, UsageError
from everynode.io.dates import as_days, order_of_dates

EDGES = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 4]}


def text(*cells: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([list(cells)], pa.string())


def day(date: datetime.datetime) -> float:
    return (date - datetime.datetime(1970, 1, 1)).total_seconds() / 86400


WRITTEN = [
    ("2020-12-31", "", (2020, 12, 31)),
    ("2020-12-31T06:30:15.250Z", "", (2020, 12, 31, 6, 30, 15)),
    ("2020/2/29 18:00", "", (2020, 2, 29, 18)),
    ("31.12.2020", "dmy", (2020, 12, 31)),
    ("31.12.20 23:59", "dmy", (2020, 12, 31, 23, 59)),
    ("1.2.1999", "dmy", (1999, 2, 1)),
    ("12/31/2020", "mdy", (2020, 12, 31)),
    ("1/2/69, 12:05 AM", "mdy", (1969, 1, 2, 0, 5)),
    ("1/2/68 12:05:01 pm", "mdy", (2068, 1, 2, 12, 5, 1)),
    ("2020-12-31", "dmy", (2020, 12, 31)),
]


@pytest.mark.parametrize(("cell", "order", "parts"), WRITTEN)
def test_a_date(cell, order, parts):
    assert as_days(text(cell), order)[0] == pytest.approx(day(datetime.datetime(*parts)))


@pytest.mark.parametrize("cell", ["2021-02-29", "31.4.2020", "13/13/2020", "1.2.10", "soon", None])
def test_no_date(cell):
    assert np.isnan(as_days(text(cell), "dmy")).all()


def test_the_order_is_that_of_the_other_dates():
    assert order_of_dates(text("31/01/2020", "03/04/2020")) == ("dmy", "")
    assert order_of_dates(text("01/31/2020", "03/04/2020")) == ("mdy", "")
    assert order_of_dates(text("01.02.2020", "03.04.2020")) == ("dmy", "")
    assert order_of_dates(text("01/01/2020", "03/04/2020")) == ("", "03/04/2020")
    assert order_of_dates(text("01/01/2020", "03/04/2020"), "mdy") == ("mdy", "")
    assert order_of_dates(text("31/01/2020", "12/31/2020")) == ("", "")
    assert order_of_dates(text("31/01/2020", "03/04/2020"), "mdy") == ("dmy", "")  # mdy cannot be


def nodes(since: list[str]) -> dict[str, list[object]]:
    return {"id": list(range(5)), "since": since, "label": ["a", "b", "a", "b", None]}


def test_an_ambiguous_column_is_left_out_and_said_unless_the_order_is_given(notes):
    since = ["01/02/2020", "03/04/2020", "05/06/2020", "07/08/2020", "11/12/2020"]
    graph = en.read(nodes(since), EDGES)
    assert graph.summary.structural
    assert "such as 01/02/2020. Give the order" in graph.summary.warnings[0].text
    assert "--date-order" in graph.summary.warnings[0].text
    with pytest.raises(DataError, match="--date-order"):
        en.read(nodes(since), EDGES, features="since:date")
    by_day = en.read(nodes(since), EDGES, date_order="dmy")
    by_month = en.read(nodes(since), EDGES, date_order="mdy")
    assert by_day.feature_encoder.columns[0].date_order == "dmy"
    assert not np.allclose(by_day.dense_features, by_month.dense_features)
    assert "--date-order" not in notes(by_day)
    with pytest.raises(UsageError, match="order of dates"):
        en.read(nodes(since), EDGES, date_order="ydm")


def test_a_model_reads_the_order_of_its_training():
    trained = en.read(nodes(["31/01/2020", "03/04/2020", "05/06/2020", "", "07/08/2021"]), EDGES)
    encoder = type(trained.feature_encoder).from_dict(trained.feature_encoder.to_dict())
    new = nodes(["03/04/2020", "05/06/2020", "07/08/2021", "", "31/01/2020"])
    ambiguous = nodes(["03/04/2020", "05/06/2020", "07/08/2021", "", "01/02/2020"])
    same = en.read(new, EDGES, feature_encoder=encoder).dense_features
    assert same[0].tolist() == trained.dense_features[1].tolist()
    other = en.read(ambiguous, EDGES, feature_encoder=encoder).dense_features
    assert other[0].tolist() == same[0].tolist()
    american = en.read(ambiguous, EDGES, feature_encoder=encoder, date_order="mdy").dense_features
    assert american[0].tolist() != same[0].tolist()
