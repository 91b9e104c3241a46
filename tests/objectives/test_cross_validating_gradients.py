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
from everynode.objectives.cross_validating_gradients import cross_validating_gradients
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


def test_some_nodes_of_each_half(graph):
    """The shortcut of the network equals autograd on the drawn nodes; every step draws others."""
    from everynode.models import GCN

    model = GCN(4, K, num_layers=2, hidden_channels=16).to(graph.dtype)
    objective = ENC(
        graph, mi=0, tv=0, terms=[CrossValidatingGradients(0.4, nodes=2)], cvg=0, seed=3
    )
    term, sample = objective.terms["cvg"], Sample.of_graph(graph, 0)
    drawn = []
    for _ in range(6):
        one, other = term.partition(sample)
        assert len(one) == len(other) == 2
        assert not set(one.tolist()) & set(other.tolist())
        logits = model(graph)
        value = objective.breakdown(logits, model)["cvg"]
        losses = [
            nn.functional.cross_entropy(logits[half], graph.labels[half]) for half in (one, other)
        ]
        expected = cross_validating_gradients(*losses, list(model.parameters()))
        torch.testing.assert_close(value, expected)
        drawn.append(tuple(sorted([*one.tolist(), *other.tolist()])))
    assert len(set(drawn)) > 1


def test_all_nodes_where_there_are_no_more(graph):
    sample = Sample.of_graph(graph, 0)
    halves = [CrossValidatingGradients(1.0, nodes=n).partition(sample) for n in (0, 4, 100)]
    for one, other in zip(halves[0], halves[2], strict=True):
        assert torch.equal(one, other)
    assert [len(half) for half in halves[1]] == [3, 4]


@pytest.mark.parametrize("halves", ["random", "stratified", "fixed"])
def test_stratified_draws_keep_the_shares_of_the_classes(halves):
    labels = torch.arange(3).repeat_interleave(40)
    nodes = torch.arange(120)
    graph = Graph.from_arrays(
        torch.eye(120), [[0], [1]], labels, splits=[Split(nodes, nodes[:0], nodes[:0])]
    )
    term = CrossValidatingGradients(1.0, nodes=12, halves=halves).bind(graph)
    counts = torch.stack(
        [
            torch.bincount(labels[half], minlength=3)
            for half in term.partition(Sample.of_graph(graph, 0))
        ]
    )
    assert counts.sum(1).tolist() == [12, 12]
    if halves == "stratified":
        assert (counts == 4).all()
