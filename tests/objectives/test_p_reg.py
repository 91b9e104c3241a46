"""P-reg: zero where neighbors agree, and refused on a part of the graph."""

from __future__ import annotations

import math

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.objectives import ENC, PReg, p_reg
from everynode.settings import Settings
from everynode.training import train


def test_predictions_that_are_equal_everywhere_cost_nothing() -> None:
    graph = generate(30, 60, 8, 3).to(torch.float64)
    logits = torch.randn(1, 3, dtype=torch.float64).expand(30, 3)
    assert p_reg(logits, graph).item() == pytest.approx(0.0, abs=1e-20)
    assert p_reg(torch.randn(30, 3, dtype=torch.float64), graph) > 0


def test_the_term_is_the_function() -> None:
    graph = generate(30, 60, 8, 3)
    logits = torch.randn(30, 3)
    objective = ENC(graph, mi=0, tv=0, cvg=0, terms=[PReg(weight=0.5)])
    values = objective.breakdown(logits)
    torch.testing.assert_close(values["preg"], p_reg(logits, graph))
    torch.testing.assert_close(values["total"], values["ce"] + 0.5 * values["preg"])


def test_the_authors_distance_is_their_equation() -> None:
    graph = generate(30, 60, 8, 3).to(torch.float64)
    logits = torch.randn(30, 3, dtype=torch.float64, requires_grad=True)
    z, matrix = logits.tolist(), graph.gcn_operator.to_dense().tolist()
    value = 0.0
    for i in range(30):
        near = [sum(matrix[i][j] * z[j][s] for j in range(30)) for s in range(3)]
        p, q = ([math.exp(v) / sum(map(math.exp, row)) for v in row] for row in (z[i], near))
        value -= sum(p[s] * math.log(q[s]) for s in range(3)) / 30
    assert p_reg(logits, graph, distance="cross_entropy").item() == pytest.approx(value)
    check = lambda x: p_reg(x, graph, distance="cross_entropy")  # noqa: E731
    assert torch.autograd.gradcheck(check, (logits,))


def test_an_unknown_distance_is_refused() -> None:
    with pytest.raises(UsageError, match="distance"):
        PReg(distance="cosine")


def test_mini_batches_are_refused() -> None:
    settings = Settings(preg=0.5).for_objective("preg")
    with pytest.raises(UsageError, match=r"'preg' needs the predictions of every node"):
        train(generate(60, 120, 8, 3), settings, batches=Batches(20))
