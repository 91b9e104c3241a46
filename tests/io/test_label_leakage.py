"""Label leakage: columns that determine the label."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en
from everynode.io.label_leakage import _may_separate, _most_errors


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
    (warning,) = en.read(nodes, {"source": ["n0"], "target": ["n1"]}).summary.warnings
    assert "nearly determines the label: it is wrong for 1 of 60 nodes" in warning.text
    for i in (3, 12, 21, 33, 42):  # wrong for a tenth of the nodes
        nodes["label"][i] = 1 - min(nodes["label"][i], 1)
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


def leaks_of(nodes: dict) -> list[tuple[str, str]]:
    ids = [f"n{i}" for i in range(len(nodes["label"]))]
    graph = en.read({"id": ids, **nodes}, {"source": ["n0"], "target": ["n1"]})
    return [tuple(leak) for leak in graph.summary.leaks]


def test_a_number_whose_ranges_tell_the_label_leaks():
    """A balance that is zero after the customer left: many values, one threshold."""
    rng = np.random.default_rng(0)
    label = (rng.random(300) < 0.3).astype(int)
    balance = np.where(label, rng.random(300), 2 + 10 * rng.random(300))
    good = label + rng.normal(0, 0.6, 300)  # about 80 % right
    columns = {"balance": balance.tolist(), "good": good.tolist(), "label": label.tolist()}
    assert leaks_of(columns) == [("balance", "determines")]


def test_a_date_that_only_one_class_has_leaks():
    rng = np.random.default_rng(0)
    label = (rng.random(200) < 0.2).astype(int)
    days = [f"2020-{1 + i % 12:02}-{1 + i % 28:02}" if c else None for i, c in enumerate(label)]
    assert leaks_of({"left on": days, "label": label.tolist()}) == [("left on", "determines")]


def test_a_column_that_is_filled_only_beside_a_label_leaks():
    rng = np.random.default_rng(0)
    label = [int(rng.integers(2)) if i < 60 else None for i in range(400)]
    review = [float(rng.normal()) if i < 60 else None for i in range(400)]
    other = [float(rng.normal()) if rng.random() < 0.5 else None for i in range(400)]
    columns = {"review": review, "other": other, "label": label}
    assert leaks_of(columns) == [("review", "filled")]


def test_a_few_filled_cells_beside_labels_are_chance():
    label = [i % 2 for i in range(390)] + [None] * 10
    note = [float(i % 7) if 3 <= i < 23 else None for i in range(400)]
    assert leaks_of({"note": note, "label": label}) == []


def test_random_columns_hardly_ever_leak():
    rng = np.random.default_rng(1)
    label = rng.integers(3, size=40).tolist()
    columns = {f"x{j}": rng.normal(size=40).tolist() for j in range(200)}
    assert leaks_of({**columns, "label": label}) == []


def test_a_tree_is_fitted_only_where_ranges_may_tell_the_label():
    """The quick bound never excludes what a tree would find."""
    random = np.random.default_rng(0)
    for n in (50, 200):
        codes = np.arange(n) % 2
        random.shuffle(codes)
        assert not _may_separate(random.normal(size=n), codes, codes, 4)
        wrong = codes.copy()
        wrong[random.permutation(n)[: int(_most_errors(codes))]] ^= 1
        for told in (codes, wrong):
            numbers = told + random.random(n) / 2
            assert _may_separate(numbers, codes, codes, 4)
            assert _may_separate(np.round(numbers), codes, codes, 4)


def test_many_small_classes_need_no_tree(monkeypatch):
    monkeypatch.setattr("sklearn.tree.DecisionTreeClassifier", None)
    codes = np.arange(400) % 200
    assert not _may_separate(codes + 0.5, codes, codes, 400)
    few = np.arange(400) // 200
    assert _may_separate(few + 0.5, few, few, 4)
