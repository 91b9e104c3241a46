"""Both sides of the benchmark compute the same; the benchmark itself runs."""

import pytest
import torch

from everynode.benchmarks.measure import bench, least_ms, machine, work
from everynode.benchmarks.sides import DEPTH, Ours, check_same, one_fold, settings_for
from everynode.datasets import generate, load


@pytest.mark.parametrize("backbone", list(DEPTH))
@pytest.mark.parametrize("objective", ["ce", "mi+tv", "enc"])
def test_the_same_loss_and_gradient(backbone: str, objective: str) -> None:
    graph = one_fold(load("citeseer"))
    loss, gradient = check_same(graph, graph.to_pyg(), settings_for(backbone, objective))
    assert loss < 1e-4
    assert gradient < 1e-3


def test_a_difference_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = one_fold(generate(300, 900, 12, 3))
    plain = Ours.loss
    monkeypatch.setattr(Ours, "loss", lambda self: plain(self) * 1.01)
    with pytest.raises(AssertionError, match="the two sides differ"):
        check_same(graph, graph.to_pyg(), settings_for("gcn", "ce"))


def test_a_row_of_the_table() -> None:
    (row,) = bench(["citeseer"], ["gcn"], ["ce"], [machine(1)], 0.01)
    assert row["ratio"] == pytest.approx(row["stock_ms"] / row["everynode_ms"])
    assert row["roofline_ms"] > 0
    assert torch.get_num_threads() == 1


def test_the_work_grows_with_the_objective() -> None:
    graph = one_fold(load("citeseer"))
    plain, full = work(graph, "gcn", "ce"), work(graph, "gcn", "enc")
    assert full["flops"] > plain["flops"]
    assert least_ms(plain, {"gflops": 1.0, "gbytes_per_s": 1e9}) == pytest.approx(
        plain["flops"] / 1e6
    )
