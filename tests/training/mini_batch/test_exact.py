"""Batches against the whole graph: where they should be exact they are, and elsewhere right on average."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
import torch

from everynode.batches import Batches
from everynode.errors import UsageError
from everynode.graph import Graph
from everynode.graph.neighbors import Neighbors
from everynode.graph.sample import Sample
from everynode.models import Network
from everynode.models.gradient_cosine import SharedHalves
from everynode.models.names import MODELS, model_class
from everynode.objectives import ENC, CrossValidatingGradients, consistency
from everynode.settings import Settings
from everynode.training.distributed import Ranks
from everynode.training.mini_batch.inference import infer
from everynode.training.mini_batch.plan import AtRandom
from everynode.training.mini_batch.sampler import Sampler
from everynode.training.mini_batch.work import Batched
from helpers.layers import WITH_DERIVATIVES

ALL = Batches(16, (-1,), tv_edges=-1)
EXACT = Settings(
    hidden_channels=5,
    num_layers=2,
    dropout=0.0,
    layer_dropout=0.0,
    cvg=0.0,
    mi=0.7,
    tv=2.0,
    mi_lambda=1.5,
)
#: The networks of the paper; a model of another kind has tests of its own.
NETWORKS = [name for name in MODELS if issubclass(model_class(name), Network)]
#: A dropout, which consistency wants, that drops nothing.
SLIGHT = 1e-12


def shaken(network: Network) -> Network:
    """Away from the identity that the layers start from."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(
                parameter.shape, generator=generator, dtype=parameter.dtype
            )
    return network


def batched(graph: Graph, settings: Settings, batches: Batches = ALL) -> Batched:
    work = Batched(graph, settings, batches, fold=0, seed=3, ranks=Ranks())
    shaken(work.network)
    return work


