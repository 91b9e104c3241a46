"""The benchmark runs, and its estimate of the work is plausible."""

import pytest
import torch

from everynode.benchmarks.measure import bench, least_ms, machine, work
from everynode.benchmarks.sides import one_fold
from everynode.datasets import load


def test_a_row_of_the_table() -> None:
    (row,) = bench(["generated-60x200x8x3"], ["gcn"], ["ce"], [machine(1)], 0.01)
    assert row["ratio"] == pytest.approx(row["stock_ms"] / row["everynode_ms"])
    assert row["ratio_expert"] == pytest.approx(row["expert_ms"] / row["everynode_ms"])
    assert row["split"] == "stratified"
    assert row["roofline_ms"] > 0
    assert torch.get_num_threads() == 1


def test_the_splits_of_a_graph() -> None:
    limits = [{"gflops": 1.0, "gbytes_per_s": 1.0, "threads": 1}]
    skipped = [("stratified", "generated-60x200x8x3", "gcn", "ce", 1)]
    rows = bench(
        ["generated-60x200x8x3"], ["gcn"], ["ce"], limits, 0.01, skip=skipped, splits=["geom-gcn"]
    )
    assert not list(rows)


def test_the_work_grows_with_the_objective() -> None:
    graph = one_fold(load("citeseer"))
    plain, full = work(graph, "gcn", "ce"), work(graph, "gcn", "enc")
    assert full["flops"] > plain["flops"]
    assert least_ms(plain, {"gflops": 1.0, "gbytes_per_s": 1e9}) == pytest.approx(
        plain["flops"] / 1e6
    )
