"""What must hold whatever the logits, the graph and the labels are like: finite numbers, fair halves, one sentence for what is wrong."""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from everynode.errors import DataError, UsageError
from everynode.graph import Graph, Split
from everynode.graph.sample import Sample
from everynode.models import GCN, Network
from everynode.models.names import MODELS, model_class
from everynode.objectives import (
    ENC,
    ClassPrior,
    Consistency,
    CrossEntropy,
    CrossValidatingGradients,
    MutualInformation,
    PReg,
    Term,
    TotalVariation,
    class_prior,
    consistency,
    cross_entropy,
    cross_validating_gradients,
    mutual_information,
    p_reg,
    total_variation,
)
from everynode.objectives.cross_validating_gradients import draw_halves
from everynode.objectives.term import Step
from everynode.settings import declarations

#: The draws of the two halves of CVG.
HALVES = declarations()["halves"].choices
#: The networks of the paper; a model of another kind has tests of its own.
NETWORKS = [name for name in MODELS if issubclass(model_class(name), Network)]

N, K = 12, 3
LABELS = [i % K for i in range(N)]


def make_graph(train: int = 6, edges: bool = True, **options: object) -> Graph:
    nodes = torch.arange(N)
    split = Split(nodes[:train], nodes[train : train + 2], nodes[train + 2 :])
    index = [list(range(N - 1)), [i + 1 for i in range(N - 1)]] if edges else [[], []]
    features = np.random.default_rng(0).normal(size=(N, 5))
    return Graph.from_arrays(
        features, index, options.pop("labels", LABELS), splits=[split], **options
    )


GRAPH = make_graph()


def on(graph: Graph, term: Term, **options: object) -> Callable[[Tensor], Tensor]:
    """The term on the full graph; CVG takes the model too."""
    sample = Sample.of_graph(graph, options.get("fold", 0))
    term.bind(graph, **options)
    return lambda logits, *model: term(logits, sample, *model)


TERMS: dict[str, Callable[[Graph], Callable[[Tensor], Tensor]]] = {
    "ce": lambda graph: on(graph, CrossEntropy()),
    "mi": lambda graph: on(graph, MutualInformation()),
    "tv": lambda graph: on(graph, TotalVariation()),
    "tv, no gate": lambda graph: on(graph, TotalVariation(gate="none")),
    "preg": lambda graph: on(graph, PReg()),
    "prior": lambda graph: on(graph, ClassPrior()),
    "enc without cvg": lambda graph: ENC(graph, cvg=0, preg=1.0),
}


# ---------------------------------------------------------------- confident logits


def confident(scale: float, right: bool) -> Tensor:
    wanted = torch.tensor([label if right else (label + 1) % K for label in LABELS])
    return torch.nn.functional.one_hot(wanted, K).float() * scale


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("scale", [1e3, 1e4])
@pytest.mark.parametrize("name", TERMS)
def test_confident_logits_have_finite_values_and_gradients(
    name: str, scale: float, right: bool
) -> None:
    logits = confident(scale, right).requires_grad_()
    value = TERMS[name](GRAPH)(logits)
    (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
    assert value.isfinite()
    assert gradient.isfinite().all()
    (second,) = torch.autograd.grad(gradient.square().sum() + gradient.sum(), logits)
    assert second.isfinite().all()


def test_what_the_terms_are_for_confident_logits() -> None:
    logits = confident(1e4, right=False)
    assert float(on(GRAPH, CrossEntropy())(logits)) == pytest.approx(1e4)
    assert float(mutual_information(logits, lam=1.0)) == pytest.approx(-np.log(K), rel=1e-6)
    assert float(
        mutual_information(torch.zeros(N, K).index_fill(1, torch.tensor([0]), 1e4), lam=1.0)
    ) == pytest.approx(0.0, abs=1e-6)


def confident_model(scale: float) -> torch.nn.Linear:
    """A linear model whose logits are about ``scale`` apart."""
    model = torch.nn.Linear(5, K)
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(np.random.default_rng(1).normal(size=(K, 5))) * scale)
        model.bias.zero_()
    return model


@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_cvg_of_a_confident_model_is_finite_and_so_are_its_gradients(scale: float) -> None:
    model = confident_model(scale)
    cvg = on(GRAPH, CrossValidatingGradients())(model(GRAPH.dense_features), model)
    cvg.backward()
    assert -1.000001 <= float(cvg.detach()) <= 1.000001
    assert model.weight.grad.isfinite().all()
    assert model.bias.grad.isfinite().all()


