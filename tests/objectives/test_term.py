"""A term of one's own: right for the full graph and for mini-batches, and refused in one sentence where it cannot be."""

from __future__ import annotations

import copy
import inspect
import math
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import Tensor

from everynode import ENC, Graph, NeighborLoader, Split, Term, UsageError, plugins
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.graph.sample import Sample
from everynode.objectives.term import Step
from everynode.settings import TERMS, Settings, declarations
from everynode.training import train
from everynode.training.distributed import Ranks
from everynode.training.mini_batch.work import Batched

N, K = 24, 3


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    nodes = torch.from_numpy(rng.permutation(N))
    return Graph.from_arrays(
        rng.normal(size=(N, 4)), rng.integers(0, N, (2, 50)), np.arange(N) % K,
        splits=[Split(nodes[:8], nodes[8:14], nodes[14:])], edge_weight=rng.integers(1, 8, 50) / 4,
    ).to(torch.float64)  # fmt: skip


def draw(seed: int = 0) -> Tensor:
    return torch.from_numpy(2 * np.random.default_rng(seed).normal(size=(N, K))).requires_grad_()


class Mixed(Term):
    """A made-up term with a part of every kind: nodes, labeled nodes, and edges."""

    name = "mixed"
    default_weight = 0.4
    needs = frozenset({"edges"})

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        y = torch.softmax(logits, 1)
        i, j = sample.edges
        of_nodes = sample.mean_over_nodes(y.square().sum(1) * sample.scale)
        of_labeled = sample.mean_over_labeled(1 - y[sample.labeled, sample.labels])
        return of_nodes + of_labeled + sample.mean_over_edges((y[i] - y[j]).square().sum(1))


def loop(logits: Tensor, graph: Graph) -> float:
    """The same, number by number, from the graph alone."""
    y = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in logits.tolist()]
    edges, weights = graph.undirected_edges
    pairs = list(zip(*edges.tolist(), weights.tolist(), strict=True))
    degree = [sum(w for i, j, w in pairs if node in (i, j)) for node in range(N)]
    of_nodes = sum(sum(v * v for v in y[i]) / math.sqrt(degree[i] + 1) for i in range(N)) / N
    train = graph.splits[0].train.tolist()
    of_labeled = sum(1 - y[i][int(graph.labels[i])] for i in train) / len(train)
    of_edges = 0.0
    for i, j, w in pairs:
        of_edges += w * sum((a - b) ** 2 for a, b in zip(y[i], y[j], strict=True)) / len(pairs)
    return of_nodes + of_labeled + of_edges


def test_in_the_full_batch_it_is_its_formula(graph):
    logits = draw()
    found = ENC(graph, mi=0.3, tv=1.0, cvg=0, terms=[Mixed()]).breakdown(logits)
    plain = ENC(graph, mi=0.3, tv=1.0, cvg=0).breakdown(logits)
    assert list(found) == ["ce", "mi", "tv", "mixed", "total"]
    assert found["mixed"].item() == pytest.approx(loop(logits, graph), rel=1e-12)
    torch.testing.assert_close(found["total"], plain["total"] + 0.4 * found["mixed"])
    assert torch.autograd.gradcheck(ENC(graph, cvg=0, terms=[Mixed()]), [logits])
    assert torch.autograd.gradgradcheck(ENC(graph, cvg=0, terms=[Mixed()]), [logits])


@pytest.mark.parametrize("clusters", [None, 3])
def test_over_the_mini_batches_of_an_epoch_its_mean_is_its_formula(graph, clusters):
    logits = draw()
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[Mixed(weight=2.0)])
    expected = loop(logits, graph)
    (gradient,) = torch.autograd.grad(objective(logits), logits)
    values, total = [], 0.0
    loader = NeighborLoader(graph, [1], batch_size=12, tv_edges=-1, clusters=clusters)
    assert len(loader) > 1
    for batch in loader:
        found = objective.breakdown(logits[batch.n_id], batch=batch)
        values.append(found["mixed"].item())
        total = total + found["total"] / len(loader)
    assert min(values) < expected < max(values), "one batch alone is not the whole graph"
    assert np.mean(values) == pytest.approx(expected, rel=1e-12)
    torch.testing.assert_close(torch.autograd.grad(total, logits)[0], gradient)


@pytest.mark.parametrize("terms", [[], [Mixed()]], ids=["ce", "mixed"])
def test_the_samples_of_two_processes_add_up_to_the_step(graph, terms):
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=terms)
    logits = draw()

    def value(size: int, rank: int, ranks: int) -> float:
        batches = Batches(size, (-1,), tv_edges=-1)
        work = Batched(graph, Settings(), batches, fold=0, seed=1, ranks=Ranks(rank, ranks))
        sample, _ = work.draw(0, 0)
        return objective(logits[sample.nodes], batch=sample).item()

    assert value(6, 0, 2) + value(6, 1, 2) == pytest.approx(value(12, 0, 1), rel=1e-12)


def test_the_settings_name_the_terms_of_plugins(graph, monkeypatch):
    monkeypatch.setattr(plugins, "terms", lambda: {"mixed": Mixed})
    objective = ENC.from_settings(graph, Settings(weights={"mixed": 0.7}))
    assert objective.weights["mixed"] == 0.7
    assert isinstance(objective.terms["mixed"], Mixed)
    with pytest.raises(UsageError, match=r"Unknown term 'mixd' \(did you mean 'mixed'"):
        ENC(graph, weights={"mixd": 1.0})


