"""Batches against the whole graph: where they should be exact they are, and elsewhere right on average."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from everynode.backbones import BACKBONES, Network
from everynode.graph import Graph
from everynode.objectives import ENC
from everynode.objectives.mutual_information import mutual_information
from everynode.settings import Batches, Settings
from everynode.training.batches.inference import infer
from everynode.training.batches.objective import BatchENC
from everynode.training.batches.ranks import Ranks
from everynode.training.batches.sampler import Sampler
from everynode.training.batches.work import Batched

ALL = Batches(16, (-1,), tv_edges=-1)
EXACT = Settings(channels=5, layers=2, dropout=0.0, layer_dropout=0.0, cvg=0.0, mi=0.7, tv=2.0, mi_lambda=1.5)


def shaken(network: Network) -> Network:
    """Away from the identity that the layers start from."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return network


def batched(graph: Graph, settings: Settings, batches: Batches = ALL) -> Batched:
    work = Batched(graph, settings, batches, fold=0, seed=3, ranks=Ranks())
    shaken(work.network)
    return work


def gradient(loss: torch.Tensor, network: Network) -> torch.Tensor:
    parts = torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)
    return torch.cat([part.reshape(-1) for part in parts])


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("input", ["row", "raw"])
def test_all_neighbours_give_the_logits_of_the_whole_graph(graph, backbone, input):
    network = shaken(Network(graph.num_features, 4, backbone=backbone, layers=3, channels=5, input=input).double()).eval()
    roots = np.random.default_rng(1).permutation(graph.num_nodes)[:9]
    with torch.no_grad():
        expected = network(graph)[torch.from_numpy(roots)]
        batch = Sampler(graph).batch(roots, [-1, -1, -1], np.random.default_rng(0))
        assert batch.hops[0].looped_adjacency.shape[0] < graph.num_nodes, "or nothing was left out"
        torch.testing.assert_close(network(batch), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_inference_in_blocks_is_that_of_the_whole_graph(graph, backbone):
    network = shaken(Network(graph.num_features, 4, backbone=backbone, layers=3, channels=5).double())
    nodes = torch.tensor([40, 3, 59, 3, 17])
    with torch.no_grad():
        expected = network.eval()(graph)
    torch.testing.assert_close(infer(network, graph, nodes, block=7), expected[nodes], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(infer(network, graph, torch.arange(60)), expected, rtol=1e-12, atol=1e-12)
    assert infer(network, graph, torch.arange(0)).shape == (0, 4)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_layers_sum_is_right_on_average(backbone):
    """One node with many neighbours, every set of two of which is as likely: the mean over many draws against the whole sum."""
    from everynode.neighbours import Neighbours

    star = Neighbours.of_edges(np.stack([np.zeros(6, np.int64), np.arange(1, 7)]), 7)
    rng = np.random.default_rng(0)
    counted = np.zeros(7)
    pairs = set()
    for _ in range(3000):
        drawn = star.draw(np.array([0]), 2, rng)
        assert len(set(drawn.nodes.tolist())) == 2
        pairs.add(tuple(sorted(drawn.nodes.tolist())))
        counted += np.bincount(drawn.nodes, drawn.weight, 7)
    assert len(pairs) == 15
    np.testing.assert_allclose(counted[1:] / 3000, 1.0, atol=0.12)  # six standard deviations


def test_the_layers_operator_is_that_of_the_graph_on_average(graph):
    sampler, roots = Sampler(graph), np.arange(graph.num_nodes)
    rng = np.random.default_rng(2)
    mean = torch.zeros(60, 60, dtype=torch.float64)
    for _ in range(1500):
        (hop,) = sampler.batch(roots, [2], rng).hops
        mean += hop.gcn_operator.to_dense() / 1500
    expected = graph.gcn_operator.to_dense()
    assert (mean - expected).abs().max() < 0.08
    assert (mean.sum(1) - expected.sum(1)).abs().max() < 0.1
    torch.testing.assert_close(mean.diag(), expected.diag())


@pytest.mark.parametrize("gate", ["raw", "row", "standardised", "none"])
def test_the_terms_of_an_epoch_are_those_of_the_graph(graph, gate):
    """CE, TV and MI with the right marginal: value and gradient, averaged over the steps of an epoch."""
    settings = Settings(**{**EXACT.__dict__, "tv_gate": gate})
    work = batched(graph, settings)
    assert work.steps == 2
    assert work.plan.used < len(work.plan.others)
    work = batched(graph, settings, Batches(60, (-1,), tv_edges=-1))
    work.plan.__init__(graph.nodes("train").numpy(), 60, 60, with_others=True, seed=0)
    whole = ENC(graph, **settings.objective_options())
    logits = work.network.train()(graph)
    expected = whole.breakdown(logits, work.network)
    expected_gradient = gradient(expected["total"], work.network)
    # Two steps of 7 training nodes and 23 others each.
    work.plan.steps, work.plan.of_labelled, work.plan.of_others = 2, 2.0, 2.0
    found, found_gradient = dict.fromkeys(expected, 0.0), 0.0
    marginal = torch.softmax(logits, 1).mean(0).detach()
    for step in range(2):
        part = work.part(0, step)
        assert len(part.labels) == 7
        work.objective.marginal.copy_(marginal)
        work.objective._carry_on = lambda own, reach: None
        terms = work.objective.breakdown(work.network(part.batch), part, work.network)
        found_gradient = found_gradient + gradient(terms["total"], work.network) / 2
        for name, value in terms.items():
            found[name] += value.item() / 2
    assert found == pytest.approx({name: value.item() for name, value in expected.items()}, abs=1e-12)
    torch.testing.assert_close(found_gradient, expected_gradient, rtol=1e-10, atol=1e-12)
