"""The parts of full-batch training: model, optimizer, validation."""

from __future__ import annotations

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.models.names import MODELS
from everynode.settings import Settings
from everynode.training.full_batch import build, build_network, judge, step, validate

GRAPH = generate(60, 150, 8, 3)


@pytest.mark.parametrize("backbone", list(MODELS))
def test_each_group_has_its_rates(backbone: str) -> None:
    settings = Settings(
        backbone=backbone, lr=0.1, lr_gnn=0.2, weight_decay=0.3, weight_decay_gnn=0.4
    )
    model, optimizer = build_network(GRAPH, settings, seed=0)
    rates = {"gnn": (0.2, 0.4)}
    for (name, parameters), group in zip(
        model.parameter_groups().items(), optimizer.param_groups, strict=True
    ):
        assert list(map(id, parameters)) == list(map(id, group["params"]))
        assert (group["lr"], group["weight_decay"]) == rates.get(name, (0.1, 0.3))


def test_the_type_is_that_of_the_graph() -> None:
    model, _ = build_network(GRAPH.to(torch.float64), Settings(), seed=0)
    assert {p.dtype for p in model.parameters()} == {torch.float64}


def test_a_step_reports_the_terms_and_moves_the_weights() -> None:
    model, objective, optimizer = build(GRAPH, Settings(), fold=0, seed=0)
    before = [p.clone() for p in model.parameters()]
    terms = step(model, objective, optimizer, GRAPH)
    assert set(terms) == {"ce", "mi", "tv", "cvg", "total"}
    assert not all(map(torch.equal, before, model.parameters()))


def test_validation_and_watched_nodes_take_one_pass() -> None:
    model, _ = build_network(GRAPH, Settings(), seed=0)
    val, test = GRAPH.nodes("val"), GRAPH.nodes("test")
    labels = GRAPH.labels[val]
    row = validate(model, GRAPH, torch.cat([val, test]), labels, test, "macro_f1")
    with torch.no_grad():
        logits = model.eval()(GRAPH)
    expected = judge(logits[val], labels, "macro_f1")
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    correct = (logits[test].argmax(1) == GRAPH.labels[test]).float().mean()
    assert row["test_accuracy"] == pytest.approx(float(correct), abs=1e-6)


def test_refusals() -> None:
    without_dropout = Settings(consistency=1.0, dropout=0.0, layer_dropout=0.0)
    with pytest.raises(UsageError, match="dropout and layer_dropout are 0"):
        build(GRAPH, without_dropout, fold=0, seed=0)
    one = GRAPH.with_labels([0] * 60, classes=["a"])
    with pytest.raises(DataError, match="nothing to tell apart"):
        build_network(one, Settings(), seed=0)


def test_the_optimizer_follows_the_settings() -> None:
    graph = generate(30, 60, 8, 3)
    for amsgrad in (False, True):
        _, optimizer = build_network(graph, Settings(amsgrad=amsgrad), seed=0)
        assert all(group["amsgrad"] is amsgrad for group in optimizer.param_groups)
