"""Races: the best on validation wins, those behind stop, and neither pauses nor kills change the outcome."""

from __future__ import annotations

import dataclasses
import json
import threading

import pytest
import torch

import everynode.training.race as racing
from everynode import NodeClassifier
from everynode.data import generate
from everynode.errors import EverynodeError, UsageError
from everynode.graph import Split
from everynode.settings import Settings
from everynode.training import fit
from everynode.training.loop import Training
from everynode.training.race import race

QUICK = Settings(channels=8, epochs=30, patience=30)
ENTRANTS = {
    "ce": QUICK.for_objective("ce"),
    "tv": QUICK.for_objective("tv"),
    "strong": dataclasses.replace(QUICK, tv=50.0).for_objective("tv"),
    "slow": dataclasses.replace(QUICK, lr_oc=1e-9, lr_gnn=1e-9).for_objective("ce"),
}


@pytest.fixture(scope="module")
def graph():
    return generate(200, 600, 8, 4, noise=1.0, seed=1)


@pytest.fixture(autouse=True)
def short_heat(monkeypatch):
    monkeypatch.setattr(racing, "HEAT", 8)


def same(a, b):
    assert a.history == b.history
    assert (a.best_epoch, a.metrics, a.settings) == (b.best_epoch, b.metrics, b.settings)
    for name, value in a.network.state_dict().items():
        assert torch.equal(value, b.network.state_dict()[name])


def test_a_race_of_one_is_a_training(graph):
    (fitted,), standings = race(graph, {"enc": QUICK}, seed=3)
    same(fitted, fit(graph, QUICK, seed=3))
    assert standings["enc"].outcome == "won"


def test_pauses_change_nothing(graph):
    paused = Training(graph, QUICK, seed=3)
    for until in (1, 2, 9, None):
        paused.advance(threading.Event(), until)
        torch.rand(7)  # somebody else's random numbers
    same(paused.result(), fit(graph, QUICK, seed=3))


def test_every_entrant_is_as_if_alone_and_the_best_on_validation_wins(graph):
    (fitted,), standings = race(graph, ENTRANTS, seed=0)
    alone = {name: fit(graph, settings, seed=0) for name, settings in ENTRANTS.items()}
    # Who is ahead after the heat, counted by hand.
    heat = {n: max(zip(f.history["val_accuracy"][:8], (-x for x in f.history["val_loss"]), strict=False)) for n, f in alone.items()}
    finalists = sorted(heat, key=heat.__getitem__, reverse=True)[:2]
    winner = max(finalists, key=lambda name: (alone[name].metrics["val_accuracy"], -alone[name].metrics["val_loss"]))
    same(fitted, alone[winner])
    assert {name for name, standing in standings.items() if standing.outcome != "stopped"} == set(finalists)
    assert standings[winner].outcome == "won"
    assert "slow" not in finalists
    for name, standing in standings.items():
        assert standing.epochs == (alone[name].epochs if name in finalists else 8)
    assert standings[winner].val_accuracy == alone[winner].metrics["val_accuracy"]


def test_over_several_folds_the_mean_over_their_validation_nodes_decides(graph, monkeypatch):
    nodes = torch.randperm(len(graph.labels), generator=torch.Generator().manual_seed(0))
    folds = graph.with_splits([Split(nodes[:60].sort().values, nodes[60:90].sort().values, nodes[90:90]),
                               Split(nodes[40:100].sort().values, nodes[100:110].sort().values, nodes[90:90])])  # fmt: skip
    monkeypatch.setattr(racing, "SHORTEST_HEAT", 1)
    fitted, standings = race(folds, ENTRANTS, folds=(0, 1), seed=3)
    alone = {name: [fit(folds, settings, fold=i, seed=3 + i) for i in (0, 1)] for name, settings in ENTRANTS.items()}
    # Who is ahead after half as many epochs on each of the two folds, counted by hand.
    best = {
        name: [max(zip(one.history["val_accuracy"][:4], (-x for x in one.history["val_loss"]), strict=False)) for one in each]
        for name, each in alone.items()
    }
    heat = {name: tuple((30 * one + 10 * other) / 40 for one, other in zip(*each, strict=True)) for name, each in best.items()}
    winner = max(heat, key=heat.__getitem__)
    assert standings[winner].outcome == "won"
    a, b = alone[winner]
    assert standings[winner].val_accuracy == pytest.approx((30 * a.metrics["val_accuracy"] + 10 * b.metrics["val_accuracy"]) / 40)
    for one, other in zip(fitted, alone[winner], strict=True):
        same(one, other)
    others = [standing for name, standing in standings.items() if name != winner]
    assert [(standing.outcome, standing.epochs) for standing in others] == [("stopped", 4)] * 3


