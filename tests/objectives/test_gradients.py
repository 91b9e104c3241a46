"""First and second derivatives of every term and of the sparse products, against finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from everynode.graph import Graph, Split
from everynode.graph.sample import Sample
from everynode.objectives import (
    ENC,
    ClassPrior,
    CrossValidatingGradients,
    Term,
    TotalVariation,
    cross_entropy,
    cross_validating_gradients,
    dirichlet_energy,
    graph_gradient,
    mutual_information,
    p_reg,
)
from everynode.objectives.cross_entropy import CrossEntropy
from everynode.sparse import Pattern, SparseMatrix, draw_noise, drop, sddmm, spmm


def make_graph(**options: object) -> Graph:
    rng = np.random.default_rng(3)
    edges = [[0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 3, 5]]  # node 6 is on its own
    weight = [1.0, 0.5, 2.0, 1.5, 1.0, 0.25, 3.0] if options.pop("weighted", False) else None
    split = Split(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([5]), torch.tensor([6]))
    graph = Graph.from_arrays(
        rng.normal(size=(7, 3)),
        edges,
        [0, 1, 2, 0, 1, 2, 0],
        splits=[split],
        edge_weight=weight,
        **options,
    )
    return graph.to(torch.float64)


GRAPHS = {
    "plain": make_graph(),
    "weighted": make_graph(weighted=True),
    "directed": make_graph(directed=True),
}


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    return GRAPHS[request.param]


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).requires_grad_()


def check(function: Callable[..., Tensor], *inputs: Tensor) -> None:
    assert function(*inputs).requires_grad
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def on(graph: Graph, term: Term) -> Callable[[Tensor], Tensor]:
    term.bind(graph)
    return lambda logits: term(logits, Sample.of_graph(graph, 0))


TERMS = {
    "ce": lambda graph: lambda logits: cross_entropy(logits, graph.labels, graph.nodes("train")),
    "ce module": lambda graph: on(graph, CrossEntropy()),
    "mi": lambda graph: lambda logits: mutual_information(logits, lam=2.0),
    "mi, lambda 0.3": lambda graph: lambda logits: mutual_information(logits, lam=0.3),
    "preg": lambda graph: lambda logits: p_reg(logits, graph),
    "prior": lambda graph: on(graph, ClassPrior(shares=[0.5, 0.3, 0.2])),
    "dirichlet": lambda graph: lambda logits: dirichlet_energy(logits, graph),
    "gradient": lambda graph: lambda logits: graph_gradient(logits, graph),
    "tv raw": lambda graph: on(graph, TotalVariation(gate="raw")),
    "tv row": lambda graph: on(graph, TotalVariation(gate="row", sigma=1.0)),
    "tv standardized": lambda graph: on(graph, TotalVariation(gate="standardized", sigma=3.0)),
    "tv none": lambda graph: on(graph, TotalVariation(gate="none")),
    "enc": lambda graph: ENC(graph, mi=1.0, tv=2.0, cvg=0, preg=0.3, mi_lambda=2.0),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms(name: str, graph: Graph) -> None:
    check(TERMS[name](graph), leaf(7, 3))


def two_layers(x: Tensor, weight_1: Tensor, weight_2: Tensor) -> Tensor:
    return torch.tanh(x @ weight_1) @ weight_2


@pytest.mark.parametrize("halves", ["fixed", "stratified"])
def test_cvg_in_the_parameters_of_a_model(halves: str) -> None:
    graph = GRAPHS["plain"]

    def value(*parameters: Tensor) -> Tensor:
        term = CrossValidatingGradients(halves=halves).bind(graph)
        return term(two_layers(graph.features, *parameters), Sample.of_graph(graph, 0), parameters)

    check(value, leaf(3, 4), leaf(4, 3, seed=1))


def test_cvg_does_not_depend_on_the_size_of_the_losses() -> None:
    def value(factor: float) -> tuple[Tensor, Tensor]:
        weight = leaf(3, 3)
        logits = GRAPHS["plain"].features @ weight
        labels = GRAPHS["plain"].labels
        loss_1, loss_2 = (
            cross_entropy(logits, labels, torch.tensor([0, 1])),
            cross_entropy(logits, labels, torch.tensor([2, 3])),
        )
        cvg = cross_validating_gradients(factor * loss_1, loss_2, [weight])
        return cvg.detach(), torch.autograd.grad(cvg, weight)[0]

    for small, plain in zip(value(1e-30), value(1.0), strict=True):
        torch.testing.assert_close(small, plain, rtol=1e-10, atol=1e-12)


def test_the_whole_objective_in_the_parameters_of_a_model() -> None:
    graph = GRAPHS["weighted"]

    def value(*parameters: Tensor) -> Tensor:
        objective = ENC(graph, mi=1.0, tv=2.0, cvg=0.7, preg=0.1, halves="random", seed=1)
        return objective(two_layers(graph.features, *parameters), parameters)

    check(value, leaf(3, 3), leaf(3, 3, seed=1))


# ---------------------------------------------------------------- the sparse products

# 4 x 3 with an empty row and an empty column, 3 x 3 with everything in it, 3 x 4 with a single entry.
PATTERNS = {
    "holes": Pattern(torch.tensor([0, 2, 2, 3, 5]), torch.tensor([0, 2, 2, 0, 2]), (4, 3)),
    "full": Pattern(torch.tensor([0, 3, 6, 9]), torch.tensor([0, 1, 2] * 3), (3, 3)),
    "one": Pattern(torch.tensor([0, 0, 1, 1]), torch.tensor([3]), (3, 4)),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_spmm(name: str) -> None:
    pattern = PATTERNS[name]
    check(
        lambda values, x: spmm(pattern, values, x),
        leaf(pattern.nnz),
        leaf(pattern.shape[1], 2, seed=1),
    )


@pytest.mark.parametrize("name", PATTERNS)
def test_sddmm(name: str) -> None:
    pattern = PATTERNS[name]
    check(
        lambda a, b: sddmm(pattern, a, b),
        leaf(pattern.shape[0], 2),
        leaf(pattern.shape[1], 2, seed=1),
    )


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("wanted", ["values", "dense"])
def test_spmm_and_sddmm_when_only_one_side_wants_a_gradient(name: str, wanted: str) -> None:
    pattern = PATTERNS[name]
    values, x, a = (
        leaf(pattern.nnz),
        leaf(pattern.shape[1], 2, seed=1),
        leaf(pattern.shape[0], 2, seed=2),
    )
    if wanted == "values":
        check(lambda values: spmm(pattern, values, x.detach()), values)
        check(lambda a: sddmm(pattern, a, x.detach()), a)
    else:
        check(lambda x: spmm(pattern, values.detach(), x), x)
        check(lambda x: sddmm(pattern, a.detach(), x), x)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_constant_matrix_times_dense(name: str) -> None:
    pattern = PATTERNS[name]
    matrix = SparseMatrix(pattern, leaf(pattern.nnz).detach())
    check(lambda x: matrix @ x, leaf(pattern.shape[1], 2, seed=1))
    check(lambda x: (matrix @ x).tanh(), leaf(pattern.shape[1], 2, seed=1))
    check(lambda x: (matrix.transpose @ x).tanh(), leaf(pattern.shape[0], 2, seed=1))


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_a_constant_matrix_blended_with_a_base(name: str, weight: float) -> None:
    pattern = PATTERNS[name]
    matrix = SparseMatrix(pattern, leaf(pattern.nnz).detach())
    x, base = leaf(pattern.shape[1], 2, seed=1), leaf(pattern.shape[0], 2, seed=2)
    torch.testing.assert_close(
        matrix.blend(x, base, weight), (1 - weight) * matrix.to_dense() @ x + weight * base
    )
    check(lambda x, base: matrix.blend(x, base, weight).tanh(), x, base)


def test_dropout_has_the_derivatives_of_a_product_with_its_factor() -> None:
    noise = draw_noise((5, 3), torch.empty(0, dtype=torch.float64))
    check(lambda x: drop(x, 0.4, noise).tanh(), leaf(5, 3))


def test_the_graph_operators_times_dense(graph: Graph) -> None:
    """The symmetric shortcut of the GCN operator must not be taken where direction was kept."""
    for operator in (graph.gcn_operator, graph.mean_operator):
        check(lambda x, operator=operator: (operator @ x).tanh(), leaf(7, 2))
        dense = operator.to_dense()
        x, g = leaf(7, 2), leaf(7, 2, seed=1).detach()
        torch.testing.assert_close(
            torch.autograd.grad(operator @ x, x, g)[0], dense.T @ g, rtol=1e-12, atol=1e-12
        )
