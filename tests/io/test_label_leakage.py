"""Label leakage: columns that determine the label."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en


def test_a_column_that_leaks_the_label_is_named(write):
    rows = [f"{i},{'ABC'[i % 3]},{'pq'[i % 2]},{'red' if i % 3 else 'blue'}" for i in range(30)]
    write(nodes_csv="id,code,other,label\n" + "\n".join(rows), edges_csv="1,2\n2,3\n")
    (warning,) = en.read("nodes.csv", "edges.csv").summary.warnings
    assert "Label leakage: column 'code' of nodes.csv determines the label" in warning.text
    assert not en.read("nodes.csv", "edges.csv", features="other").summary.warnings


COPIES = {
    "numbers": [10, 20, 30],
    "numbers as text": ["10", "20,5", "30"],
    "finer numbers": [1, 2, 3, 4, 5, 6],  # two per class
    "days": ["2020-01-01", "2020-02-01", "2020-03-01"],
    "true or false": [True, False, False],
    "yes or no": ["yes", "no", "no"],
    "yes or nothing": ["yes", None, None],
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_the_label_is_named_whatever_it_is_written_in(copy):
    values = COPIES[copy]
    label = [i % len(values) % 3 for i in range(60)]
    label = label if len({repr(v) for v in values}) > 2 else [int(i == 0) for i in label]
    copied = [values[i % len(values)] for i in range(60)]
    nodes = {
        "id": [f"n{i}" for i in range(60)],
        "copy": copied,
        "x": [i // 2 for i in range(60)],
        "label": label,
    }
    (warning,) = en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings
    assert "Label leakage: column 'copy' of the table of nodes determines the label" in warning.text
    nodes["label"][30] = 1 - min(nodes["label"][30], 1)  # wrong for one node
    assert not en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings


@pytest.mark.parametrize("kind", [float, str])
def test_numbers_that_differ_nearly_everywhere_do_not_leak_the_label(kind):
    nodes = {
        "id": [f"n{i}" for i in range(60)],
        "x": [kind(i // 2 / 4) for i in range(60)],
        "label": [i // 2 % 2 for i in range(60)],
    }
    assert not en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings


def test_one_of_many_columns_may_fit_the_labels_by_chance(notes):
    """Of 500 rare words some are in the only paper of a class."""
    words = np.random.default_rng(0).random((500, 50)) < 0.02
    assert (words[:, 0] & ~words[:, 1:].any(1)).any()
    nodes = {
        "id": [f"n{i}" for i in range(50)],
        **{f"w{j}": word for j, word in enumerate(words)},
        "label": ["a"] + ["b"] * 49,
    }
    assert "leakage" not in notes(en.read(nodes, {"source": ["n0"], "target": ["n1"]}))
