"""What each task does, and that its record says everything and is true."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from everynode.datasets import load
from everynode.errors import DataError, UsageError
from everynode.evaluation.metrics import confusion, scores
from everynode.experiments import tasks
from everynode.experiments.tasks import carry_out
from everynode.graph import Graph
from everynode.settings import Settings
from everynode.training import evaluate, train
from everynode.training.full_batch import step


def test_a_record_is_complete_and_true(graph, make_run):
    run = make_run(seed=4, fold=1)
    result = carry_out(run, graph)
    test = graph.nodes("test", 1)
    fitted = train(graph, run.settings, fold=1, seed=4, test_nodes=test)
    with torch.no_grad():
        logits = fitted.network(graph)
    on = {
        part: scores(logits[graph.nodes(part, 1)], graph.labels[graph.nodes(part, 1)])
        for part in ("val", "test")
    }
    record = dict(result.record)
    assert all(
        isinstance(said := record.pop(name), str) and said
        for name in ("version", "python", "system", "cpu")
    )
    assert record == {
        **run.describe(),
        "nodes": {"train": 15, "val": 20, "test": 25},
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        "val_loss": fitted.metrics["val_loss"],
        **{f"{part}_{name}": value for part in on for name, value in on[part].items()},
        "val_accuracy": evaluate(fitted.network, graph, "val", 1),
        "test_accuracy": evaluate(fitted.network, graph, "test", 1),
        "test_oracle_accuracy": max(fitted.history["test_accuracy"]),
        "terms": {
            name: fitted.history[name][fitted.best_epoch]
            for name in ("ce", "mi", "tv", "cvg", "total")
        },
        "confusion": confusion(logits[test], graph.labels[test]),
        "interrupted": False,
        "graph_digest": run.graph_digest,
        "directed": False,
        "settings": {
            name: value
            for name, value in dataclasses.asdict(run.settings).items()
            if name not in ("class_weight", "weights")
        },
        "key": run.key,
        "versions": run.versions,
    }
    assert set(on["val"]) == {"accuracy", "macro_f1", "nll", "ece"}
    assert set(result.cost) == {"seconds", "seconds_per_epoch", "peak_mb"}
    assert all(value > 0 for value in result.cost.values())
    assert (
        result.curve.keys()
        == fitted.history.keys()
        == {"ce", "mi", "tv", "cvg", "total", "val_loss", "val_accuracy", "test_accuracy"}
    )
    for name, values in result.curve.items():
        assert values == pytest.approx(fitted.history[name], rel=1e-5)
    assert result.to_dict() == {**result.record, **result.cost}
    json.dumps([result.to_dict(), result.curve], allow_nan=False)


@pytest.mark.parametrize("seed", range(5))
def test_the_record_agrees_with_itself(graph, make_run, seed):
    record = carry_out(make_run(seed=seed, epochs=12), graph).record
    table = np.array(record["confusion"])
    assert table.sum() == record["nodes"]["test"] == 25
    assert table.trace() / table.sum() == pytest.approx(record["test_accuracy"])
    assert record["test_oracle_accuracy"] >= record["test_accuracy"]
    assert 0 <= record["best_epoch"] < record["epochs"] <= 12
    settings = record["settings"]
    weighted = sum(
        settings.get(name, 1.0) * value
        for name, value in record["terms"].items()
        if name != "total"
    )
    assert weighted == pytest.approx(record["terms"]["total"], rel=1e-5)


def test_the_record_is_the_same_every_time(graph, make_run):
    one, two = (carry_out(make_run(), graph) for _ in range(2))
    assert (one.record, one.curve) == (two.record, two.curve)


@pytest.mark.parametrize(
    ("objective", "terms"),
    [
        ("ce", ("ce",)),
        ("tv", ("ce", "tv")),
        ("consistency", ("ce", "consistency")),
        ("enc", ("ce", "mi", "tv", "cvg", "consistency", "prior")),
    ],
)
def test_the_terms_are_the_objectives(graph, make_run, objective, terms):
    run = make_run(objective=objective, consistency=0.5, prior=0.5)
    assert ("ce", *run.settings.active_terms()) == terms
    assert set(carry_out(run, graph).record["terms"]) == {*terms, "total"}


def test_terms_are_there_where_cvg_is_taken_only_now_and_then(graph, make_run):
    result = carry_out(make_run(cvg_every=3, epochs=8), graph)
    assert set(result.record["terms"]) == {"ce", "mi", "tv", "cvg", "total"}
    assert {len(values) for values in result.curve.values()} == {8}


@pytest.mark.parametrize("monitor", ["accuracy", "loss"])
@pytest.mark.parametrize("name", ["toy", "citeseer"])
def test_watching_the_test_nodes_changes_nothing_that_is_selected(graph, name, monitor):
    seen = graph if name == "toy" else load("citeseer")
    settings = Settings(hidden_channels=8, epochs=12, monitor=monitor)
    blind, watching = train(seen, settings), train(seen, settings, test_nodes=seen.nodes("test"))
    assert blind.best_epoch == watching.best_epoch
    assert blind.history == {
        name: values for name, values in watching.history.items() if name != "test_accuracy"
    }
    for one, two in zip(blind.network.parameters(), watching.network.parameters(), strict=True):
        assert torch.equal(one, two)


def test_what_is_watched_is_the_test_accuracy_of_each_epoch(graph):
    fitted = train(graph, Settings(hidden_channels=8, epochs=6), test_nodes=graph.nodes("test"))
    assert len(fitted.history["test_accuracy"]) == 6
    assert fitted.history["test_accuracy"][fitted.best_epoch] == evaluate(
        fitted.network, graph, "test"
    )


@pytest.mark.parametrize("epochs", [1, 2, 30])
def test_a_run_that_diverges_leaves_a_record_with_the_error(graph, make_run, epochs):
    run = make_run(epochs=epochs, lr_gnn=1e30, lr=1e30)
    result = carry_out(run, graph)
    assert "lower the learning rates" in result.record["error"]
    assert result.record.items() >= run.describe().items()
    assert result.record["key"] == run.key
    assert "test_accuracy" not in result.record
    assert (result.cost, result.curve) == ({}, {})


def test_what_is_wrong_with_the_input_is_no_record(graph, make_run):
    with pytest.raises(UsageError):
        carry_out(make_run(fold=2), graph)
    unlabeled = Graph.from_arrays(
        np.eye(3), np.array([[0], [1]]), np.array([0, 1, 0]), splits=[([0, 1], [], [2])]
    )
    with pytest.raises(DataError, match="no labeled validation node"):
        carry_out(make_run(), unlabeled)


def test_without_test_nodes_the_test_scores_are_none(make_run):
    rng = np.random.default_rng(1)
    untested = Graph.from_arrays(
        rng.normal(size=(30, 5)),
        rng.integers(0, 30, (2, 60)),
        np.arange(30) % 3,
        splits=[(range(15), range(15, 30), [])],
    )
    record = carry_out(make_run(), untested).record
    names = (
        "test_accuracy",
        "test_macro_f1",
        "test_nll",
        "test_ece",
        "test_oracle_accuracy",
        "confusion",
    )
    assert [record[name] for name in names] == [None] * 6
    assert record["nodes"]["test"] == 0


@pytest.mark.parametrize("consistency", [0.0, 0.5])
@pytest.mark.parametrize("others", [None, 0, 2])
def test_timing_leaves_milliseconds_and_nothing_that_was_learned(
    graph, make_run, consistency, others, monkeypatch
):
    monkeypatch.setattr(tasks, "TIMED", 3)
    monkeypatch.setattr(tasks, "others_running", lambda: others)
    run = make_run(task="time", consistency=consistency)
    result = carry_out(run, graph)
    assert set(result.cost) == {
        "training_ms",
        "inference_ms",
        *([] if others is None else ["others"]),
    }
    assert result.cost.pop("others", None) == others
    assert all(value > 0 for value in result.cost.values())
    assert result.record.items() >= run.describe().items()
    assert "test_accuracy" not in result.record


def test_what_is_timed_is_the_step_that_trains(graph, make_run, monkeypatch):
    steps = []
    monkeypatch.setattr(tasks, "TIMED", 3)
    monkeypatch.setattr(tasks, "step", lambda *parts: steps.append(step(*parts)))
    carry_out(make_run(task="time"), graph)
    assert len(steps) == tasks.WARM_UP + 3
    assert steps[-1]["total"] < steps[0]["total"], "nothing was trained"


def test_describing_counts_what_is_in_the_graph(make_run):
    path = Graph.from_arrays(
        np.eye(5),
        np.array([[0, 1, 1, 2], [1, 0, 2, 3]]),
        np.array([0, 0, 1, 1, -1]),
        splits=[([0, 2], [1], [3])],
        classes=[0, 1],
    )
    record = carry_out(make_run(task="describe"), path).record
    expected = {
        "nodes": 5,
        "edges": 3,
        "features": 5,
        "classes": 2,
        "edge_homophily": 2 / 3,
        "isolated": 1,
        "unlabeled": 1,
    }
    assert record["statistics"] == expected | {"node_homophily": path.node_homophily}
    assert math.isclose(path.node_homophily, (1 + 1 / 2 + 1 / 2 + 1) / 4)


@pytest.mark.parametrize("task", ["tsne", "tsne-input"])
def test_a_map_has_a_place_for_every_node(graph, make_run, task):
    one, two = (carry_out(make_run(task=task), graph) for _ in range(2))
    assert np.array(one.record["positions"]).shape == (60, 2)
    assert np.array(one.record["positions"]).std() > 0
    assert one.record["labels"] == graph.labels.tolist()
    assert one.record == two.record
    assert ("test_accuracy" in one.record) == (task == "tsne")
