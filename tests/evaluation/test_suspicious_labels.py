"""Confident learning: its definition in slow loops, and flipped labels that it finds."""

from __future__ import annotations

import csv

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.evaluation.held_out_labels import HeldOutLabels
from everynode.evaluation.suspicious_labels import (
    confident_classes,
    label_issues,
    suspicious_csv,
    suspicious_labels,
)


def slow_issues(p: list[list[float]], labels: list[int]) -> list[tuple[int, int]]:
    """Nodes off the diagonal of the confident joint, by normalized margin, with their class."""
    k = len(p[0])
    thresholds: list[float] = []
    for j in range(k):
        own = [row[j] for row, y in zip(p, labels, strict=True) if y == j]
        thresholds.append(max(sum(own) / len(own), 2e-6) if own else 2.0)
    found = []
    for i, (row, y) in enumerate(zip(p, labels, strict=True)):
        reached = [j for j in range(k) if row[j] >= thresholds[j] - 1e-6]
        if not reached or row[y] >= max(row) - 1e-6:
            continue
        guess = max(reached, key=lambda j: row[j])
        if guess != y:
            others = max(value for j, value in enumerate(row) if j != y)
            found.append(((row[y] - others + 1) / 2, i, guess))
    return [(i, guess) for _, i, guess in sorted(found)]


@st.composite
def answers(draw):
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 4))
    rows = st.lists(st.integers(1, 1000), min_size=k, max_size=k)
    p = torch.tensor(draw(st.lists(rows, min_size=n, max_size=n)), dtype=torch.float64)
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return p / p.sum(1, keepdim=True), torch.tensor(labels)


@settings(max_examples=100, deadline=None)
@given(answers())
def test_it_is_the_definition(drawn):
    p, labels = drawn
    rows, guess = label_issues(p, labels)
    found = list(zip(rows.tolist(), guess.tolist(), strict=True))
    assert found == slow_issues(p.tolist(), labels.tolist())


def test_a_class_without_labels_is_never_suggested():
    p = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.4, 0.0], [0.2, 0.8, 0.0]])
    assert 2 not in confident_classes(p, torch.tensor([0, 0, 1])).tolist()


def test_flipped_labels_come_first_with_names_and_the_true_class():
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(300) % 3
    logits = 4 * torch.nn.functional.one_hot(truth, 3) + torch.randn(300, 3, generator=generator)
    labels = truth.clone()
    labels[:30] = (truth[:30] + 1) % 3
    kept = HeldOutLabels(
        torch.arange(300) + 5, tuple(f"n{i}" for i in range(300)), labels,
        torch.log_softmax(logits.double(), 1), 1.0,
    )  # fmt: skip
    rows = suspicious_labels(kept, ["red", "green", "blue"])
    first = rows[:25]
    assert sum(row.node < 35 for row in first) >= 24
    assert all(row.id == f"n{row.node - 5}" and row.label != row.suggested for row in rows)
    assert [row.margin for row in rows] == sorted(row.margin for row in rows)
    table = list(csv.DictReader(suspicious_csv(rows).splitlines()))
    assert [row["id"] for row in table] == [row.id for row in rows]
    assert table[0]["suggested"] == rows[0].suggested
