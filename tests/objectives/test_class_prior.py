"""The class prior against loops written from its equations, and what its estimate is worth where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from everynode import ENC, Graph, UsageError
from everynode.batches import Batches
from everynode.graph import Split
from everynode.graph.sample import Sample
from everynode.objectives import (
    ClassPrior,
    class_prior,
    consistency,
    cross_entropy,
    estimated_shares,
    mutual_information,
)
from everynode.objectives.term import Step
from everynode.settings import Settings
from everynode.training import train

N, K = 9, 3


def draw(seed: int = 0, scale: float = 2.0) -> Tensor:
    return torch.from_numpy(
        scale * np.random.default_rng(seed).normal(size=(N, K))
    ).requires_grad_()


def shares(seed: int) -> Tensor:
    drawn = torch.from_numpy(np.random.default_rng(seed).random(K) + 0.05)
    return drawn / drawn.sum()


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=25)
def test_it_is_the_equation(seed, other):
    logits, p = draw(seed), shares(other)
    y = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in logits.tolist()]
    mean = [sum(row[s] for row in y) / N for s in range(K)]
    value = sum(mean[s] * math.log(mean[s] / p[s].item()) for s in range(K))
    found = class_prior(logits, p)
    assert found.item() == pytest.approx(value, rel=1e-9, abs=1e-12)
    (gradient,) = torch.autograd.grad(found, logits)
    for i in range(N):  # dL / dm_s = log (m_s / p_s) + 1, dm_s / dz_ir = y_is (1[r = s] - y_ir) / n
        for r in range(K):
            expected = sum(
                (math.log(mean[s] / p[s].item()) + 1) * y[i][s] * ((r == s) - y[i][r]) / N
                for s in range(K)
            )
            assert gradient[i, r].item() == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 10_000))
def test_it_is_least_where_the_mean_is_the_prior(seed):
    logits = draw(seed).detach()
    mean = torch.softmax(logits, 1).mean(0)
    assert class_prior(logits, mean).item() == pytest.approx(0.0, abs=1e-12)
    assert class_prior(logits, shares(seed + 1)).item() >= 0.0


@given(st.integers(0, 10_000))
def test_with_equal_shares_it_is_what_lambda_multiplies_in_mi_but_for_a_constant(seed):
    logits = draw(seed)
    found = class_prior(logits, torch.full((K,), 1 / K, dtype=torch.float64))
    expected = (
        mutual_information(logits, lam=1.0) - mutual_information(logits, lam=0.0) + math.log(K)
    )
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)


def test_gradients():
    logits, p = draw(5), shares(6)
    assert torch.autograd.gradcheck(lambda z: class_prior(z, p), [logits])
    assert torch.autograd.gradgradcheck(lambda z: class_prior(z, p), [logits])


def test_a_class_that_nobody_predicts_stays_finite():
    logits = torch.tensor([[1000.0, 0.0]], requires_grad=True)
    found = class_prior(logits, torch.tensor([0.5, 0.5]))
    assert math.isfinite(found.item())
    assert torch.isfinite(torch.autograd.grad(found, logits)[0]).all()


# At 0.5 two swapped classes would look the same, and nothing could tell them apart.
@given(st.integers(0, 10_000), st.floats(0.6, 1.0))
@settings(deadline=None)  # the first call loads LAPACK
def test_the_estimate_finds_the_shares_from_any_confusion_that_tells_classes_apart(seed, sure):
    rng = np.random.default_rng(seed)
    columns = torch.from_numpy(
        rng.dirichlet(np.ones(K), size=K).T
    )  # each column: what is predicted of a class
    confusion = sure * torch.eye(K, dtype=torch.float64) + (1 - sure) * columns
    p = 0.7 * shares(seed) + 0.1  # no class so small that the floor matters
    found = estimated_shares(confusion, confusion @ p, torch.full((K,), 100_000))
    torch.testing.assert_close(found, p, atol=1e-3, rtol=0)
    # With few nodes to go by it is between what is predicted and that.
    few = estimated_shares(confusion, confusion @ p, torch.full((K,), 2))
    assert (few - confusion @ p).norm() <= (p - confusion @ p).norm() + 1e-9


def test_a_network_that_cannot_tell_classes_apart_has_nothing_to_say():
    predicted = torch.tensor([0.5, 0.3, 0.2])
    torch.testing.assert_close(
        estimated_shares(predicted[:, None].expand(K, K).clone(), predicted, torch.full((K,), 10)),
        predicted,
    )


def test_a_class_of_which_no_node_is_known_keeps_what_is_predicted_of_it():
    confusion = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.7, 0.0], [0.1, 0.1, 1.0]])
    predicted = torch.tensor([0.5, 0.3, 0.2])
    found = estimated_shares(confusion, predicted, torch.tensor([400, 400, 0]))
    assert found[2].item() == pytest.approx(0.2)
    assert found.sum().item() == pytest.approx(1.0)
    assert (found[0] / found[1]).item() == pytest.approx(0.537 / 0.352, rel=0.01), (
        "the first two are told from each other as before"
    )
    torch.testing.assert_close(estimated_shares(confusion, predicted, torch.zeros(3)), predicted)


def test_no_share_is_next_to_nothing():
    found = estimated_shares(
        torch.tensor([[0.6, 0.5], [0.4, 0.5]]), torch.tensor([0.3, 0.7]), torch.full((2,), 100_000)
    )
    assert found.min() >= 0.1 / 2 / 1.1


# ---------------------------------------------------------------- on a graph


def value(term: ClassPrior, graph: Graph, *passes: Tensor) -> Tensor:
    return term.evaluate(Step(passes, Sample.of_graph(graph, 0)))


@pytest.fixture
def graph() -> Graph:
    """Labels with as many of each class; nodes, six, two and one. One class has no validation node."""
    nodes = torch.arange(N)
    return Graph.from_arrays(
        np.random.default_rng(3).normal(size=(N, 4)), [[0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8]], [0, 0, 0, 0, 0, 0, 1, 1, 2],
        splits=[Split(nodes[[0, 6, 8]], nodes[[1, 2, 7]], nodes[[3, 4, 5]])],
    ).to(torch.float64)  # fmt: skip


def test_the_estimate_is_that_of_running_means_of_the_confusions_and_the_predictions(graph):
    term = ClassPrior().bind(graph)
    others = [i for i in range(N) if i not in (0, 6, 8)]
    confusion, mean = [[float(r == s) for s in range(K)] for r in range(K)], [1 / K] * K
    for step in range(15):
        logits = draw(step)
        found = value(term, graph, logits)
        y = torch.softmax(logits, 1).tolist()
        rate = max(0.1, 1 / (step + 1))
        for r in range(K):
            now = [(y[1][r] + y[2][r]) / 2, y[7][r], 0.0]
            confusion[r] = [
                (1 - rate) * a + rate * b for a, b in zip(confusion[r], now, strict=True)
            ]
            mean[r] = (1 - rate) * mean[r] + rate * sum(y[i][r] for i in others) / len(others)
        of_others = estimated_shares(
            torch.tensor(confusion).double(), torch.tensor(mean).double(), torch.tensor([2, 1, 0])
        )
        p = (of_others * 6 + 1) / 9  # and one training node of each class
        torch.testing.assert_close(term.estimate(), p)
        assert found.item() == pytest.approx(class_prior(logits, p).item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_may_be_cast_with_the_rest_of_the_objective(graph, dtype):
    objective = ENC(graph, mi=0, tv=0, cvg=0, prior=1.0).to(dtype)
    assert math.isfinite(objective(draw(1).to(dtype)).item())


def test_a_step_that_came_to_nothing_leaves_the_estimate_alone(graph):
    term = ClassPrior().bind(graph)
    value(term, graph, draw(1))
    before = term.estimate()
    value(term, graph, draw(2) * math.nan)
    assert torch.equal(term.estimate(), before)


def test_who_only_looks_does_not_move_the_estimate(graph):
    term = ClassPrior().bind(graph)
    value(term, graph, draw(1))
    before = {name: value.clone() for name, value in term.state_dict().items()}
    value(term.eval(), graph, draw(2))
    assert all(torch.equal(before[name], value) for name, value in term.state_dict().items())


def test_several_passes_are_one_step(graph):
    a, b = draw(1), draw(2)
    term = ClassPrior().bind(graph)
    found = value(term, graph, a, b)
    assert term.steps == 1
    p = term.estimate()
    assert found.item() == pytest.approx((class_prior(a, p) + class_prior(b, p)).item() / 2)


def test_shares_that_are_known_are_taken(graph):
    logits = draw(1)
    term = ClassPrior(2.0, shares=[6, 2, 1])
    found = ENC(graph, mi=0, tv=0, cvg=0, terms=[term]).breakdown(logits)
    expected = class_prior(logits, torch.tensor([6, 2, 1], dtype=torch.float64) / 9)
    torch.testing.assert_close(found["prior"], expected)
    torch.testing.assert_close(found["total"], found["ce"] + 2.0 * expected)


def test_within_enc_beside_consistency(graph):
    views = [draw(1), draw(2)]
    found = ENC(graph, mi=0, tv=0, cvg=0, consistency=0.5, prior=2.0).breakdown(views)
    assert list(found) == ["ce", "consistency", "prior", "total"]
    ce = sum(cross_entropy(view, graph.labels, graph.nodes("train")) for view in views) / 2
    torch.testing.assert_close(found["total"], ce + 0.5 * consistency(views) + 2.0 * found["prior"])


@pytest.mark.parametrize(
    "prior", [[1, 2], [1, 0, 1], [1, -1, 1], [1, math.nan, 1], [math.inf, 1, 1]]
)
def test_shares_that_are_none_are_refused(graph, prior):
    with pytest.raises(UsageError, match="a share above 0 for each of the 3 classes"):
        ClassPrior(shares=prior).bind(graph)


def test_without_validation_nodes_it_has_to_be_given():
    nodes = torch.arange(4)
    graph = Graph.from_arrays(
        torch.eye(4),
        [[0, 1], [1, 2]],
        [0, 0, 1, 1],
        splits=[Split(nodes[:2], nodes[:0], nodes[2:])],
    )
    with pytest.raises(
        UsageError, match=r"terms=\[ClassPrior\(1.0, shares=\[...\]\)\]\), or leave"
    ):
        ENC(graph, prior=1.0)
    ENC(graph, terms=[ClassPrior(1.0, shares=[1, 1])])


def test_not_in_batches(graph):
    with pytest.raises(
        UsageError,
        match="'prior' needs the predictions of every node at once: train on the full graph",
    ):
        train(graph, Settings(prior=1.0, epochs=2), batches=Batches(4))


def test_where_labels_are_equally_many_and_classes_are_not_predictions_follow_the_graph():
    """Three in four nodes are of the first class, the labels are half and half, and features say little."""
    rng = np.random.default_rng(0)
    n = 1200
    labels = (rng.random(n) < 0.25).astype(np.int64)
    x = rng.normal(size=(n, 2)) + np.stack([labels, -labels], axis=1)
    drawn = torch.from_numpy(rng.permutation(n))
    labeled = torch.cat([drawn[torch.from_numpy(labels)[drawn] == c][:10] for c in (0, 1)])
    rest = drawn[~torch.isin(drawn, labeled)]
    # Validation nodes half and half as well: their shares would mislead, their confusions do not.
    val = torch.cat([rest[torch.from_numpy(labels)[rest] == c][:100] for c in (0, 1)])
    test = rest[~torch.isin(rest, val)]
    graph = Graph.from_arrays(
        x.astype(np.float32), [[0], [1]], labels, splits=[Split(labeled, val, test)]
    )
    share, right = {}, {}
    for name, weight in (("without", 0.0), ("with", 3.0)):
        made = train(
            graph,
            Settings(
                mi=0.0,
                tv=0.0,
                cvg=0.0,
                prior=weight,
                weight_decay=0.0,
                monitor="loss",
                epochs=60,
                patience=60,
            ),
            seed=0,
        )
        with torch.no_grad():
            y = torch.softmax(made.network(graph), 1)
        share[name], right[name] = (
            y.mean(0)[1].item(),
            (y[test].argmax(1) == graph.labels[test]).float().mean().item(),
        )
    assert abs(share["with"] - 0.25) < abs(share["without"] - 0.25) - 0.03, share
    assert right["with"] > right["without"], right