@settings(deadline=None, max_examples=60)
@given(gap=st.floats(0, 130), size=st.sampled_from([1.0, 10.0, 100.0]))
def test_cvg_of_logits_on_their_way_to_saturation_has_finite_gradients(
    gap: float, size: float
) -> None:
    """Between certainty (gradient exactly 0) and doubt lies a band of gradients close to float32's least positive number."""
    assert_cvg_is_finite(gap, size)


@pytest.mark.parametrize("gap", [80.0, 85.0, 87.5, 90.0, 91.0, 95.0, 104.0])
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_cvg_with_gradients_close_to_the_least_float(gap: float, size: float) -> None:
    assert_cvg_is_finite(gap, size)


def assert_cvg_is_finite(gap: float, size: float) -> None:
    x = torch.tensor([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]]) * size
    weight = (torch.eye(3, 4) * gap / size).requires_grad_()
    logits, labels = x @ weight.T, torch.tensor([0, 1, 2, 0])
    losses = (cross_entropy(logits, labels, torch.tensor(half)) for half in ([0, 1], [0, 2]))
    cvg = cross_validating_gradients(*losses, [weight])
    cvg.backward()
    assert cvg.isfinite()
    assert weight.grad.isfinite().all()


def test_cvg_is_zero_with_zero_gradients_where_a_gradient_vanishes() -> None:
    for value in (0.0, 1.0):  # both halves saturated; one of them
        weight = torch.ones(K, requires_grad=True)
        logits = torch.stack(
            [
                weight * 1e6,
                weight * torch.tensor([1e6, 0, 0]),
                weight * value,
                weight * torch.tensor([0, value, 0]),
            ]
        )
        saturated = cross_entropy(logits, torch.tensor([0, 0, 0, 1]), torch.tensor([1]))
        other = cross_entropy(logits, torch.tensor([0, 0, 0, 1]), torch.tensor([3]))
        cvg = cross_validating_gradients(saturated, other, [weight])
        assert float(cvg.detach()) == 0.0
        (gradient,) = torch.autograd.grad(cvg, weight)
        assert gradient.tolist() == [0.0] * K


@pytest.mark.parametrize("backbone", NETWORKS)
def test_a_saturated_network_trains_on_without_nan(backbone: str) -> None:
    network = model_class(backbone)(5, K, hidden_channels=8, normalize_features=False)
    with torch.no_grad():
        network.closing.weight.mul_(1e5)
    objective = ENC(GRAPH, mi=1.0, tv=1.0, cvg=1.0, preg=1.0)
    objective(network(GRAPH), network).backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


# ---------------------------------------------------------------- few labels, few edges


def test_one_labeled_node_cannot_be_halved_and_cvg_says_zero() -> None:
    graph, model = make_graph(train=1), confident_model(1.0)
    for halves in HALVES:
        cvg = on(graph, CrossValidatingGradients(halves=halves))(model(graph.dense_features), model)
        assert float(cvg.detach()) == 0.0
    model.zero_grad()
    loss = ENC(graph, cvg=1.0)(model(graph.dense_features), model)
    loss.backward()
    assert model.weight.grad.isfinite().all()
    assert model.weight.grad.abs().max() > 0


@pytest.mark.parametrize("halves", HALVES)
def test_a_class_that_is_missing_from_a_half(halves: str) -> None:
    graph = make_graph(train=3)  # three nodes of three classes: every half misses one at least
    model = confident_model(0.5)
    term, sample = CrossValidatingGradients(halves=halves).bind(graph), Sample.of_graph(graph, 0)
    p_1, p_2 = term.partition(sample)
    assert (len(p_1), len(p_2)) == (1, 2)
    cvg = term(model(graph.dense_features), sample, model)
    cvg.backward()
    assert 0 < abs(float(cvg.detach())) < 1
    assert model.weight.grad.isfinite().all()
    assert model.weight.grad.abs().max() > 0


def test_no_labeled_training_node_is_refused() -> None:
    graph = make_graph(labels=[-1] * 6 + LABELS[6:])
    for build in (CrossEntropy().bind, CrossValidatingGradients().bind, ENC):
        with pytest.raises(
            DataError,
            match=r"^Fold 0 of graph 'graph' has no labeled training node: label a few nodes of each class first\.$",
        ):
            build(graph)


