"""Mutual information on parts of a graph: the running class marginal. (Its equation is in test_paper_equations.)"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.objectives import MutualInformation

N, K, LAM = 10, 3, 1.7


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_arrays(rng.normal(size=(N, 2)), rng.integers(0, N, (2, 20)), np.arange(N) % K)


def part_of(graph: Graph, rows: slice, coverage: float) -> Sample:
    sample = Sample.of_graph(graph)
    return dataclasses.replace(
        sample, graph=None, nodes=sample.nodes[rows], node_share=2 * sample.node_share[rows],
        coverage=coverage, _cache={},
    )  # fmt: skip


def test_the_running_marginal_is_at_first_the_mean_of_all_steps_and_then_follows(graph):
    term, means = MutualInformation(lam=LAM).bind(graph), []
    expected = torch.zeros(K, dtype=torch.float64)
    for step in range(15):
        logits = torch.randn(5, K, generator=torch.Generator().manual_seed(step)).double()
        term(logits, part_of(graph, slice(0, 5), coverage=0.05))
        means.append(torch.softmax(logits, 1).mean(0))
        expected = torch.lerp(expected, means[-1], max(0.1, 1 / (step + 1)))
        torch.testing.assert_close(term.marginal, expected)
        if step < 10:
            torch.testing.assert_close(term.marginal, torch.stack(means).mean(0))
    assert int(term.steps) == 15


def test_value_and_gradient_are_linear_around_the_running_marginal(graph):
    term = MutualInformation(lam=LAM).bind(graph).eval()
    term.marginal = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    sample = part_of(graph, slice(5, 10), coverage=0.5)
    logits = torch.randn(5, K, dtype=torch.float64, requires_grad=True)
    y = torch.softmax(logits, 1)
    own = y.T @ sample.node_share
    entropy = -(y * y.log()).sum(1) @ sample.node_share
    expected = entropy + LAM * (own @ (term.marginal.log() + 1) - term.marginal.sum())
    found = term(logits, sample)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad(value, logits)[0] for value in (found, expected))
    )
    assert torch.autograd.gradgradcheck(lambda x: term(x, sample), [logits])


def test_a_later_step_does_not_change_the_gradient_of_an_earlier_one(graph):
    """Gradients may be accumulated over several steps before the backward pass."""
    sample = part_of(graph, slice(0, 5), coverage=0.05)
    logits = torch.randn(5, K, dtype=torch.float64, requires_grad=True)
    gradients = []
    for steps in (1, 2):
        term = MutualInformation(lam=LAM).bind(graph)
        first = term(logits, sample)
        if steps == 2:
            term(torch.randn(5, K, dtype=torch.float64), sample)
        gradients.append(torch.autograd.grad(first, logits)[0])
    assert torch.equal(*gradients)


def test_the_full_graph_leaves_the_running_marginal_alone(graph):
    term = MutualInformation().bind(graph)
    term(torch.randn(N, K), Sample.of_graph(graph))
    assert term.marginal.tolist() == [1 / K] * K
    assert int(term.steps) == 0
