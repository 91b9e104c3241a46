"""Total variation on parts of a graph, and what it refuses. (Its equation is in test_paper_equations.)"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.sample import Sample
from everynode.objectives import TotalVariation, total_variation
from everynode.settings import declarations


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(0)
    return Graph.from_arrays(
        rng.normal(size=(12, 4)), rng.integers(0, 12, (2, 30)), np.arange(12) % 3
    )


@pytest.mark.parametrize("gate", declarations()["tv_gate"].choices)
def test_two_halves_of_the_edges_add_up(graph, gate):
    """A sample that is not the full graph takes the other way to the operator."""
    sample = Sample.of_graph(graph)
    term, logits = TotalVariation(gate=gate, sigma=2.0).bind(graph), torch.randn(12, 3).double()
    halves = [
        dataclasses.replace(
            sample,
            graph=None,
            drawn_edges=sample.edges[:, one],
            edge_share=sample.edge_share[one],
            _cache={},
        )
        for one in (slice(None, 9), slice(9, None))
    ]
    found = sum(term(logits, half) for half in halves)
    double = graph.to(torch.float64)
    torch.testing.assert_close(found, total_variation(logits, double, gate=gate, sigma=2.0))


def test_what_the_gate_needs(graph):
    sample = Sample.of_graph(graph)
    with pytest.raises(UsageError, match=r"call bind\(graph\) first"):
        TotalVariation(gate="standardized")(torch.zeros(12, 3), sample)
    bare = dataclasses.replace(sample, graph=None, features=None, _cache={})
    with pytest.raises(UsageError, match="needs the features of the sample"):
        TotalVariation()(torch.zeros(12, 3), bare)
    assert TotalVariation(gate="none")(torch.zeros(12, 3), bare).isfinite()