def test_a_graph_without_edges_has_no_variation() -> None:
    graph = make_graph(edges=False)
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for gate in ("none", "raw", "row", "standardized"):
        value = total_variation(logits, graph, gate=gate)
        assert float(value.detach()) == 0.0
        assert torch.autograd.grad(value, logits)[0].abs().max() == 0
    assert float(p_reg(logits, graph).detach()) == 0.0
    assert ENC(graph, cvg=0)(logits).isfinite()


def test_unlabeled_training_nodes_do_not_count() -> None:
    labels = LABELS.copy()
    labels[0] = labels[3] = -1
    graph = make_graph(labels=labels)
    assert Sample.of_graph(graph, 0).labeled.tolist() == [1, 2, 4, 5]
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.cross_entropy(
        logits[[1, 2, 4, 5]], torch.tensor([labels[i] for i in (1, 2, 4, 5)])
    )
    torch.testing.assert_close(on(graph, CrossEntropy())(logits), expected)


def test_a_fold_is_a_fold() -> None:
    folds = [
        Split(torch.tensor(t), torch.tensor([10]), torch.tensor([11]))
        for t in ([0, 1, 2, 3], [4, 5, 6, 7])
    ]
    graph = GRAPH.with_splits(folds)
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0))
    expected = cross_entropy(logits, graph.labels, torch.arange(4, 8))
    torch.testing.assert_close(on(graph, CrossEntropy(), fold=1)(logits), expected)
    objective = ENC(graph, fold=1, cvg=0)
    torch.testing.assert_close(objective.breakdown(logits)["ce"], expected)
    assert objective._everything.labeled.tolist() == [4, 5, 6, 7]
    halves = CrossValidatingGradients().bind(graph, fold=1).partition(Sample.of_graph(graph, 1))
    assert sorted(torch.cat(halves).tolist()) == [4, 5, 6, 7]


# ---------------------------------------------------------------- module = function


@pytest.mark.parametrize("seed", range(3))
def test_a_module_gives_what_its_function_gives(seed: int) -> None:
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(seed))
    pairs = [
        (CrossEntropy(), cross_entropy(logits, GRAPH.labels, GRAPH.nodes("train"))),
        (MutualInformation(), mutual_information(logits)),
        (MutualInformation(lam=0.4), mutual_information(logits, lam=0.4)),
        (TotalVariation(), total_variation(logits, GRAPH)),
        (
            TotalVariation(sigma=1.0, gate="row"),
            total_variation(logits, GRAPH, sigma=1.0, gate="row"),
        ),
        (PReg(), p_reg(logits, GRAPH)),
        (
            ClassPrior(shares=[0.5, 0.25, 0.25]),
            class_prior(logits, torch.tensor([0.5, 0.25, 0.25])),
        ),
    ]
    for term, function in pairs:
        torch.testing.assert_close(on(GRAPH, term)(logits), function, rtol=1e-6, atol=1e-7)
    views, sample = [logits, logits + torch.arange(K)], Sample.of_graph(GRAPH, 0)
    torch.testing.assert_close(
        Consistency(temperature=0.3).bind(GRAPH).evaluate(Step(views, sample)),
        consistency(views, temperature=0.3),
    )
    model = confident_model(0.5)
    term = CrossValidatingGradients().bind(GRAPH, seed=seed)
    logits, (p_1, p_2) = model(GRAPH.dense_features), term.partition(sample)
    halves = [cross_entropy(logits, GRAPH.labels, p) for p in (p_1, p_2)]
    torch.testing.assert_close(
        term(logits, sample, model), cross_validating_gradients(*halves, list(model.parameters()))
    )


def keywords(function: Callable[..., object]) -> dict[str, object]:
    return {
        name: p.default
        for name, p in inspect.signature(function).parameters.items()
        if p.kind is p.KEYWORD_ONLY
    }


# What a term takes beyond its function: where its halves and its shares come from, and when.
MODULE_ONLY = {
    CrossValidatingGradients: {"halves", "every", "nodes"},
    ClassPrior: {"shares"},
    Consistency: {"ramp", "passes"},
}
PAIRS = [
    (class_prior, ClassPrior),
    (consistency, Consistency),
    (cross_entropy, CrossEntropy),
    (mutual_information, MutualInformation),
    (total_variation, TotalVariation),
    (p_reg, PReg),
    (cross_validating_gradients, CrossValidatingGradients),
]