def test_of_two_passes_it_is_the_mean(graph):
    a, b = draw(1), draw(2)
    found = ENC(graph, mi=0, tv=0, cvg=0, consistency=0.1, terms=[Mixed()]).breakdown((a, b))
    assert found["mixed"].item() == pytest.approx((loop(a, graph) + loop(b, graph)) / 2, rel=1e-12)


class Whole(Term):
    """A made-up term that cannot be estimated from a part of the graph."""

    name = "whole"
    needs = frozenset({"every_node"})

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        return logits.max()


@pytest.mark.parametrize(
    ("options", "name"),
    [({"preg": 1.0}, "preg"), ({"prior": 1.0}, "prior"), ({"terms": [Whole()]}, "whole")],
)
def test_what_needs_every_node_refuses_a_part_of_the_graph(graph, options, name):
    objective = ENC(graph, mi=0, tv=0, cvg=0, **options)
    assert objective(draw()).isfinite()
    (batch, *_) = NeighborLoader(graph, [2], batch_size=12)
    sentence = (
        f"The term '{name}' needs the predictions of every node at once: "
        f"train on the full graph (no batches), or set {name}=0."
    )
    with pytest.raises(UsageError) as refused:
        objective(draw()[batch.n_id], batch=batch)
    assert str(refused.value) == sentence
    with pytest.raises(UsageError) as refused:
        objective.check_mini_batches()
    assert str(refused.value) == sentence


def test_what_a_term_needs_is_checked_when_it_is_written():
    with pytest.raises(UsageError, match="The 'needs' of Wrong must be a subset of edges, "):

        class Wrong(Term):
            needs = frozenset({"logits"})


def test_a_term_without_a_forward_says_so(graph):
    class Empty(Term):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty needs a forward\(logits, sample\)"):
        ENC(graph, cvg=0, terms=[Empty()])(draw())


def test_names(graph):
    class NoName(Mixed):
        name = ""

    assert "noname" in ENC(graph, terms=[NoName()]).terms
    with pytest.raises(UsageError, match="two terms named 'mixed': set mixed=0, or rename"):
        ENC(graph, terms=[Mixed(), Mixed()])
    with pytest.raises(UsageError, match=r"must be everynode.Term objects. Got a Linear"):
        ENC(graph, terms=[torch.nn.Linear(2, 2)])
    with pytest.raises(UsageError, match=r"The 'weight' of Mixed must be >= 0. Got -1"):
        Mixed(weight=-1)


@pytest.mark.parametrize("name", TERMS)
def test_every_declared_term_is_the_one_that_it_says(graph, name):
    objective = ENC(graph, **{term: float(term == name) for term in TERMS})
    term = objective.terms[name]
    where = f"{type(term).__module__}:{type(term).__name__}"
    assert (term.name, where) == (name, declarations()[name].term)
    assert list(objective.weights) == ["ce", name]
    assert copy.deepcopy(objective).terms[name] is not term


@pytest.mark.parametrize("name", TERMS)
def test_a_term_by_itself_has_the_defaults_of_the_settings(name):
    module, _, cls = declarations()[name].term.partition(":")
    term, settings = getattr(import_module(module), cls), Settings()
    assert term().weight == (getattr(settings, name) or Term.default_weight)
    parameters = inspect.signature(term).parameters
    for setting, declared in declarations().items():
        if declared.of_term == name:
            assert parameters[declared.option].default == getattr(settings, setting)


def test_a_first_look_without_gradient_does_not_cut_off_the_other_terms(graph):
    logits = draw()
    step = Step([logits], Sample.of_graph(graph, 0))
    with torch.no_grad():
        assert step.log_y[0].requires_grad
        assert not Step([logits], Sample.of_graph(graph, 0)).log_y[0].requires_grad


class ReadsEdges(Term):
    """A term that does not say that it needs edges."""

    name = "reads_edges"

    def forward(self, logits, sample):
        source, target = sample.edges
        return (logits[source] - logits[target]).abs().mean()


def test_edges_that_were_not_drawn_are_refused_not_empty(monkeypatch) -> None:
    """Without edges the term would be 0 at every step, without a word."""
    monkeypatch.setattr(plugins, "_registered", {})
    graph = generate(120, 300, 8, 3)
    plugins.register_term(ReadsEdges())
    settings = Settings(weights={"reads_edges": 1.0}, epochs=1).for_objective("reads_edges")
    assert train(graph, settings).history["reads_edges"][0] > 0
    with pytest.raises(UsageError, match='add "edges" to the `needs`'):
        train(graph, settings, batches=Batches(32))


class Vector(Term):
    """A term that forgets to take the mean."""

    name = "vector"

    def forward(self, logits, sample):
        return logits.sum(1)


def test_a_term_must_be_a_single_number() -> None:
    graph = generate(20, 40, 8, 3)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[Vector()])
    with pytest.raises(UsageError, match=r"'vector' must return a single number. Got .*\(20,\)"):
        objective(torch.zeros(20, 3))