def gradient(loss: torch.Tensor, network: Network) -> torch.Tensor:
    parts = torch.autograd.grad(loss, list(network.parameters()), retain_graph=True)
    return torch.cat([part.reshape(-1) for part in parts])


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("normalize_features", [True, False])
def test_all_neighbors_give_the_logits_of_the_whole_graph(graph, backbone, normalize_features):
    network = shaken(
        model_class(backbone)(
            graph.num_features,
            4,
            num_layers=3,
            hidden_channels=5,
            normalize_features=normalize_features,
        ).double()
    ).eval()
    roots = np.random.default_rng(1).permutation(graph.num_nodes)[:9]
    with torch.no_grad():
        expected = network(graph)[torch.from_numpy(roots)]
        batch = Sampler(graph).batch(roots, [-1, -1, -1], np.random.default_rng(0))
        assert batch.hops[0].looped_adjacency.shape[0] < graph.num_nodes, "or nothing was left out"
        torch.testing.assert_close(network(batch), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backbone", NETWORKS)
def test_inference_in_blocks_is_that_of_the_whole_graph(graph, backbone):
    network = shaken(
        model_class(backbone)(graph.num_features, 4, num_layers=3, hidden_channels=5).double()
    )
    nodes = torch.tensor([40, 3, 59, 3, 17])
    with torch.no_grad():
        expected = network.eval()(graph)
    torch.testing.assert_close(
        infer(network, graph, nodes, block=7), expected[nodes], rtol=1e-12, atol=1e-12
    )
    torch.testing.assert_close(
        infer(network, graph, torch.arange(60)), expected, rtol=1e-12, atol=1e-12
    )
    assert infer(network, graph, torch.arange(0)).shape == (0, 4)


def test_every_set_of_neighbors_is_as_likely():
    star = Neighbors.of_edges(np.stack([np.zeros(6, np.int64), np.arange(1, 7)]), 7)
    rng = np.random.default_rng(0)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(3000):
        drawn = star.draw(np.array([0]), 2, rng)
        assert drawn.weight.tolist() == [3.0, 3.0]
        found[tuple(sorted(drawn.nodes.tolist()))] += 1
    assert len(found) == 15
    assert max(abs(count - 200) for count in found.values()) < 70  # five standard deviations


def test_the_layers_operator_is_that_of_the_graph_on_average(graph):
    sampler, roots = Sampler(graph), np.arange(graph.num_nodes)
    rng = np.random.default_rng(2)
    mean = torch.zeros(60, 60, dtype=torch.float64)
    for _ in range(600):
        (hop,) = sampler.batch(roots, [2], rng).hops
        mean += hop.gcn_operator.to_dense() / 600
    expected = graph.gcn_operator.to_dense()
    assert (mean - expected).abs().max() < 0.12
    assert (mean.sum(1) - expected.sum(1)).abs().max() < 0.12
    torch.testing.assert_close(mean.diag(), expected.diag())


def average(
    work: Batched, steps: list[tuple[int, int]], marginal: torch.Tensor
) -> tuple[dict[str, float], torch.Tensor]:
    """Each term's mean over these (epoch, step), and the mean gradient of the total; with this class marginal in every step."""
    mi = work.objective.terms["mi"]
    mi.update = lambda own, coverage: mi.marginal.copy_(marginal)
    found: dict[str, float] = {}
    mean = torch.zeros(())
    for epoch, step in steps:
        sample, batch = work.draw(epoch, step)
        views = [work.network(batch) for _ in range(work.objective.passes)]
        terms = work.objective.breakdown(views, work.network, sample)
        mean = mean + gradient(terms["total"], work.network) / len(steps)
        for name, value in terms.items():
            found[name] = found.get(name, 0.0) + value.item() / len(steps)
    return found, mean


def whole(
    work: Batched, graph: Graph, settings: Settings
) -> tuple[dict[str, float], torch.Tensor, torch.Tensor]:
    """The same of the whole graph, and its class marginal."""
    logits = work.network.train()(graph)
    views = [work.network(graph) for _ in range(work.objective.passes)]
    terms = ENC.from_settings(graph, settings, seed=3).breakdown(views, work.network)
    values = {name: value.item() for name, value in terms.items()}
    return values, gradient(terms["total"], work.network), torch.softmax(logits, 1).mean(0).detach()


@pytest.mark.parametrize("gate", ["raw", "row", "standardized", "none"])
@pytest.mark.parametrize("clusters", [None, 5])
def test_the_mean_over_an_epoch_is_the_graphs(make_graph, kind, gate, clusters):
    """CE, TV, consistency, and MI given the right marginal: value and gradient, to the last digits."""
    graph = make_graph(**kind, train=30)
    settings = dataclasses.replace(
        EXACT,
        tv_gate=gate,
        normalize_features=True,
        class_weight="balanced" if gate == "raw" else None,
    )
    settings = dataclasses.replace(settings, consistency=0.4, dropout=SLIGHT)
    work = batched(graph, settings, dataclasses.replace(ALL, size=30, clusters=clusters))
    assert work.steps == 2
    expected, expected_gradient, marginal = whole(work, graph, settings)
    found, found_gradient = average(work, [(4, 0), (4, 1)], marginal)
    assert found == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(found_gradient, expected_gradient, rtol=1e-9, atol=1e-12)


def test_few_others_and_one_edge_each_are_right_on_average(make_graph):
    """Where seeds and edges are drawn: the mean over many epochs."""
    graph = make_graph(train=14)
    work = batched(graph, EXACT, dataclasses.replace(ALL, size=24, tv_edges=1))
    assert isinstance(work.plan, AtRandom)
    assert (work.steps, work.plan.used) == (2, 34)
    assert work.plan.used < len(work.plan.others)
    expected, expected_gradient, marginal = whole(work, graph, EXACT)
    found, found_gradient = average(
        work, [(epoch, step) for epoch in range(150) for step in range(2)], marginal
    )
    assert found == pytest.approx(expected, rel=0.03)
    assert (found_gradient - expected_gradient).norm() < 0.06 * expected_gradient.norm()
    one, _ = average(work, [(0, 0)], marginal)
    assert one != pytest.approx(expected, rel=0.02), (
        "one step is as good: this test would see nothing"
    )


@pytest.mark.parametrize("backbone", WITH_DERIVATIVES)
def test_a_process_without_training_nodes_has_the_cosine_of_the_others_and_adds_nothing(
    graph, backbone
):
    """Three processes or more may share a step of two training nodes."""
    settings = dataclasses.replace(EXACT, backbone=backbone, cvg=0.6)
    work = batched(graph, settings)
    (sample, batch), network = work.draw(0, 0), work.network.train()
    logits = network(batch)
    one, other = work.objective.terms["cvg"]._positions(sample)
    totals, sent = (len(one), len(other)), list[torch.Tensor]()
    everyone, nobody = sample.labeled, torch.arange(0)
    sending, adding = (
        SharedHalves(totals, lambda both: sent.append(both.clone())),
        SharedHalves(totals, lambda both: both.add_(sent[0])),
    )
    expected = network.gradient_cosine(logits, everyone, sample.labels, (one, other), None, sending)
    found = network.gradient_cosine(
        logits, nobody, sample.labels[:0], (nobody, nobody), None, adding
    )
    assert found.item() == expected.item() != 0
    assert gradient(expected, network).abs().max() > 1e-3
    assert gradient(found + 0.0 * logits.sum(), network).abs().max() == 0


def test_seeds_surroundings_and_halves_are_drawn_from_streams_of_their_own(make_graph, monkeypatch):
    """Numbers of a short seed are padded with zeros: [seed, epoch] and [seed, epoch, 0, 0] are one stream."""
    streams: list[bytes] = []

    class Recorded(np.random.Generator):
        def __init__(self, bits):
            super().__init__(bits)
            streams.append(bits.state["state"]["state"].tobytes())

    settings = dataclasses.replace(EXACT, cvg=0.5)
    works = [
        Batched(make_graph(), settings, Batches(12, (2,)), fold=0, seed=3, ranks=Ranks(rank, 2))
        for rank in range(2)
    ]
    monkeypatch.setattr(np.random, "Generator", Recorded)
    for work in works:
        for epoch, step in ((0, 0), (0, 1), (1, 0), (2, 0)):
            sample, _ = work.draw(epoch, step)
    for _ in range(4):
        cvg = works[0].objective.terms["cvg"]
        cvg._positions(sample)
        cvg.calls += 1
    seeds_of_the_second = 3  # the processes have the same seeds, and nothing else
    assert len(streams) == 2 * (3 + 4) + 4
    assert len(set(streams)) == len(streams) - seeds_of_the_second


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize("halves", ["random", "stratified", "fixed"])
def test_a_step_with_all_nodes_is_the_whole_graphs(make_graph, kind, backbone, halves):
    """All four terms, CVG included, and MI with the step's own marginal."""
    graph = make_graph(**kind)
    class_weight = "balanced" if halves == "random" else None
    settings = dataclasses.replace(
        EXACT,
        backbone=backbone,
        cvg=0.6,
        halves=halves,
        class_weight=class_weight,
        consistency=0.4,
        dropout=SLIGHT,
    )
    work = batched(graph, settings, dataclasses.replace(ALL, size=60))
    assert work.steps == 1
    sample, batch = work.draw(0, 0)
    # The same halves: in a batch the training nodes stand in another order.
    wanted = (
        CrossValidatingGradients(halves=halves)
        .bind(graph, seed=3)
        .partition(Sample.of_graph(graph, 0))
    )
    work.objective.terms["cvg"]._positions = lambda sample: tuple(
        torch.isin(sample.all_labeled, half).nonzero()[:, 0] for half in wanted
    )
    expected, expected_gradient, _ = whole(work, graph, settings)
    work.network.train()
    views = [work.network(batch) for _ in range(work.objective.passes)]
    terms = work.objective.breakdown(views, work.network, sample)
    assert {name: value.item() for name, value in terms.items()} == pytest.approx(
        expected, abs=1e-11
    )
    torch.testing.assert_close(
        gradient(terms["total"], work.network), expected_gradient, rtol=1e-8, atol=1e-11
    )


def test_consistency_of_passes_that_differ(make_graph):
    """Of a step that has all nodes, in another order than the graph's: value and gradient for each pass's logits."""
    graph = make_graph(train=30)
    work = batched(
        graph,
        dataclasses.replace(EXACT, mi=0.0, tv=0.0, consistency=1.0, dropout=SLIGHT),
        dataclasses.replace(ALL, size=60),
    )
    sample, _ = work.draw(0, 0)
    generator = torch.Generator().manual_seed(0)
    views = [
        torch.randn(
            60, graph.num_classes, generator=generator, dtype=torch.float64, requires_grad=True
        )
        for _ in range(2)
    ]
    passes = [view[sample.nodes] for view in views]
    found = work.objective.breakdown(passes, batch=sample)["consistency"]
    expected = consistency(views)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    for got, wanted in zip(
        torch.autograd.grad(found, views), torch.autograd.grad(expected, views), strict=True
    ):
        torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-12)