@pytest.mark.parametrize(("function", "module"), PAIRS, ids=lambda f: f.__name__)
def test_function_and_module_have_the_same_keywords_and_defaults(
    function: Callable[..., object], module: type
) -> None:
    extra = MODULE_ONLY.get(module, set())
    of_module = keywords(module)
    assert extra <= of_module.keys()
    assert {name: default for name, default in of_module.items() if name not in extra} == keywords(
        function
    )


def test_the_keywords_that_are_there_at_all() -> None:
    assert keywords(total_variation) == {"sigma": 10.0, "gate": "raw"}
    assert keywords(mutual_information) == {"lam": 0.3}


# ---------------------------------------------------------------- one sentence for what is wrong


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: TotalVariation(sigma=-1),
            "The 'sigma' of TotalVariation must be > 0. Got -1.",
        ),
        (
            lambda: total_variation(torch.zeros(N, K), GRAPH, sigma=0),
            "The 'sigma' of TotalVariation must be > 0. Got 0.",
        ),
        (
            lambda: TotalVariation(sigma=float("nan")),
            "The 'sigma' of TotalVariation must be > 0. Got nan.",
        ),
        (
            lambda: TotalVariation(gate="standardised"),
            "Unknown gate 'standardised' (did you mean 'standardized'?). Choose from: raw, row, standardized, none.",
        ),
        (
            lambda: MutualInformation(lam=-0.5),
            "The 'lam' of MutualInformation must be >= 0. Got -0.5.",
        ),
        (
            lambda: CrossValidatingGradients(halves="stratifed"),
            "Unknown halves 'stratifed' (did you mean 'stratified'?). Choose from: random, stratified, fixed.",
        ),
        (lambda: ENC(GRAPH, mi=-1), "The 'mi' of ENC must be >= 0. Got -1."),
        (lambda: ENC(GRAPH, tv=float("nan")), "The 'tv' of ENC must be >= 0. Got nan."),
        (lambda: ENC(GRAPH, cvg=-0.1), "The 'cvg' of ENC must be >= 0. Got -0.1."),
        (lambda: ENC(GRAPH, preg=-2.0), "The 'preg' of ENC must be >= 0. Got -2.0."),
        (lambda: ENC(GRAPH, tv_sigma=-1), "The 'tv_sigma' of ENC must be > 0. Got -1."),
        (
            lambda: ENC(GRAPH, tv_gate="Raw"),
            "Unknown tv_gate 'Raw' (did you mean 'raw'?). Choose from: raw, row, standardized, none.",
        ),
        (
            lambda: MutualInformation(weight=-1.0),
            "The 'weight' of MutualInformation must be >= 0. Got -1.0.",
        ),
        (lambda: ENC(GRAPH, fold=3), "Graph 'graph' has folds 0 to 0. Got fold 3."),
        (
            lambda: on(GRAPH, CrossValidatingGradients())(torch.zeros(N, K), None),
            "Cross-validating gradients need the model's parameters: call objective(logits, model).",
        ),
        (
            lambda: on(GRAPH, CrossValidatingGradients())(torch.zeros(N, K), []),
            "Cross-validating gradients need a model with trainable parameters; this one has none.",
        ),
    ],
)
def test_bad_parameters(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        build()
    assert str(refused.value) == sentence
    assert refused.value.exit_code == 2


def test_the_function_refuses_what_the_module_refuses() -> None:
    with pytest.raises(UsageError, match="'lam'"):
        mutual_information(torch.zeros(N, K), lam=-0.5)


# ---------------------------------------------------------------- halves


@st.composite
def labeled_nodes(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    labels = draw(st.lists(st.integers(0, 4), min_size=1, max_size=40))
    nodes = draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, unique=True))
    return torch.tensor(sorted(nodes)), torch.tensor(labels)


@settings(deadline=None, max_examples=100)
@given(labeled_nodes(), st.sampled_from(HALVES), st.integers(0, 2**32))
def test_halves_are_a_fair_partition(
    given_nodes: tuple[Tensor, Tensor], halves: str, seed: int
) -> None:
    nodes, labels = given_nodes
    p_1, p_2 = draw_halves(nodes, labels, halves, np.random.default_rng(seed))
    assert not set(p_1.tolist()) & set(p_2.tolist())
    assert sorted(p_1.tolist() + p_2.tolist()) == nodes.tolist()
    assert (len(p_1), len(p_2)) == (len(nodes) // 2, (len(nodes) + 1) // 2)
    if halves == "stratified":
        in_1, in_2 = Counter(labels[p_1].tolist()), Counter(labels[p_2].tolist())
        assert all(abs(in_1[c] - in_2[c]) <= 1 for c in range(5))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**63 - 1), st.integers(1, 5))
