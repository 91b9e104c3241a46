"""Labels that look wrong are left out only where held-out labels gain."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from everynode.datasets import generate
from everynode.evaluation.clean_labels import LEAST_TO_JUDGE, clean_labels


class Counting:
    """Stands for a classifier: it has suspicious nodes, and predicts better or worse without them."""

    def __init__(self, graph, suspicious, gain, taught=None):
        self.graph, self.suspicious, self.gain, self.taught = graph, suspicious, gain, taught
        self.refits = []

    def refit(self, graph, nodes, *, engine=None):
        self.refits.append(set(nodes.tolist()))
        return Counting(graph, self.suspicious, self.gain, set(nodes.tolist()))

    def suspicious_labels(self):
        return [SimpleNamespace(node=i) for i in self.suspicious if i in self.taught]

    def predict_proba(self, graph, nodes):
        y = graph.labels[nodes].numpy()
        wrong = 5 if self.suspicious & self.taught else 5 - self.gain
        y = np.concatenate([(y[:wrong] + 1) % 3, y[wrong:]])
        return np.eye(3)[y]


@pytest.fixture(scope="module")
def graph():
    return generate(200, 400, 4, 3, seed=0)


@pytest.mark.parametrize("gain", [-1, 0, 2])
def test_they_are_left_out_only_if_more_held_out_labels_are_right(graph, gain):
    nodes, suspicious = torch.arange(160), set(range(0, 40))
    model = Counting(graph, suspicious, gain)
    delivered = model.refit(graph, nodes)
    found = clean_labels(model, delivered, graph, nodes)
    _all, first, second, *third = model.refits
    assert first < set(range(160))
    assert second == first - suspicious
    assert (found.judged, found.after - found.before) == (160 - len(first), gain)
    if gain > 0:
        assert third == [set(range(160)) - suspicious]
        assert (found.dropped, found.model.taught) == (40, third[0])
        assert "40 labels that look wrong were left out" in found.sentence
    else:
        assert (found.dropped, found.model, third) == (0, delivered, [])
        assert "No label was left out" in found.sentence


def test_nothing_suspicious_and_too_few_labels_cost_no_more_trainings(graph):
    model = Counting(graph, set(), 2)
    delivered = model.refit(graph, torch.arange(160))
    assert clean_labels(model, delivered, graph, torch.arange(160)).model is delivered
    assert len(model.refits) == 2
    few = torch.arange(4 * LEAST_TO_JUDGE - 1)
    found = clean_labels(model, delivered, graph, few)
    assert (found.model, found.judged, len(model.refits)) == (delivered, 0, 2)
    assert "too few labels" in found.sentence
