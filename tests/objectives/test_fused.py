"""The compiled kernels give what the terms' torch operations give, one by one: values, gradients and second derivatives."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from everynode.datasets import generate
from everynode.graph import Graph, Split
from everynode.graph.sample import Sample
from everynode.objectives import ENC, CrossEntropy, MutualInformation, TotalVariation
from everynode.objectives import fused as module
from everynode.objectives.fused import Fused, Values, fuse
from everynode.training.process_pool import run_many

pytest.importorskip("numba")
ALPHA, BETA = 0.7, 1.9
#: How far the two ways may be apart, relative to the largest number.
CLOSE = {torch.float32: 2e-6, torch.float64: 1e-12}


def make_graph(
    n: int = 9,
    k: int = 3,
    edges: int = 14,
    *,
    weighted: bool = False,
    directed: bool = False,
    seed: int = 0,
) -> Graph:
    rng = np.random.default_rng(seed)
    index = rng.integers(0, n, (2, edges))
    index = index[:, index[0] != index[1]]
    weight = rng.uniform(0.1, 3.0, index.shape[1]) if weighted else None
    labels = [i % k if i < k or i % 4 else -1 for i in range(n)]
    nodes = torch.arange(n)
    split = Split(nodes[: max(1, n // 2)], nodes[n // 2 : n - 1], nodes[n - 1 :])
    return Graph.from_arrays(
        rng.normal(size=(n, 4)),
        index,
        labels,
        splits=[split],
        classes=list(range(k)),
        edge_weight=weight,
        directed=directed,
    )


GRAPHS = {
    "plain": make_graph(),
    "weighted": make_graph(weighted=True),
    "directed": make_graph(directed=True),
    "no edges": make_graph(edges=0),
    "two nodes": make_graph(2, 2, 3),
    "larger": make_graph(300, 7, 900),
}


class Terms:
    """The fused terms of a graph."""

    def __init__(self, graph: Graph, fused: Fused):
        self.sample, self.fused = Sample.of_graph(graph, 0), fused


def terms_of(graph: Graph, *, mi: bool = True, tv: bool = True, lam: float = 2.0) -> Terms:
    return Terms(
        graph,
        Fused(
            CrossEntropy().bind(graph),
            MutualInformation(lam=lam).bind(graph) if mi else None,
            TotalVariation().bind(graph) if tv else None,
        ),
    )


def at_once(logits: Tensor, terms: Terms, alpha: float, beta: float) -> Values:
    return module.at_once(logits, terms.sample, terms.fused, alpha, beta)


def one_by_one(logits: Tensor, terms: Terms, alpha: float, beta: float) -> Values:
    return module.one_by_one(logits, terms.sample, terms.fused, alpha, beta)


def logits_of(
    graph: Graph, dtype: torch.dtype = torch.float64, scale: float = 1.0, seed: int = 0
) -> Tensor:
    values = np.random.default_rng(seed).normal(size=(graph.num_nodes, graph.num_classes))
    return (torch.from_numpy(values) * scale).to(dtype).requires_grad_()


def assert_same(logits: Tensor, terms: Terms, factor: float = 1.0) -> None:
    """Each value, and the gradient of each."""
    close = CLOSE[logits.dtype]
    both = at_once(logits, terms, ALPHA, BETA), one_by_one(logits, terms, ALPHA, BETA)
    for name, mine, expected in zip(Values._fields, *both, strict=True):
        assert mine.dtype == logits.dtype
        torch.testing.assert_close(
            mine, expected, rtol=close, atol=close, msg=lambda text, name=name: f"{name}: {text}"
        )
        if expected.requires_grad:
            gradients = [
                torch.autograd.grad(factor * value, logits, retain_graph=True)[0]
                for value in (mine, expected)
            ]
            bound = close * max(1 / len(logits), gradients[1].abs().max().item())
            torch.testing.assert_close(
                *gradients,
                rtol=close,
                atol=bound,
                msg=lambda text, name=name: f"gradient of {name}: {text}",
            )


def test_the_kernels_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "one_by_one", None)
    logits = logits_of(GRAPHS["plain"], torch.float32)
    ENC(GRAPHS["plain"], cvg=0)(logits).backward()
    assert logits.grad.abs().max() > 0


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_same(name: str, scale: float, dtype: torch.dtype) -> None:
    """From knowing nothing to certainty."""
    assert_same(logits_of(GRAPHS[name], dtype, scale), terms_of(GRAPHS[name]))


@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 16, 17, 40])
def test_any_number_of_classes(k: int) -> None:
    graph = make_graph(50, k, 120)
    for dtype in CLOSE:
        assert_same(logits_of(graph, dtype, 3.0), terms_of(graph))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 30),
    st.integers(1, 20),
    st.integers(0, 60),
    st.booleans(),
    st.floats(-2, 4),
    st.floats(0, 3),
    st.integers(0, 1000),
)
def test_any_graph(
    n: int, k: int, edges: int, weighted: bool, scale: float, lam: float, seed: int
) -> None:
    graph = make_graph(n, min(n, k), edges, weighted=weighted, seed=seed)
    assert_same(logits_of(graph, scale=10.0**scale, seed=seed), terms_of(graph, lam=lam))


@pytest.mark.parametrize(("mi", "tv"), [(True, False), (False, True), (False, False)])
def test_a_term_that_is_not_there(mi: bool, tv: bool) -> None:
    logits = logits_of(GRAPHS["weighted"])
    assert_same(logits, terms_of(GRAPHS["weighted"], mi=mi, tv=tv))
    if not tv:
        assert at_once(logits, terms_of(GRAPHS["weighted"], mi=mi, tv=tv), ALPHA, 0.0).tv == 0


def test_millions_of_small_numbers_add_up_in_float32() -> None:
    """Both ways: adding them one by one loses a percent or more of the total variation."""
    graph = generate(20_000, 300_000, 4, 30)
    terms, logits = terms_of(graph), logits_of(graph, torch.float32).detach()
    expected = one_by_one(logits.double(), terms_of(graph), ALPHA, BETA)
    for found in (at_once(logits, terms, ALPHA, BETA), one_by_one(logits, terms, ALPHA, BETA)):
        torch.testing.assert_close(
            found, tuple(value.float() for value in expected), rtol=1e-5, atol=0.0
        )


def test_the_gradient_is_scaled_by_what_comes_after() -> None:
    assert_same(logits_of(GRAPHS["plain"]), terms_of(GRAPHS["plain"]), factor=-3.5)


def test_logits_in_another_layout_and_of_a_model() -> None:
    graph, terms = GRAPHS["larger"], terms_of(GRAPHS["larger"])
    given_logits = logits_of(graph)
    for layout in (
        given_logits.T.contiguous().T,
        torch.cat([given_logits, given_logits], 1)[:, : graph.num_classes],
    ):
        assert not layout.is_contiguous()
        logits = layout.detach()
        assert logits.stride() == layout.stride()
        assert_same(logits.requires_grad_(), terms)


def test_equal_neighbors_pull_nowhere() -> None:
    """The difference of two equal products is 0, not the rounding of one of them, whose sign would be anything."""
    n, nodes = 40, torch.arange(40)
    split = Split(nodes[:20], nodes[20:30], nodes[30:])
    ring = Graph.from_arrays(
        None, torch.stack([nodes, (nodes + 1) % n]), [i % 7 for i in range(n)], splits=[split]
    )
    for dtype in CLOSE:
        logits = (
            torch.randn(1, 7, generator=torch.Generator().manual_seed(0))
            .to(dtype)
            .repeat(n, 1)
            .requires_grad_()
        )
        both = [at_once(logits, terms_of(ring), 1.0, beta) for beta in (0.0, 1e3)]
        assert both[0].tv == 0
        assert torch.equal(*(torch.autograd.grad(values.total, logits)[0] for values in both))


def test_an_edge_whose_gate_is_shut() -> None:
    """It must vanish from the operator with both its ends."""
    features = np.zeros((6, 1))
    features[:, 0] = [0, 20, 38, 38.6, 40, 200]  # gates from 1 over subnormal numbers to 0
    index = [[0, 0, 0, 0, 0, 1, 2], [1, 2, 3, 4, 5, 2, 3]]
    nodes = torch.arange(6)
    graph = Graph.from_arrays(
        features, index, [0, 1, 0, 1, 0, 1], splits=[Split(nodes[:3], nodes[3:], nodes[:0])]
    )
    for sigma in (0.05, 0.1, 0.3, 1.0, 10.0):
        double = graph.to(torch.float64)
        term = TotalVariation(sigma=sigma).bind(double)
        operator = term.operator(Sample.of_graph(double, 0), logits_of(double))
        assert set(operator.pattern.crow.diff().tolist()) <= {0, 2}
        fused = Fused(CrossEntropy().bind(double), MutualInformation().bind(double), term)
        assert_same(logits_of(double), Terms(double, fused))


# ---------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", ["plain", "weighted", "directed", "no edges", "two nodes"])
def test_first_and_second_derivatives_of_every_value(name: str) -> None:
    terms, logits = terms_of(GRAPHS[name]), logits_of(GRAPHS[name])
    for position in range(len(Values._fields)):

        def value(x: Tensor, position: int = position) -> Tensor:
            return at_once(x, terms, ALPHA, BETA)[position]

        assert gradcheck(value, [logits])
        assert gradgradcheck(value, [logits])
    assert gradgradcheck(
        lambda x: (lambda v: v.total * v.mi + v.tv**2 * v.ce)(at_once(x, terms, ALPHA, BETA)),
        [logits],
    )


def test_second_derivatives_through_a_model() -> None:
    graph, terms = GRAPHS["plain"], terms_of(GRAPHS["plain"])
    weight = torch.from_numpy(np.random.default_rng(2).normal(size=(4, 3))).requires_grad_()
    assert gradgradcheck(
        lambda w: at_once(torch.tanh(graph.features.double() @ w), terms, ALPHA, BETA).total,
        [weight],
    )


def test_some_values_of_several_at_once_and_twice() -> None:
    terms, logits = terms_of(GRAPHS["plain"]), logits_of(GRAPHS["plain"])
    mine, expected = at_once(logits, terms, ALPHA, BETA), one_by_one(logits, terms, ALPHA, BETA)
    for _ in range(2):
        results = [
            torch.autograd.grad([v.total, v.tv, v.ce], logits, retain_graph=True)[0]
            for v in (mine, expected)
        ]
        torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


def test_the_total_may_be_changed_in_place() -> None:
    logits = logits_of(GRAPHS["plain"])
    values = at_once(logits, terms_of(GRAPHS["plain"]), ALPHA, BETA)
    before = float(values.tv.detach())
    total = values.total
    total += 1.0
    total.backward()
    assert float(values.tv.detach()) == before
    assert logits.grad.isfinite().all()


# ---------------------------------------------------------------- strange numbers


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_large_logits_that_are_close_to_each_other(dtype: torch.dtype) -> None:
    """The largest goes first, and what is left is as exact as for small ones."""
    graph = GRAPHS["larger"]
    small = (
        logits_of(graph, torch.float64).detach() * 64
    ).round() / 64  # so that adding 2^16 is exact in float32
    small, large = small.to(dtype), (small + 2.0**16).to(dtype)
    for mine, expected in zip(
        *(at_once(x, terms_of(graph), ALPHA, BETA) for x in (large, small)), strict=True
    ):
        torch.testing.assert_close(mine, expected, rtol=1e-6, atol=0.0)


def test_nan_is_not_hidden() -> None:
    for at in ((0, 0), (8, 2), (4, 1)):
        logits = logits_of(GRAPHS["plain"]).detach().clone()
        logits[at] = float("nan")
        assert at_once(logits, terms_of(GRAPHS["plain"]), ALPHA, BETA).total.isnan()


def test_a_class_that_is_ruled_out_by_minus_infinity() -> None:
    graph = GRAPHS["plain"]
    logits = logits_of(graph).detach().clone()
    unlabeled = torch.tensor(
        [node for node in range(graph.num_nodes) if node not in graph.nodes("train").tolist()]
    )
    logits[unlabeled, 0] = -float("inf")
    logits.requires_grad_()
    assert_same(logits, terms_of(graph, mi=False))
    value = at_once(logits, terms_of(graph), ALPHA, BETA).total
    assert value.isfinite()
    assert torch.autograd.grad(value, logits)[0].isfinite().all()


def test_no_subnormal_number_in_the_gradient() -> None:
    graph = GRAPHS["larger"]
    for scale in (30.0, 50.0, 80.0):
        logits = logits_of(graph, torch.float32, scale)
        at_once(logits, terms_of(graph), ALPHA, BETA).total.backward()
        size = logits.grad.abs()
        assert not ((size > 0) & (size < torch.finfo(torch.float32).tiny)).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_done_in_single_one_by_one(dtype: torch.dtype) -> None:
    graph = GRAPHS["larger"]
    logits = logits_of(graph, dtype)
    objective = ENC(graph, cvg=0)
    value = objective(logits)
    value.backward()
    expected = objective(logits.detach().float())
    assert value.dtype == torch.float32
    assert logits.grad.dtype == dtype
    torch.testing.assert_close(value, expected, rtol=1e-2, atol=1e-2)


def test_autocast_changes_nothing() -> None:
    logits, terms = logits_of(GRAPHS["larger"], torch.float32), terms_of(GRAPHS["larger"])
    plain = at_once(logits, terms, ALPHA, BETA).total
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(at_once(logits, terms, ALPHA, BETA).total, plain)


# ---------------------------------------------------------------- in ENC


def test_the_objective_is_the_same_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GRAPHS["weighted"].to(torch.float64)
    model = torch.nn.Linear(4, 3).double()
    objective = ENC(graph, mi=0.7, tv=1.9, cvg=0.4, preg=0.2, seed=3)
    other = copy.deepcopy(objective)

    def outcome(objective: ENC) -> tuple[dict[str, Tensor], Tensor]:
        values = objective.breakdown(model(graph.dense_features), model)
        return values, torch.autograd.grad(values["total"], model.weight)[0]

    (values, gradient), _ = (
        outcome(objective),
        monkeypatch.setattr(module, "kernels", lambda dtype: None),
    )
    expected, expected_gradient = outcome(other)
    assert list(values) == list(expected) == ["ce", "mi", "tv", "cvg", "preg", "total"]
    torch.testing.assert_close(values, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-12, atol=1e-12)


def test_weights_that_change_during_training_count() -> None:
    logits, objective = logits_of(GRAPHS["plain"]), ENC(GRAPHS["plain"], mi=1.0, tv=1.0, cvg=0)
    before = objective.breakdown(logits)
    objective.weights["mi"] = 0.0
    after = objective.breakdown(logits)
    assert after["mi"] == before["mi"]
    torch.testing.assert_close(
        after["total"], before["total"] - before["mi"], rtol=1e-12, atol=1e-12
    )


# ---------------------------------------------------------------- processes and limits


def job(number: int, graph: Graph) -> float:
    return ENC(graph, cvg=0)(logits_of(graph, seed=number)).item()


def test_in_forked_workers() -> None:
    graph = GRAPHS["larger"]
    assert dict(run_many(job, [0, 1, 2, 3], graph, workers=2)) == {
        number: job(number, graph) for number in range(4)
    }


@pytest.mark.filterwarnings("error")
def test_a_loss_too_large_for_float32_is_infinite_as_torch_says():
    graph = GRAPHS["plain"]
    logits = (
        torch.full((graph.num_nodes, graph.num_classes), 3e38)
        .scatter_(1, graph.labels.clamp_min(0)[:, None], -3e38)
        .requires_grad_()
    )
    terms = terms_of(graph)
    assert one_by_one(logits, terms, ALPHA, BETA).ce.isinf()
    found = at_once(logits, terms, ALPHA, BETA)
    assert found.ce.isinf()
    assert found.total.isinf()


def test_what_the_terms_are_made_of_may_change_between_steps():
    graph = GRAPHS["larger"]
    objective, logits = ENC(graph, cvg=0), logits_of(graph, torch.float32)
    before = objective(logits)
    objective.share_memory()  # moves the tensors to other memory, as a queue to another process does
    torch.testing.assert_close(objective(logits), before)
    weight = torch.linspace(0.5, 2.0, graph.num_classes, dtype=torch.float64)
    objective.terms["ce"].class_weight = weight
    assert objective(logits) != before
    assert_same(logits, Terms(graph, objective._fused))
    smaller = dataclasses.replace(
        objective._everything,
        labeled=objective._everything.labeled[:3],
        labels=objective._everything.labels[:3],
        label_share=1 / 3,
    )
    assert objective(logits, batch=smaller) != objective(logits)


def test_only_the_exact_types_are_fused():
    class Other(TotalVariation):
        def evaluate(self, step):
            return super().evaluate(step) * 2

    graph = GRAPHS["plain"]
    logits = logits_of(graph)
    assert fuse([CrossEntropy(), Other()]) is None
    assert fuse([MutualInformation(), TotalVariation()]) is None
    assert fuse([CrossEntropy()]) is None
    found = ENC(graph, tv=0, cvg=0, terms=[Other(weight=0.5)]).breakdown(logits)
    expected = ENC(graph, tv=1.0, cvg=0).breakdown(logits)
    torch.testing.assert_close(found["tv"], 2 * expected["tv"], rtol=1e-12, atol=0)
    torch.testing.assert_close(found["total"], expected["total"], rtol=1e-12, atol=0)


def test_a_term_that_is_replaced_is_not_fused():
    graph = GRAPHS["plain"]
    logits, objective = logits_of(graph), ENC(graph, cvg=0, tv=1.0)
    before = objective(logits)
    objective.terms["tv"] = TotalVariation(gate="none").bind(graph)
    expected = ENC(graph, cvg=0, tv=1.0, tv_gate="none")(logits)
    assert before != expected
    torch.testing.assert_close(objective(logits), expected, rtol=1e-12, atol=1e-12)
