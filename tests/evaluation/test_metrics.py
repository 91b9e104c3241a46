"""The metrics against loops written from their definitions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.evaluation.metrics import (
    ECE_BINS,
    METRICS,
    accuracy,
    auc,
    balanced_accuracy,
    confusion,
    expected_calibration_error,
    scores,
)


@st.composite
def predictions(draw):
    """Logits of up to 30 rows and up to 5 classes, and labels; some classes may occur nowhere."""
    n, k = draw(st.integers(1, 30)), draw(st.integers(2, 5))
    value = st.integers(-80, 80).map(
        lambda v: v / 4
    )  # so that what is not equal is not nearly equal either
    logits = draw(st.lists(st.lists(value, min_size=k, max_size=k), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    return torch.tensor(logits), torch.tensor(labels)


def largest(row: list[float]) -> int:
    return max(range(len(row)), key=row.__getitem__)


def slow_ece(probabilities: list[list[float]], labels: list[int], bins: int) -> float:
    """Bin b holds the confidences in ((b - 1) / bins, b / bins]."""
    total = 0.0
    for b in range(1, bins + 1):
        members = [
            i for i, row in enumerate(probabilities) if (b - 1) / bins < max(row) <= b / bins
        ]
        if members:
            right = sum(largest(probabilities[i]) == labels[i] for i in members) / len(members)
            confidence = sum(max(probabilities[i]) for i in members) / len(members)
            total += len(members) / len(labels) * abs(right - confidence)
    return total


@settings(max_examples=60, deadline=None)
@given(predictions())
def test_scores_are_those_of_their_definitions(given_):
    logits, labels = given_
    rows, truth = logits.double().tolist(), labels.tolist()
    predicted = [largest(row) for row in rows]
    probabilities = [
        [math.exp(v - max(row)) / sum(math.exp(w - max(row)) for w in row) for v in row]
        for row in rows
    ]
    found = scores(logits, labels)
    assert found["accuracy"] == pytest.approx(
        sum(p == t for p, t in zip(predicted, truth, strict=True)) / len(truth)
    )
    log_likelihood = [
        row[t] - max(row) - math.log(sum(math.exp(v - max(row)) for v in row))
        for row, t in zip(rows, truth, strict=True)
    ]
    assert found["nll"] == pytest.approx(-sum(log_likelihood) / len(truth), rel=1e-9, abs=1e-12)
    f1 = []
    for c in set(predicted) | set(truth):
        hits = sum(p == t == c for p, t in zip(predicted, truth, strict=True))
        f1.append(2 * hits / (predicted.count(c) + truth.count(c)))
    assert found["macro_f1"] == pytest.approx(sum(f1) / len(f1))
    edges = [abs(max(row) * ECE_BINS - round(max(row) * ECE_BINS)) for row in probabilities]
    if min(edges) > 1e-9:  # at an edge rounding may choose the other bin
        assert found["ece"] == pytest.approx(slow_ece(probabilities, truth, ECE_BINS), abs=1e-12)
    table = [
        [
            sum(t == a and p == b for p, t in zip(predicted, truth, strict=True))
            for b in range(len(rows[0]))
        ]
        for a in range(len(rows[0]))
    ]
    assert confusion(logits, labels) == table


@settings(max_examples=60, deadline=None)
@given(predictions(), st.integers(1, 40))
def test_the_calibration_error_lies_between_overall_gap_and_one(given_, bins):
    logits, labels = given_
    probabilities = torch.softmax(logits.double(), 1)
    ece = expected_calibration_error(probabilities, labels, bins)
    assert 0 <= ece <= 1
    overall = abs(probabilities.max(1).values.mean().item() - accuracy(logits, labels))
    assert ece >= overall - 1e-12
    assert expected_calibration_error(probabilities, labels, 1) == pytest.approx(overall, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(predictions(), st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(given_, rng):
    logits, labels = given_
    order = list(range(len(labels)))
    rng.shuffle(order)
    assert scores(logits[order], labels[order]) == pytest.approx(scores(logits, labels), abs=1e-9)
    assert confusion(logits[order], labels[order]) == confusion(logits, labels)


def sure(share: float, n: int) -> torch.Tensor:
    return torch.tensor([[share, 1 - share]] * n, dtype=torch.float64)


def test_who_is_as_sure_as_right_is_calibrated():
    probabilities = torch.cat([sure(0.75, 8), sure(0.9, 10)])
    labels = torch.tensor([0] * 6 + [1] * 2 + [0] * 9 + [1])
    assert expected_calibration_error(probabilities, labels) == pytest.approx(0.0, abs=1e-12)


def test_errors_in_different_bins_do_not_cancel():
    probabilities = torch.cat([sure(0.6, 10), sure(0.9, 10)])
    labels = torch.tensor([0] * 9 + [1] + [0] * 6 + [1] * 4)  # 0.3 too modest, and 0.3 too sure
    assert expected_calibration_error(probabilities, labels) == pytest.approx(0.3)
    assert expected_calibration_error(probabilities, labels, bins=1) == pytest.approx(
        0.0, abs=1e-12
    )


def test_sure_and_wrong_is_as_bad_as_it_gets():
    assert expected_calibration_error(sure(1.0, 4), torch.ones(4, dtype=torch.long)) == 1.0
    assert expected_calibration_error(sure(1.0, 4), torch.zeros(4, dtype=torch.long)) == 0.0
    assert scores(torch.tensor([[1000.0, -1000.0]]), torch.tensor([1])) == {
        "accuracy": 0.0,
        "macro_f1": 0.0,
        "nll": 2000.0,
        "ece": 1.0,
    }


@pytest.mark.parametrize(("share", "same_bin"), [(0.75, True), (0.75 + 1e-9, False)])
def test_a_bin_holds_its_upper_edge_and_not_its_lower(share, same_bin):
    """Four bins: one row at 0.7 that is right, and one at (or just over) 0.75 that is wrong, cancel only within one bin."""
    probabilities = torch.cat([sure(0.7, 1), sure(share, 1)])
    together = abs((0.7 - 1) + share) / 2
    apart = (abs(0.7 - 1) + share) / 2
    got = expected_calibration_error(probabilities, torch.tensor([0, 1]), bins=4)
    assert got == pytest.approx(together if same_bin else apart)


def test_a_class_that_is_only_predicted_counts_in_macro_f1():
    logits = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert scores(logits, torch.tensor([0, 0, 1, 1]))["macro_f1"] == pytest.approx(
        (1 + 2 / 3 + 0) / 3
    )


def test_confusion_has_a_row_for_every_class():
    assert confusion(torch.tensor([[0.0, 1.0, 0.0]]), torch.tensor([0])) == [
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


def slow_auc(probabilities: list[list[float]], labels: list[int]) -> float:
    """For each class: how often one of its nodes is ranked before a node of another class; a tie is half a win."""
    areas = []
    for c in range(len(probabilities[0])):
        inside = [row[c] for row, label in zip(probabilities, labels, strict=True) if label == c]
        outside = [row[c] for row, label in zip(probabilities, labels, strict=True) if label != c]
        if inside and outside:
            wins = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in inside for b in outside)
            areas.append(wins / (len(inside) * len(outside)))
    return sum(areas) / len(areas) if areas else math.nan


@settings(max_examples=60, deadline=None)
@given(predictions())
def test_the_metrics_of_selection_against_loops(given_):
    logits, labels = given_
    probabilities, truth = torch.softmax(logits.double(), 1).tolist(), labels.tolist()
    assert auc(logits, labels) == pytest.approx(slow_auc(probabilities, truth), nan_ok=True)
    predicted = [largest(row) for row in logits.tolist()]
    found = [
        [p == t for p, t in zip(predicted, truth, strict=True) if t == c]
        for c in sorted(set(truth))
    ]
    assert balanced_accuracy(logits, labels) == pytest.approx(
        sum(sum(hits) / len(hits) for hits in found) / len(found)
    )
    assert METRICS["accuracy"](logits, labels) == scores(logits, labels)["accuracy"]
    assert METRICS["macro_f1"](logits, labels) == scores(logits, labels)["macro_f1"]


def test_the_metrics_of_selection_are_scikit_learns():
    from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

    logits = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(200) % 4 * (torch.arange(200) % 5 > 0)
    predicted, probabilities = logits.argmax(1), torch.softmax(logits.double(), 1)
    assert METRICS["macro_f1"](logits, labels) == pytest.approx(
        f1_score(labels, predicted, average="macro")
    )
    assert METRICS["balanced_accuracy"](logits, labels) == pytest.approx(
        balanced_accuracy_score(labels, predicted)
    )
    assert METRICS["auc"](logits, labels) == pytest.approx(
        roc_auc_score(labels, probabilities, multi_class="ovr")
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_matthews_correlation_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import matthews_corrcoef

    labels, predicted = (torch.tensor(column) for column in zip(*pairs, strict=True))
    value = METRICS["mcc"](torch.eye(3)[predicted], labels)
    assert value == pytest.approx(matthews_corrcoef(labels, predicted), abs=1e-12)