def test_fixed_halves_stay_and_the_others_change(seed: int, calls: int) -> None:
    graph = make_graph(train=10)
    model = confident_model(0.3)

    def draws(halves: str) -> list[tuple[int, ...]]:
        term = CrossValidatingGradients(halves=halves).bind(graph, seed=seed)
        sample, found = Sample.of_graph(graph, 0), []
        for _ in range(calls + 6):
            found.append(tuple(sorted(term.partition(sample)[0].tolist())))
            term(model(graph.dense_features), sample, model)
        assert int(term.calls) == calls + 6
        return found

    assert len(set(draws("fixed"))) == 1
    for halves in ("random", "stratified"):
        assert len(set(draws(halves))) > 1
        assert draws(halves) == draws(halves)


def test_looking_at_the_next_halves_does_not_draw_them() -> None:
    term, sample = CrossValidatingGradients().bind(GRAPH), Sample.of_graph(GRAPH, 0)
    for first, second in zip(term.partition(sample), term.partition(sample), strict=True):
        assert torch.equal(first, second)


def test_seeds_differ() -> None:
    graph = make_graph(train=10)
    sample = Sample.of_graph(graph, 0)
    terms = [CrossValidatingGradients().bind(graph, seed=s) for s in range(20)]
    drawn = {tuple(sorted(term.partition(sample)[0].tolist())) for term in terms}
    assert len(drawn) > 10


def test_every_partition_is_equally_likely() -> None:
    nodes, rng = torch.arange(4), np.random.default_rng(0)
    drawn = Counter(
        tuple(sorted(draw_halves(nodes, nodes, "random", rng)[0].tolist())) for _ in range(3000)
    )
    assert set(drawn) == set(itertools.combinations(range(4), 2))
    assert all(abs(count - 500) < 5 * np.sqrt(500) for count in drawn.values())


def test_resumed_training_goes_on_with_the_draws_it_would_have_had() -> None:
    graph, model = make_graph(train=10), confident_model(0.3)
    objective = ENC(graph, halves="random", seed=4)
    for _ in range(3):
        objective(model(graph.dense_features), model)
    resumed = ENC(graph, halves="random", seed=4)
    next_half = lambda objective: objective.terms["cvg"].partition(objective._everything)[0]  # noqa: E731
    assert not torch.equal(next_half(resumed), next_half(objective))
    resumed.load_state_dict(objective.state_dict())
    assert torch.equal(next_half(resumed), next_half(objective))


# ---------------------------------------------------------------- a term switched on changes nothing else


def test_cvg_leaves_the_dropout_stream_and_the_initial_weights_alone() -> None:
    def outputs(cvg: float) -> tuple[list[Tensor], list[Tensor]]:
        torch.manual_seed(11)
        network = GCN(5, K, hidden_channels=8, seed=2)
        objective = ENC(GRAPH, cvg=cvg, seed=2)
        weights = [p.detach().clone() for p in network.parameters()]
        logits = []
        for _ in range(4):  # no step is taken: any difference would come from the random numbers
            logits.append(network(GRAPH))
            objective(logits[-1], network).backward()
        return weights, logits

    (weights, logits), (weights_cvg, logits_cvg) = outputs(0.0), outputs(1.0)
    assert all(map(torch.equal, weights, weights_cvg))
    assert all(map(torch.equal, logits, logits_cvg))
    assert not torch.equal(logits[0], logits[1]), "dropout was on"


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.floats(0.1, 50))
def test_tv_falls_as_the_gate_narrows(seed: int, sigma: float) -> None:
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(seed))
    assume(float(total_variation(logits, GRAPH, gate="none")) > 1e-3)
    narrow, wide, open_ = (
        float(total_variation(logits, GRAPH, **o))
        for o in ({"sigma": sigma}, {"sigma": 2 * sigma}, {"gate": "none"})
    )
    assert 0 <= narrow < wide < open_


def test_every_third_call_only() -> None:
    model = confident_model(0.5)
    term = on(GRAPH, CrossValidatingGradients(every=3))
    always = on(GRAPH, CrossValidatingGradients())
    values = [
        (term(logits, model).item(), always(logits, model).item())
        for logits in [model(GRAPH.dense_features)] * 7
    ]
    assert [sometimes for sometimes, _ in values] == [
        value if call % 3 == 0 else 0.0 for call, (_, value) in enumerate(values)
    ]
    assert all(value != 0.0 for _, value in values)


