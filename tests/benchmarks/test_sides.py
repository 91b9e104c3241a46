"""Both sides of the benchmark compute the same loss and gradient."""

import pytest

from everynode.benchmarks.sides import DEPTH, Ours, check_same, one_fold, settings_for
from everynode.datasets import generate, load


@pytest.mark.parametrize("backbone", list(DEPTH))
@pytest.mark.parametrize("objective", ["ce", "mi+tv", "enc"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_loss_and_gradient(backbone: str, objective: str, sparse: bool) -> None:
    graph = one_fold(load("citeseer"))
    loss, gradient = check_same(graph, graph.to_pyg(), settings_for(backbone, objective), sparse)
    assert loss < 1e-4
    assert gradient < 1e-3


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = one_fold(generate(300, 900, 12, 3))
    plain = Ours.loss
    monkeypatch.setattr(Ours, "loss", lambda self: plain(self) * 1.01)
    with pytest.raises(AssertionError, match="the two sides differ"):
        check_same(graph, graph.to_pyg(), settings_for("gcn", "ce"))
