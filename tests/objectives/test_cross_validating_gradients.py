"""CVG's shortcut, its weight, and several processes. (Its equation is in test_paper_equations.)"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from everynode.errors import UsageError
from everynode.graph import Graph, Split
from everynode.graph.sample import Sample
from everynode.objectives import ENC, CrossValidatingGradients
from everynode.objectives.term import Step

N, K = 12, 3


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(0)
    nodes = torch.arange(N)
    return Graph.from_arrays(
        rng.normal(size=(N, 4)), rng.integers(0, N, (2, 30)), np.arange(N) % K,
        splits=[Split(nodes[:7], nodes[7:9], nodes[9:])],
    )  # fmt: skip


class WithShortcut(nn.Linear):
    """A model that answers by itself, or not at all."""

    answer: float | None = 0.25

    def gradient_cosine(self, logits, nodes, labels, halves, weight=None, shared=None, factor=1.0):
        self.asked = (nodes, labels, halves, factor)
        return None if self.answer is None else logits.sum() * 0 + self.answer * factor


def test_the_shortcut_of_a_model_is_taken_with_the_weight_inside(graph):
    model = WithShortcut(4, K)
    found = ENC(graph, mi=0, tv=0, cvg=0.4).breakdown(model(graph.features), model)
    assert found["cvg"].item() == pytest.approx(-0.25)
    assert (found["total"] - found["ce"]).item() == pytest.approx(-0.1)
    nodes, labels, halves, factor = model.asked
    assert factor == pytest.approx(-0.4)
    assert nodes.tolist() == list(range(7))
    assert torch.equal(labels, graph.labels[:7])
    assert sorted(torch.cat(halves).tolist()) == list(range(7))


def test_a_shortcut_that_gives_up_leaves_the_long_way(graph):
    model = WithShortcut(4, K)
    model.answer = None
    objective, other = ENC(graph, cvg=0.4, seed=1), ENC(graph, cvg=0.4, seed=1)
    found = objective.breakdown(model(graph.features), model)
    expected = other.breakdown(model(graph.features), model.parameters())
    torch.testing.assert_close(found, expected)


def test_over_several_processes_the_long_way_is_refused(graph):
    class Two:
        size = 2

        def add_up(self, tensor):
            return tensor

    model = nn.Linear(4, K)
    step = Step([model(graph.features)], Sample.of_graph(graph, 0), model, Two())
    with pytest.raises(UsageError, match="train in one process, or set cvg=0"):
        CrossValidatingGradients().bind(graph).evaluate(step)