def test_who_diverges_in_one_fold_is_out_and_its_standing_is_of_the_others(graph, monkeypatch):
    two = graph.with_splits([graph.splits[0], graph.splits[0]])
    plain = Training.advance

    def advance(self, interrupt, until=None, **options):
        if self.settings.tv and self.fold == 1:
            raise EverynodeError("lost")
        plain(self, interrupt, until, **options)

    monkeypatch.setattr(Training, "advance", advance)
    fitted, standings = race(two, {name: ENTRANTS[name] for name in ("tv", "ce")}, folds=(0, 1))
    assert [one.settings for one in fitted] == [ENTRANTS["ce"]] * 2
    assert standings["tv"].outcome == "lost"
    assert standings["tv"].val_accuracy == standings["tv"].val_accuracy
    never = racing.Standing(float("nan"), float("nan"), 0, "not begun")
    assert json.loads(json.dumps(never.to_dict(), allow_nan=False))["val_accuracy"] is None
    assert racing.Standing.from_dict(never.to_dict()).outcome == "not begun"
    with pytest.raises(UsageError, match="at least one fold"):
        race(graph, ENTRANTS, folds=())


def test_on_a_tie_the_first_one_wins(graph):
    for names in (("a", "b", "c"), ("c", "a", "b")):
        _, standings = race(graph, dict.fromkeys(names, QUICK))
        assert standings[names[0]].outcome == "won"


def test_who_diverges_is_out(graph):
    wild = dataclasses.replace(QUICK, lr_oc=1e30, lr_gnn=1e30)
    (fitted,), standings = race(graph, {"wild": wild, "ce": ENTRANTS["ce"]})
    same(fitted, fit(graph, ENTRANTS["ce"]))
    assert "lower the learning rates" in standings["wild"].outcome
    with pytest.raises(EverynodeError, match="lower the learning rates"):
        race(graph, {"wild": wild})


@pytest.mark.parametrize("after", [3, 11, 25, 45])
def test_interrupted_anywhere_it_goes_on_to_the_same_end(graph, tmp_path, after):
    (undisturbed,), standings = race(graph, ENTRANTS)
    seen = 0

    def stop(name, epoch, row):
        nonlocal seen
        seen += 1
        if seen == after:
            raise KeyboardInterrupt  # as a second Ctrl-C, or a kill: nothing is tidied up

    with pytest.raises(KeyboardInterrupt):
        race(graph, ENTRANTS, checkpoint=tmp_path / "training", report=stop)
    (fitted,), again = race(graph, ENTRANTS, checkpoint=tmp_path / "training")
    same(fitted, undisturbed)
    assert again == standings


def test_the_classifier_races_by_default_and_says_who_won(graph, tmp_path):
    model = NodeClassifier(epochs=30, channels=8).fit(graph)
    assert set(model.standings_) == {"ce", "enc", "light-ce", "light-enc"}
    assert model.standings_[model.objective_].outcome == "won"
    assert model.fitted_.settings == Settings.entrants(epochs=30, channels=8)[model.objective_]
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert (again.objective_, again.standings_) == (model.objective_, model.standings_)
    assert (again.predict(graph) == model.predict(graph)).all()


def test_a_weight_of_ones_own_holds_for_every_entrant_that_has_the_term():
    found = Settings.entrants(tv=3.0)
    assert [(name, settings.tv) for name, settings in found.items()] == [("ce", 0.0), ("enc", 3.0), ("light-ce", 0.0), ("light-enc", 3.0)]


def test_no_entrants_are_refused(graph):
    with pytest.raises(UsageError, match="at least one"):
        race(graph, {})