# ---------------------------------------------------------------- first contact


def test_a_pyg_data_is_told_the_way() -> None:
    with pytest.raises(UsageError, match=r"Graph\.from_pyg"):
        ENC(GRAPH.to_pyg())  # type: ignore[arg-type]


def test_logits_of_some_nodes_only_are_refused() -> None:
    with pytest.raises(UsageError, match="logits of every node"):
        ENC(GRAPH, mi=1.0, tv=0.0, cvg=0.0)(torch.zeros(N - 1, K))


def test_cvg_without_autograd_is_refused() -> None:
    model = confident_model(0.5)
    logits = model(GRAPH.dense_features).detach()
    with pytest.raises(UsageError, match="that autograd can follow"):
        on(GRAPH, CrossValidatingGradients())(logits, model)


def test_a_term_that_is_not_due_can_still_go_backward() -> None:
    model = confident_model(0.5)
    term = on(GRAPH, CrossValidatingGradients(every=2))
    term(model(GRAPH.dense_features), model)
    term(model(GRAPH.dense_features), model).backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_the_objective_moves_and_changes_type_as_a_module_does() -> None:
    import copy

    objective = ENC(GRAPH, mi=1.0, tv=1.0, cvg=0.0, preg=1.0)
    logits = torch.randn(N, K)
    value = objective(logits)
    objective.double()
    assert objective(logits.double()).item() == pytest.approx(value.item(), rel=1e-5)
    assert copy.deepcopy(objective)(logits.double()).item() == pytest.approx(value.item(), rel=1e-5)
    objective.to("meta")
    assert objective._everything.labeled.device.type == "meta"
    assert objective.terms["mi"].marginal.device.type == "meta"
    # logits of another type than the graph's are no reason to fail
    assert ENC(GRAPH, mi=0.0, tv=1.0, cvg=0.0)(logits.double()).dtype == torch.float64


@pytest.mark.parametrize("name", ["tv", "preg"])
def test_no_precision_is_lost_on_the_way_through_less_of_it(name: str) -> None:
    logits = torch.randn(N, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    term = on(GRAPH.to(torch.float64), {"tv": TotalVariation, "preg": PReg}[name]())
    before = term(logits)
    half = term(logits.bfloat16())
    assert half.dtype == torch.float32
    torch.testing.assert_close(half.double(), before, rtol=0.05, atol=0.0)
    assert torch.equal(term(logits), before)


def test_a_class_that_is_ruled_out_adds_no_information_and_no_nan() -> None:
    logits = torch.randn(N, K, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    logits[:, 2] = -torch.inf
    for lam in (0.0, 1.0, 2.0):
        given = logits.clone().requires_grad_()
        torch.testing.assert_close(
            mutual_information(given, lam=lam), mutual_information(logits[:, :2], lam=lam)
        )
        (gradient,) = torch.autograd.grad(mutual_information(given, lam=lam), given)
        assert gradient.isfinite().all()


def test_what_cvg_cannot_follow_is_told_the_way() -> None:
    embedding = torch.nn.Embedding(N, K, sparse=True)
    with pytest.raises(UsageError, match="sparse=False, or pass cvg=0"):
        ENC(GRAPH)(embedding(torch.arange(N)), embedding)
    model = torch.nn.Linear(5, K)
    compiled = torch.compile(model, backend="eager")
    with pytest.raises(UsageError, match="give cvg=0, or do not compile it"):
        ENC(GRAPH)(compiled(GRAPH.dense_features), compiled)
    ENC(GRAPH, cvg=0.0)(compiled(GRAPH.dense_features), compiled).backward()


def test_looking_at_the_objective_on_the_side_draws_nothing() -> None:
    model, objective = torch.nn.Linear(5, K), ENC(GRAPH)
    objective.eval()(model(GRAPH.dense_features), model)
    assert int(objective.terms["cvg"].calls) == 0
    objective.train()(model(GRAPH.dense_features), model)
    assert int(objective.terms["cvg"].calls) == 1


def test_a_seed_is_looked_at_when_it_is_given() -> None:
    with pytest.raises(UsageError, match="'seed'"):
        ENC(GRAPH, seed=-1)
