"""Trainings side by side: the results of one after the other, one graph for all, Ctrl-C."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from pathlib import Path

import pytest
import torch

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.errors import Diverged
from everynode.graph import Graph, Split
from everynode.selection import ensemble, successive_halving
from everynode.settings import Settings
from everynode.training import side_by_side as module
from everynode.training.checkpoint import TrainingState
from everynode.training.loop import Training
from everynode.training.side_by_side import pays, side_by_side

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes cannot be forked")
QUICK = Settings(hidden_channels=4, epochs=6, patience=6).for_objective("mi")


@pytest.fixture(scope="module")
def graph() -> Graph:
    graph = generate(500, 1500, 6, 3)
    nodes = torch.arange(500)
    splits = [Split(nodes[i::4], nodes[(i + 1) % 4 :: 4], nodes[:0]) for i in range(2)]
    return graph.with_splits(splits)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def build(graph: Graph, seed: int, **changes: float) -> Training:
    return Training(graph, QUICK.replace(**changes), fold=seed % 2, seed=seed)


def weights(training: Training) -> torch.Tensor:
    return torch.cat([value.reshape(-1) for value in training.network.state_dict().values()])


def test_every_leg_ends_as_it_does_in_this_process(graph: Graph) -> None:
    here, there = ([build(graph, seed) for seed in range(3)] for _ in range(2))
    interrupt = threading.Event()
    for until in (2, None):
        for training in here:
            training.advance(interrupt, until)
        before = [training.epoch for training in there]
        for leg in side_by_side(there, interrupt, until, workers=2):
            assert there[leg.number].epoch == before[leg.number], "it changed before its restore"
            assert leg.error is None
            there[leg.number].restore(leg.state)
    for one, other in zip(here, there, strict=True):
        assert one.epoch == other.epoch == 6
        assert one.history == other.history
        assert torch.equal(weights(one), weights(other))
        assert torch.equal(one.result().network(graph), other.result().network(graph))


def test_a_training_that_diverges_says_why_and_the_others_end(graph: Graph) -> None:
    trainings = [build(graph, 0, lr=1e30, lr_gnn=1e30), build(graph, 1)]
    legs = {leg.number: leg for leg in side_by_side(trainings, threading.Event(), workers=2)}
    assert isinstance(legs[0].error, Diverged)
    assert "lower the learning rates" in str(legs[0].error)
    assert legs[1].error is None
    assert legs[1].state.epoch == 6


def test_an_interrupt_ends_every_training_after_its_step(graph: Graph) -> None:
    trainings = [build(graph, seed, epochs=100_000, patience=100_000) for seed in range(2)]
    interrupt = threading.Event()
    threading.Timer(0.3, interrupt.set).start()
    legs = list(side_by_side(trainings, interrupt, workers=2))
    assert len(legs) == 2
    assert all(leg.state.epoch < 100_000 for leg in legs)


def test_progress_is_shown_while_the_trainings_run(graph: Graph) -> None:
    trainings = [build(graph, seed, epochs=100_000, patience=100_000) for seed in range(2)]
    interrupt, seen = threading.Event(), set[int]()

    def show(number: int, epoch: int, row: dict[str, float]) -> None:
        assert {"total", "val_loss"} <= set(row)
        seen.add(number)
        if len(seen) == 2:
            interrupt.set()

    legs = list(side_by_side(trainings, interrupt, workers=2, show=show))
    assert seen == {0, 1}
    assert all(0 < leg.state.epoch < 100_000 for leg in legs)


def test_neither_graph_nor_training_is_pickled(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> None:
        raise pickle.PicklingError(type(self).__name__)

    monkeypatch.setattr(Graph, "__reduce__", refuse)
    monkeypatch.setattr(Training, "__reduce__", refuse, raising=False)
    trainings = [build(graph, seed) for seed in range(2)]
    sizes = [len(leg.state.to_bytes()) for leg in side_by_side(trainings, threading.Event())]
    held = sum(value.numel() * 4 for value in trainings[0].network.state_dict().values())
    assert max(sizes) < 4 * held + 20_000  # weights, best weights, two averages; random numbers


def test_only_many_trainings_on_a_larger_graph_pay(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pays(graph, 2, workers=2)
    assert not pays(graph, 1, workers=2)
    assert not pays(graph, 2, workers=1)
    assert not pays(generate(60, 120, 8, 3), 2, workers=2)
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert not pays(graph, 2, workers=2)


@pytest.mark.parametrize("wild", [False, True])
def test_successive_halving_is_the_same(graph: Graph, wild: bool) -> None:
    other = QUICK.replace(lr=1e30, lr_gnn=1e30) if wild else QUICK.replace(mi=0.0)
    candidates = {"mi": QUICK, "other": other}
    outcomes = []
    for workers in (1, 2):
        heard: dict[str, list[int]] = {}
        results, standings = successive_halving.successive_halving(
            graph, candidates, folds=(0, 1), seed=3, workers=workers,
            report=lambda name, epoch, row, to=heard: to.setdefault(name, []).append(epoch),
        )  # fmt: skip
        trained = [(one.fold, one.seed, one.best_epoch, one.history) for one in results]
        outcomes.append(({name: s.to_dict() for name, s in standings.items()}, trained))
        assert heard["mi fold 1/2"] == list(range(6))
    assert outcomes[0] == outcomes[1]


def test_more_networks_are_the_same(graph: Graph, tmp_path: Path) -> None:
    first = Training(graph, QUICK)
    first.advance(threading.Event())
    made = []
    for workers in (1, 2):
        heard: list[tuple[int, int]] = []
        results = ensemble.train_more(
            [first.result()], graph, (0, 1), 4, checkpoint=tmp_path / str(workers), workers=workers,
            report=lambda number, epoch, row, to=heard: to.append((number, epoch)),
        )  # fmt: skip
        made.append([(one.fold, one.seed, one.history) for one in results])
        assert sorted(heard) == [(number, epoch) for number in (2, 3, 4) for epoch in range(6)]
        assert math.isclose(results[0].seconds, first.seconds + sum(r.seconds for r in results[1:]))
        names = {path.name for path in (tmp_path / str(workers)).iterdir()}
        assert names >= {f"network-{number}.safetensors" for number in (2, 3, 4)}
    assert made[0] == made[1]


def test_an_estimator_is_the_same_with_any_number_of_jobs(graph: Graph) -> None:
    bare = graph.with_splits([])
    each = [
        NodeClassifier(
            "gcn", "mi", cv=2, n_jobs=jobs, verbose=False,
            settings={"epochs": 4, "hidden_channels": 4, "n_estimators": 2},
        ).fit(bare).predict_proba(bare)
        for jobs in (1, 2)
    ]  # fmt: skip
    assert (each[0] == each[1]).all()


def test_a_damaged_state_is_refused(graph: Graph) -> None:
    content = bytearray(Training(graph, QUICK).state().to_bytes())
    assert TrainingState.from_bytes(bytes(content)).epoch == 0
    content[-1] ^= 1
    with pytest.raises(ValueError, match="digest"):
        TrainingState.from_bytes(bytes(content))
