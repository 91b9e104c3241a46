"""Splits by time: dates, years, ties, and columns that are no times."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en


def people(times, labels=None):
    n = len(times)
    labels = ["a" if i % 2 else "b" for i in range(n)] if labels is None else labels
    return {"id": [f"n{i}" for i in range(n)], "x": list(range(n)), "when": times, "label": labels}


LINKS = {"source": ["n0", "n1"], "target": ["n1", "n2"]}


def parts(times, labels=None, **options):
    graph = en.read(people(times, labels), LINKS, split_by="when", **options)
    (split,) = graph.splits
    assert not len(split.val)
    assert [column.name for column in graph.feature_encoder.columns] == ["x"]
    return graph, split.train.tolist(), split.test.tolist()


def test_the_latest_fifth_tests():
    order = np.random.default_rng(0).permutation(20)
    graph, train, test = parts([f"{2000 + int(i)}-05-01" for i in order])
    assert sorted(order[test]) == [16, 17, 18, 19]
    assert len(train) == 16
    assert graph.summary.time_split == (
        "16 labels up to 2015-05-01 (when) train, and 4 from 2016-05-01 on test"
    )
    assert ("time", graph.summary.time_split) in graph.summary.rows()


def test_years_and_ties_stay_together():
    years = [2001] * 5 + [2002] * 3 + [2003] * 2
    _, train, test = parts(years)
    assert (train, test) == ([0, 1, 2, 3, 4, 5, 6, 7], [8, 9])
    _, _, test = parts([2001] * 5 + [2002] * 5)
    assert test == [5, 6, 7, 8, 9]
    _, _, test = parts([f"{day}.03.2020" for day in range(10, 20)])
    assert test == [8, 9]


def test_unlabeled_and_undated_nodes(recwarn):
    times = [2000, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, None]
    labels = ["a", "b", "a", "b", "a", "b", "a", None, None, "b"]
    graph, train, test = parts(times, labels)
    assert (train, test) == ([0, 1, 2, 3, 4, 5, 9], [6])
    assert any("without a time in 'when'" in note.text for note in graph.summary.warnings)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["Porto", "Oslo", "Graz", "Rome"], "holds 'Porto', which is neither a date nor a number"),
        ([2001] * 4, "has one time only"),
        ([None] * 4, "has no time"),
        (["2020-01-01", "soon", "2020-01-03", "2020-01-04"], "holds 'soon'"),
        (["01/02/2020", "03/04/2020", "05/06/2020", "07/08/2020"], "day or month first"),
        ([[1, 2], [2, 3], [3, 4], [4, 5]], "not dates or numbers"),
    ],
)
def test_other_columns_are_refused(times, said):
    with pytest.raises(en.DataError, match=said):
        parts(times)


def test_two_splits_are_refused():
    table = people([2001, 2002, 2003, 2004]) | {"part": ["train", "train", "test", "test"]}
    with pytest.raises(en.UsageError, match="Give one of the two"):
        en.read(table, LINKS, split="part", split_by="when")
    with pytest.raises(en.DataError, match="no column 'where'"):
        en.read(table, LINKS, split_by="where")