def test_two_passes_are_one_step_for_the_class_marginal(make_graph):
    graph = make_graph(train=30)
    settings = dataclasses.replace(EXACT, consistency=0.5, dropout=0.5)
    work = batched(graph, settings, dataclasses.replace(ALL, size=30))
    sample, batch = work.draw(0, 0)
    mi = work.objective.terms["mi"]
    mi.steps += 50  # so that the running mean has settled
    before = mi.marginal.clone()
    work.network.train()
    views = [work.network(batch) for _ in range(2)]
    work.objective.breakdown(views, work.network, sample)
    own = torch.stack([torch.softmax(view, 1).T @ sample.node_share for view in views]).mean(0)
    rate = max(0.1, sample.coverage)
    torch.testing.assert_close(mi.marginal, before.lerp(own.detach(), rate))
    assert int(mi.steps) == 51


def test_looking_at_the_objective_on_the_side_changes_nothing(graph):
    work = batched(graph, Settings(hidden_channels=5))
    sample, batch = work.draw(0, 0)
    before = {name: value.clone() for name, value in work.objective.state_dict().items()}
    work.network.train()
    work.objective.eval().breakdown(work.network(batch), work.network, sample)
    assert all(
        torch.equal(value, before[name]) for name, value in work.objective.state_dict().items()
    )
    with torch.no_grad(), pytest.raises(UsageError, match=r"no torch.no_grad"):
        work.objective.breakdown(work.network(batch), work.network, sample)


@pytest.mark.parametrize("wrong", [{"cvg_every": 0}, {"mi_lambda": -1.0}, {"seed": -1}])
def test_bad_parameters_of_batches(graph, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ENC(graph, **wrong)
