"""Every equation of the paper against nested Python loops written from its text, in float64.

The loops know nothing of the library: they see the raw edge list (with repeats, loops and both directions in it), the raw features
and lists of floats. Weights and features are small dyadic fractions, so that the library's float32 storage rounds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from everynode.graph import Graph, Split
from everynode.graph.sample import Sample
from everynode.models import GATLayer, GCNIILayer, GCNLayer
from everynode.models.receptive_field import Hop
from everynode.objectives import (
    ENC,
    CrossEntropy,
    CrossValidatingGradients,
    TotalVariation,
    cross_entropy,
    dirichlet_energy,
    graph_gradient,
    mutual_information,
    p_reg,
    total_variation,
)
from everynode.objectives.total_variation import squared_feature_gradient
from everynode.sparse import SparseMatrix

TOLERANCE = 1e-10
Matrix = list[list[float]]


@dataclass
class Case:
    """A graph and, in plain Python, what it was made of."""

    graph: Graph
    x: Matrix
    edges: dict[tuple[int, int], float]  # {i, j}, i < j, once
    arcs: dict[tuple[int, int], float]  # (source, target): the ways messages travel
    labels: list[int]
    train: list[int]
    weighted: bool

    @property
    def n(self) -> int:
        return len(self.x)

    def degree(self, i: int) -> float:
        return sum(weight for edge, weight in self.edges.items() if i in edge)

    def w(self, i: int) -> float:
        return 1 / math.sqrt(self.degree(i) + 1)

    def neighbors(self, i: int) -> dict[int, float]:
        """Whom node i hears, itself included: the row of A + I."""
        return {
            **{source: weight for (source, target), weight in self.arcs.items() if target == i},
            i: 1.0,
        }


def make_case(
    seed: int,
    *,
    isolated: int = 0,
    weighted: bool = False,
    directed: bool = False,
    sparse: bool = False,
    k: int = 3,
) -> Case:
    rng = np.random.default_rng(seed)
    n, connected = 10, 10 - isolated
    pairs = [
        tuple(map(int, rng.integers(0, connected, 2))) for _ in range(18)
    ]  # may repeat, may be loops
    raw = [1.0] * len(pairs)
    if weighted:
        raw = [float(rng.integers(1, 12)) / 4 for _ in pairs]
    arcs: dict[tuple[int, int], float] = {}
    edges: dict[tuple[int, int], float] = {}
    for (s, t), weight in zip(pairs, raw, strict=True):
        if s == t:
            continue
        edge = (min(s, t), max(s, t))
        arcs[s, t] = max(weight, arcs.get((s, t), 0.0))
        edges[edge] = max(weight, edges.get(edge, 0.0))
    if not directed:
        arcs = {}
        for (i, j), weight in edges.items():
            arcs[i, j] = arcs[j, i] = weight
    features = rng.integers(-12, 13, (n, 5)) / 8
    if sparse:
        features = features * (rng.random((n, 5)) < 0.15)
        features[0, 0] = 1.5
    labels = rng.integers(0, k, n)
    labels[:k] = range(k)
    train = sorted(map(int, rng.permutation(n)[:7]))
    rest = torch.tensor([i for i in range(n) if i not in train])
    graph = Graph.from_arrays(
        features,
        np.array(pairs).T,
        labels,
        splits=[Split(torch.tensor(train), rest[:1], rest[1:])],
        edge_weight=raw if weighted else None,
        directed=directed,
    ).to(torch.float64)
    assert isinstance(graph.features, SparseMatrix) == sparse
    return Case(graph, features.tolist(), edges, arcs, labels.tolist(), train, weighted)


KINDS = {
    "plain": {},
    "isolated": {"isolated": 3},
    "weighted": {"weighted": True},
    "directed": {"directed": True},
    "directed-weighted-isolated": {"directed": True, "weighted": True, "isolated": 2},
    "sparse": {"sparse": True, "isolated": 1},
}


@pytest.fixture(
    params=[(kind, seed) for kind in KINDS for seed in range(2)], ids=lambda p: f"{p[0]}-{p[1]}"
)
def case(request: pytest.FixtureRequest) -> Case:
    kind, seed = request.param
    return make_case(seed, **KINDS[kind])


def random(*shape: int, seed: int = 0, scale: float = 1.5) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, scale, shape))


def softmax(row: list[float]) -> list[float]:
    exponentials = [math.exp(v) for v in row]
    return [e / sum(exponentials) for e in exponentials]


def predictions(logits: Tensor) -> Matrix:
    return [softmax(row) for row in logits.tolist()]


def same(actual: Tensor, expected: object) -> None:
    torch.testing.assert_close(
        actual, torch.tensor(expected, dtype=torch.float64), rtol=TOLERANCE, atol=TOLERANCE
    )


# ---------------------------------------------------------------- cross-entropy


def loop_cross_entropy(y: Matrix, labels: list[int], nodes: list[int]) -> float:
    total = 0.0
    for i in nodes:
        for s in range(len(y[0])):
            one_hot = 1.0 if labels[i] == s else 0.0
            total += one_hot * math.log(y[i][s])
    return -total / len(nodes)


def test_cross_entropy(case: Case) -> None:
    logits = random(case.n, 3)
    expected = loop_cross_entropy(predictions(logits), case.labels, case.train)
    same(cross_entropy(logits, case.graph.labels, torch.tensor(case.train)), expected)
    same(CrossEntropy().bind(case.graph)(logits, Sample.of_graph(case.graph, 0)), expected)


# ---------------------------------------------------------------- mutual information


def loop_mutual_information(y: Matrix, lam: float) -> float:
    n, k = len(y), len(y[0])
    entropy = 0.0
    for i in range(n):
        for s in range(k):
            entropy += -y[i][s] * math.log(y[i][s])
    negative = 0.0
    for s in range(k):
        mean = sum(y[i][s] for i in range(n)) / n
        negative += mean * math.log(mean)
    return entropy / n + lam * negative


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0, 2.0, 7.5])
@pytest.mark.parametrize(("n", "k"), [(1, 2), (6, 2), (11, 5)])
def test_mutual_information(lam: float, n: int, k: int) -> None:
    logits = random(n, k, seed=n)
    same(mutual_information(logits, lam=lam), loop_mutual_information(predictions(logits), lam))


# ---------------------------------------------------------------- graph gradient, Dirichlet energy, total variation


def loop_gradient(f: Matrix, case: Case) -> dict[tuple[int, int], list[float]]:
    return {
        (i, j): [case.w(i) * a - case.w(j) * b for a, b in zip(f[i], f[j], strict=True)]
        for i, j in case.edges
    }


def test_graph_gradient(case: Case) -> None:
    f = random(case.n, 4)
    expected = loop_gradient(f.tolist(), case)
    edges = [tuple(edge) for edge in case.graph.undirected_edges[0].T.tolist()]
    assert sorted(edges) == sorted(expected)
    same(graph_gradient(f, case.graph), [expected[edge] for edge in edges])


def test_dirichlet_energy_is_half_the_sum_over_both_directions(case: Case) -> None:
    f = random(case.n, 4)
    rows, energy = f.tolist(), 0.0
    for i in range(case.n):
        for j in range(case.n):
            weight = case.edges.get((min(i, j), max(i, j)), 0.0)
            if i == j or not weight:
                continue
            for a, b in zip(rows[i], rows[j], strict=True):
                energy += (
                    0.5
                    * weight
                    * (a / math.sqrt(1 + case.degree(i)) - b / math.sqrt(1 + case.degree(j))) ** 2
                )
    same(dirichlet_energy(f, case.graph), energy)
    if not case.weighted:
        same(graph_gradient(f, case.graph).norm() ** 2, energy)


def loop_gate_features(case: Case, gate: str) -> Matrix:
    x = case.x
    if gate == "raw":
        return x
    if gate == "row":
        sums = [sum(abs(v) for v in row) for row in x]
        return [
            [v / total if total else 0.0 for v in row] for row, total in zip(x, sums, strict=True)
        ]
    columns = []
    for c in range(len(x[0])):
        column = [row[c] for row in x]
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in column) / len(column))
        columns.append([v / deviation if deviation else 0.0 for v in column])
    return [list(row) for row in zip(*columns, strict=True)]


def loop_total_variation(y: Matrix, case: Case, sigma: float, gate: str) -> float:
    gradient = loop_gradient(y, case)
    boundary = {} if gate == "none" else loop_gradient(loop_gate_features(case, gate), case)
    total = 0.0
    for edge, weight in case.edges.items():
        l1 = sum(abs(v) for v in gradient[edge])
        l2_squared = sum(v * v for v in boundary.get(edge, []))
        total += weight * l1 * math.exp(-l2_squared / sigma)
    return total / len(case.edges)


@pytest.mark.parametrize("gate", ["none", "raw", "row", "standardized"])
@pytest.mark.parametrize("sigma", [0.1, 2.0, 10.0])
def test_total_variation(case: Case, gate: str, sigma: float) -> None:
    logits = random(case.n, 3)
    expected = loop_total_variation(predictions(logits), case, sigma, gate)
    same(total_variation(logits, case.graph, sigma=sigma, gate=gate), expected)
    term = TotalVariation(sigma=sigma, gate=gate).bind(case.graph)
    same(term(logits, Sample.of_graph(case.graph)), expected)


def test_the_blocks_of_the_gate_join_without_a_seam(case: Case) -> None:
    sample = Sample.of_graph(case.graph)
    whole = squared_feature_gradient(sample, "raw")
    assert len(whole) == len(case.edges) > 3
    np.testing.assert_array_equal(squared_feature_gradient(sample, "raw", chunk=3), whole)


# ---------------------------------------------------------------- P-reg


def loop_p_reg(y: Matrix, case: Case) -> float:
    total = 0.0
    for i in range(case.n):
        neighbors = case.neighbors(i)
        for s in range(len(y[0])):
            mean = sum(weight * y[j][s] for j, weight in neighbors.items()) / sum(
                neighbors.values()
            )
            total += (y[i][s] - mean) ** 2
    return total


def test_p_reg(case: Case) -> None:
    logits = random(case.n, 3)
    same(p_reg(logits, case.graph), loop_p_reg(predictions(logits), case))


# ---------------------------------------------------------------- cross-validating gradients


def loop_linear_gradient(
    weight: Matrix, bias: list[float], x: Matrix, labels: list[int], nodes: list[int]
) -> list[float]:
    """d CE / d (W, b) of the linear softmax model W x + b, in closed form, flat."""
    k, c = len(weight), len(x[0])
    grad_weight = [[0.0] * c for _ in range(k)]
    grad_bias = [0.0] * k
    for i in nodes:
        y = softmax([sum(weight[s][d] * x[i][d] for d in range(c)) + bias[s] for s in range(k)])
        for s in range(k):
            error = (y[s] - (1.0 if labels[i] == s else 0.0)) / len(nodes)
            grad_bias[s] += error
            for d in range(c):
                grad_weight[s][d] += error * x[i][d]
    return [v for row in grad_weight for v in row] + grad_bias


def loop_cvg(model: torch.nn.Linear, case: Case, p_1: list[int], p_2: list[int]) -> float:
    weight, bias = model.weight.tolist(), model.bias.tolist()
    g_1, g_2 = (
        loop_linear_gradient(weight, bias, case.x, case.labels, half) for half in (p_1, p_2)
    )
    dot = sum(a * b for a, b in zip(g_1, g_2, strict=True))
    return -dot / (math.sqrt(sum(a * a for a in g_1)) * math.sqrt(sum(b * b for b in g_2)))


def linear_model(case: Case) -> torch.nn.Linear:
    model = torch.nn.Linear(len(case.x[0]), 3, dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(random(3, len(case.x[0]), seed=1, scale=0.8))
        model.bias.copy_(random(3, seed=2))
    return model


@pytest.mark.parametrize("halves", ["random", "stratified", "fixed"])
def test_cross_validating_gradients(case: Case, halves: str) -> None:
    model = linear_model(case)
    term = CrossValidatingGradients(halves=halves).bind(case.graph, seed=5)
    sample = Sample.of_graph(case.graph, 0)
    for _ in range(2):
        p_1, p_2 = (half.tolist() for half in term.partition(sample))
        assert sorted(p_1 + p_2) == case.train
        value = term(model(case.graph.dense_features), sample, model)
        same(value.detach(), loop_cvg(model, case, p_1, p_2))


# ---------------------------------------------------------------- the sum


def test_enc_is_the_weighted_sum_of_its_terms(case: Case) -> None:
    model = linear_model(case)
    logits = model(case.graph.dense_features)
    y = predictions(logits)
    options = {
        "mi_lambda": 1.3,
        "tv_sigma": 3.0,
        "tv_gate": "standardized",
        "halves": "random",
        "seed": 3,
    }
    objective = ENC(case.graph, mi=0.7, tv=1.9, cvg=0.4, preg=0.2, **options)
    p_1, p_2 = (
        half.tolist() for half in objective.terms["cvg"].partition(Sample.of_graph(case.graph, 0))
    )
    ce = loop_cross_entropy(y, case.labels, case.train)
    mi = loop_mutual_information(y, 1.3)
    tv = loop_total_variation(y, case, 3.0, "standardized")
    cvg = loop_cvg(model, case, p_1, p_2)
    preg = loop_p_reg(y, case)
    expected = {
        "ce": ce,
        "mi": mi,
        "tv": tv,
        "cvg": cvg,
        "preg": preg,
        "total": ce + 0.7 * mi + 1.9 * tv + 0.4 * cvg + 0.2 * preg,
    }
    breakdown = objective.breakdown(logits, model)
    assert list(breakdown) == list(expected)
    for name, value in expected.items():
        same(breakdown[name].detach(), value)
    fixed = ENC(case.graph, mi=0.7, tv=1.9, cvg=0.4, preg=0.2, **options | {"seed": 3})
    same(fixed(logits, model).detach(), expected["total"])


def test_a_term_of_weight_zero_is_not_there() -> None:
    case = make_case(0)
    logits = random(case.n, 3)
    assert list(ENC(case.graph, mi=0, tv=0, cvg=0).breakdown(logits)) == ["ce", "total"]
    assert list(ENC(case.graph, mi=0, tv=1, cvg=0).breakdown(logits)) == ["ce", "tv", "total"]
    same(
        ENC(case.graph, mi=0, tv=0, cvg=0)(logits),
        loop_cross_entropy(predictions(logits), case.labels, case.train),
    )


# ---------------------------------------------------------------- the layers, node by node


def times(row: list[float], matrix: Matrix) -> list[float]:
    return [sum(row[a] * matrix[a][b] for a in range(len(row))) for b in range(len(matrix[0]))]


def relu(row: list[float]) -> list[float]:
    return [max(v, 0.0) for v in row]


def propagate(f: Matrix, case: Case, i: int) -> list[float]:
    """Row i of D^-1/2 (A + I) D^-1/2 f, where D sums what each node hears."""
    d = [sum(case.neighbors(j).values()) for j in range(case.n)]
    out = [0.0] * len(f[0])
    for j, weight in case.neighbors(i).items():
        for c in range(len(out)):
            out[c] += weight / math.sqrt(d[i] * d[j]) * f[j][c]
    return out


def with_random_parameters(layer: torch.nn.Module) -> torch.nn.Module:
    layer.double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(random(*parameter.shape, seed=10 + number, scale=0.9))
    return layer


def test_gcn_layer(case: Case) -> None:
    layer, f = with_random_parameters(GCNLayer(4)), random(case.n, 4)
    weight = layer.weight.tolist()
    expected = [relu(times(propagate(f.tolist(), case, i), weight)) for i in range(case.n)]
    same(layer(f, f, Hop(case.graph)).detach(), expected)


@pytest.mark.parametrize(
    ("position", "alpha", "lam"), [(1, 0.1, 0.5), (2, 0.5, 1.0), (8, 0.2, 1.5)]
)
def test_gcnii_layer(case: Case, position: int, alpha: float, lam: float) -> None:
    layer = with_random_parameters(GCNIILayer(4, position=position, alpha=alpha, lam=lam))
    f, f_0, weight = random(case.n, 4), random(case.n, 4, seed=1), layer.weight.tolist()
    beta = math.log(lam / position + 1)
    expected = []
    for i in range(case.n):
        s = [
            (1 - alpha) * p + alpha * o
            for p, o in zip(propagate(f.tolist(), case, i), f_0[i].tolist(), strict=True)
        ]
        expected.append(
            relu([beta * a + (1 - beta) * b for a, b in zip(times(s, weight), s, strict=True)])
        )
    same(layer(f, f_0, Hop(case.graph)).detach(), expected)


def test_gat_layer(case: Case) -> None:
    layer, f = with_random_parameters(GATLayer(4)), random(case.n, 4)
    weight, attention, a = (
        layer.weight.tolist(),
        layer.attention_weight.tolist(),
        layer.a.reshape(-1).tolist(),
    )
    rows = f.tolist()
    projected = [times(row, attention) for row in rows]
    values = [times(row, weight) for row in rows]
    expected = []
    for i in range(case.n):
        exponentials = {}
        for j, edge_weight in case.neighbors(i).items():  # the node itself is among them
            score = sum(p * q for p, q in zip(a, projected[i] + projected[j], strict=True))
            exponentials[j] = edge_weight * math.exp(score if score > 0 else 0.2 * score)
        total = sum(exponentials.values())
        expected.append(
            relu([sum(e / total * values[j][c] for j, e in exponentials.items()) for c in range(4)])
        )
    same(layer(f, f, Hop(case.graph)).detach(), expected)
