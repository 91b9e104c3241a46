"""Callbacks follow every training epoch by epoch."""

from __future__ import annotations

from collections import Counter

from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.training.callbacks import replay

GRAPH = generate(150, 500, 8, 3, seed=0)
SMALL = {"epochs": 4, "hidden_channels": 4}


class Recorder:
    """Keeps every call."""

    def __init__(self):
        self.calls = []

    def __call__(self, training, epoch, values):
        self.calls.append((training, epoch, dict(values)))


def test_a_single_model_is_followed_epoch_by_epoch():
    seen = Recorder()
    model = NodeClassifier("gcn", "ce", settings=SMALL | {"n_estimators": 2}, verbose=False)
    model.fit(GRAPH, callbacks=[seen])
    assert [call[:2] for call in seen.calls] == [
        *(("ce", epoch) for epoch in range(4)),
        *(("network 2 of 2", epoch) for epoch in range(4)),
    ]
    assert [call[2]["val_loss"] for call in seen.calls[:4]] == model.history_["val_loss"]
    seen.calls.clear()
    model.refit(GRAPH, callbacks=[seen])
    assert len({training for training, _, _ in seen.calls}) == 3


def test_the_trainings_of_a_portfolio_are_reported_whole():
    seen, other = Recorder(), Recorder()
    model = NodeClassifier(effort="quick", time_limit="5m", settings=SMALL, verbose=False)
    model.fit(GRAPH, callbacks=[seen, other])
    assert seen.calls == other.calls
    number = Counter(training for training, _, _ in seen.calls)
    assert len(number) == sum(row.networks for row in model.leaderboard_)
    first = model.ensemble_.members[0].results[0]
    name = f"{model.objective_}-fold-{first.fold + 1}-seed-{first.seed}"
    epochs = [epoch for training, epoch, _ in seen.calls if training == name]
    assert epochs == list(range(first.epochs))


def test_nothing_is_replayed_of_an_empty_history():
    seen = Recorder()
    replay([seen], "gcn", {})
    assert seen.calls == []
