"""Races: the best on validation wins, those behind stop, and neither pauses nor kills change the outcome."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import threading

import pytest
import torch

import everynode.selection.successive_halving as halving
from everynode import NodeClassifier
from everynode.datasets import generate
from everynode.errors import DataError, Diverged, UsageError
from everynode.graph import Split
from everynode.presets import candidates
from everynode.selection.successive_halving import successive_halving
from everynode.settings import Settings
from everynode.training import train
from everynode.training.checkpoint import TrainingState
from everynode.training.loop import Training

QUICK = Settings(hidden_channels=8, epochs=30, patience=30)
CANDIDATES = {
    "ce": QUICK.for_objective("ce"),
    "tv": QUICK.for_objective("tv"),
    "strong": dataclasses.replace(QUICK, tv=50.0).for_objective("tv"),
    "slow": dataclasses.replace(QUICK, lr=1e-9, lr_gnn=1e-9).for_objective("ce"),
}


@pytest.fixture(scope="module")
def graph():
    return generate(200, 600, 8, 4, noise=1.0, seed=1)


@pytest.fixture(autouse=True, scope="module")
def short_rounds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halving, "ROUNDS", ((8, 2), (14, 1)))
        patch.setattr(halving, "SHARED_ROUND", 8)
        patch.setattr(halving, "SHORTEST_ROUND", 3)
        patch.setattr(halving, "LEAST_PATIENCE", 10)
        yield


def same(a, b):
    assert a.history == b.history
    assert (a.best_epoch, a.metrics, a.settings) == (b.best_epoch, b.metrics, b.settings)
    for name, value in a.network.state_dict().items():
        assert torch.equal(value, b.network.state_dict()[name])


def test_a_race_of_one_is_a_training(graph):
    (fitted,), standings = successive_halving(graph, {"enc": QUICK}, seed=3)
    same(fitted, train(graph, QUICK, seed=3))
    assert standings["enc"].outcome == "won"


def test_pauses_change_nothing(graph):
    paused = Training(graph, QUICK, seed=3)
    for until in (1, 2, 9, None):
        paused.advance(threading.Event(), until)
        torch.rand(7)  # somebody else's random numbers
    same(paused.result(), train(graph, QUICK, seed=3))


def ahead(alone, epochs, weights=(1,)):
    """Everybody, the best first, after so many epochs on each fold, counted by hand."""

    def key(name):
        best = [
            max(
                zip(
                    one.history["val_accuracy"][:epochs],
                    (-x for x in one.history["val_loss"]),
                    strict=False,
                )
            )
            for one in alone[name]
        ]
        return tuple(
            sum(w * value for w, value in zip(weights, part, strict=True))
            for part in zip(*best, strict=True)
        )

    return sorted(alone, key=key, reverse=True)


def test_every_entrant_is_as_if_alone_and_round_by_round_the_best_on_validation_go_on(graph):
    (fitted,), standings = successive_halving(graph, CANDIDATES, seed=3)
    alone = {name: [train(graph, settings, seed=3)] for name, settings in CANDIDATES.items()}
    two = ahead(alone, 8)[:2]
    winner, second = ahead({name: alone[name] for name in CANDIDATES if name in two}, 14)
    assert winner not in (
        ahead(alone, 8)[0],
        ahead(alone, None)[0],
    )  # neither the first round nor the end would elect it
    same(fitted, alone[winner][0])
    epochs = dict.fromkeys(CANDIDATES, 8) | {second: 14, winner: fitted.epochs}
    assert {name: (standing.outcome, standing.epochs) for name, standing in standings.items()} == {
        name: ("won" if name == winner else "stopped", epochs[name]) for name in CANDIDATES
    }
    assert standings[winner].val_accuracy == fitted.metrics["val_accuracy"]


def two_folds(graph, seed):
    """With 30 and with 10 validation nodes."""
    nodes = torch.randperm(len(graph.labels), generator=torch.Generator().manual_seed(seed))
    return graph.with_splits([Split(nodes[:60].sort().values, nodes[60:90].sort().values, nodes[90:90]),
                              Split(nodes[40:100].sort().values, nodes[100:110].sort().values, nodes[90:90])])  # fmt: skip


def test_over_several_folds_the_mean_over_their_validation_nodes_decides(graph):
    folds = two_folds(graph, 0)
    fitted, standings = successive_halving(folds, CANDIDATES, folds=(0, 1), seed=3)
    alone = {
        name: [train(folds, settings, fold=i, seed=3 + i) for i in (0, 1)]
        for name, settings in CANDIDATES.items()
    }
    two = ahead(alone, 8, (30, 10))[:2]
    winner, second = ahead({name: alone[name] for name in CANDIDATES if name in two}, 14, (30, 10))
    assert [standings[winner].outcome, standings[second].epochs] == ["won", 14]
    mean = (
        sum(
            weight * one.metrics["val_accuracy"]
            for weight, one in zip((30, 10), alone[winner], strict=True)
        )
        / 40
    )
    assert standings[winner].val_accuracy == pytest.approx(mean)
    for one, other in zip(fitted, alone[winner], strict=True):
        same(one, other)


@pytest.mark.parametrize("monitor", ["accuracy", "macro_f1", "loss"])
def test_a_standing_has_what_the_race_is_decided_by(graph, monitor):
    entrants = {
        name: dataclasses.replace(CANDIDATES[name], monitor=monitor) for name in ("ce", "tv")
    }
    (fitted,), standings = successive_halving(graph, entrants, seed=3)
    won = next(standing for standing in standings.values() if standing.outcome == "won")
    assert won.val_score == fitted.metrics[f"val_{monitor.replace('-', '_')}"]
    assert all(math.isfinite(standing.val_score) for standing in standings.values())


@pytest.mark.parametrize(
    ("seed", "others"), [(24, [(4, (1, 1)), (4, (0, 1))]), (32, [(4, (1, 0)), (4, (0, 1))])]
)
def test_folds_that_share_have_half_a_round_each_and_half_the_patience_and_one_goes_on(
    graph, seed, others
):
    folds = two_folds(graph, seed)
    fitted, standings = successive_halving(folds, CANDIDATES, folds=(0, 1), share=True, seed=seed)
    shared = {
        name: dataclasses.replace(settings, patience=15) for name, settings in CANDIDATES.items()
    }
    alone = {
        name: [train(folds, settings, fold=i, seed=seed + i) for i in (0, 1)]
        for name, settings in shared.items()
    }
    winner = ahead(alone, 4, (30, 10))[0]
    # Nobody else's rule would elect it: a whole round on each fold, the end, one fold, or both folds alike.
    assert winner not in {
        ahead(alone, *rule)[0] for rule in (*others, (8, (30, 10)), (30, (30, 10)))
    }
    assert standings[winner].outcome == "won"
    for one, other in zip(fitted, alone[winner], strict=True):
        same(one, other)
    rest = [standing for name, standing in standings.items() if name != winner]
    assert [(standing.outcome, standing.epochs) for standing in rest] == [("stopped", 4)] * 3


def test_sharing_never_lengthens_a_patience(graph):
    hasty = {"ce": dataclasses.replace(CANDIDATES["ce"], patience=4)}
    fitted, _ = successive_halving(two_folds(graph, 0), hasty, folds=(0, 1), share=True)
    assert [one.settings.patience for one in fitted] == [4, 4]


@pytest.mark.parametrize("share", [True, False])
def test_if_the_last_one_left_diverges_the_next_goes_on_to_its_end(graph, monkeypatch, share):
    plain, folds = Training.advance, two_folds(graph, 0)
    _, undisturbed = successive_halving(folds, CANDIDATES, folds=(0, 1), share=share)
    out = {name for name, standing in undisturbed.items() if standing.outcome == "won"}
    objectives = {CANDIDATES[name].tv for name in out}

    def advance(self, interrupt, until=None, **options):
        if until is None and self.settings.tv in objectives and self.settings.lr == QUICK.lr:
            raise Diverged("diverged")
        plain(self, interrupt, until, **options)

    monkeypatch.setattr(Training, "advance", advance)
    fitted, standings = successive_halving(folds, CANDIDATES, folds=(0, 1), share=share)
    (winner,) = (name for name, standing in standings.items() if standing.outcome == "won")
    assert winner not in out
    assert {standings[name].outcome for name in out} == {"diverged"}
    for i, one in enumerate(fitted):
        same(one, train(folds, one.settings, fold=i, seed=i))


def test_who_diverges_in_one_fold_is_out_and_its_standing_is_of_the_others(graph, monkeypatch):
    two = graph.with_splits([graph.splits[0], graph.splits[0]])
    plain = Training.advance

    def advance(self, interrupt, until=None, **options):
        if self.settings.tv and self.fold == 1:
            raise Diverged("diverged")
        plain(self, interrupt, until, **options)

    monkeypatch.setattr(Training, "advance", advance)
    fitted, standings = successive_halving(
        two, {name: CANDIDATES[name] for name in ("tv", "ce")}, folds=(0, 1)
    )
    assert [one.settings for one in fitted] == [CANDIDATES["ce"]] * 2
    assert standings["tv"].outcome == "diverged"
    assert standings["tv"].val_accuracy == standings["tv"].val_accuracy
    never = halving.Standing(math.nan, math.nan, 0, "not started", math.nan)
    assert json.loads(json.dumps(never.to_dict(), allow_nan=False))["val_accuracy"] is None
    assert halving.Standing.from_dict(never.to_dict()).outcome == "not started"
    with pytest.raises(UsageError, match="at least one fold"):
        successive_halving(graph, CANDIDATES, folds=())


#: What each has on the validation nodes after 1, 2, ... epochs; NaN is where it diverges.
SCRIPTS = {
    "a": [0.9, 0.9, math.nan],
    "b": [0.8, 0.8, math.nan],
    "c": [0.7, 0.7, 0.7, 0.7, 0.7, 0.99],
    "d": [0.6, 0.6, 0.75, 0.8, 0.8, 0.8],
    "e": [0.5, 0.5, 1.0, 1.0, 1.0, 1.0],
}


@pytest.fixture
def follow(monkeypatch):
    """Entrants whose validation accuracy after each epoch is written down, in rounds of one's own."""
    plain, names = Training._end_epoch, {}

    def make(scripts, rounds):
        monkeypatch.setattr(halving, "ROUNDS", rounds)
        epochs = max(map(len, scripts.values()))
        made = {
            name: dataclasses.replace(QUICK.for_objective("ce"), epochs=epochs, dropout=i / 10)
            for i, name in enumerate(scripts)
        }
        names.update({settings.dropout: scripts[name] for name, settings in made.items()})
        return made

    def end_epoch(self):
        value = names[self.settings.dropout][self.epoch]
        if math.isnan(value):
            raise Diverged("diverged")
        monkeypatch.setattr(
            self.runner, "validate", lambda: {"val_loss": 1.0, "val_accuracy": value}
        )
        return plain(self)

    monkeypatch.setattr(Training, "_end_epoch", end_epoch)
    return make


@pytest.fixture
def scripted(follow):
    return follow(SCRIPTS, ((2, 3), (4, 2), (5, 1)))


def outcomes(standings):
    return {name: (standing.outcome, standing.epochs) for name, standing in standings.items()}


def test_who_diverges_is_replaced_by_the_next(graph, scripted):
    # After 2 epochs a, b, c are left; a and b diverge, so that of the two places of the next round one is d's, which is behind c in it only
    # until epoch 4. After 5 epochs d is ahead. c would be at the end, and e would have been had it gone on: neither counts.
    (fitted,), standings = successive_halving(graph, scripted)
    assert outcomes(standings) == {
        "a": ("diverged", 2),
        "b": ("diverged", 2),
        "c": ("stopped", 5),
        "d": ("won", 6),
        "e": ("stopped", 2),
    }
    assert fitted.history["val_accuracy"] == SCRIPTS["d"]


def test_a_round_is_judged_by_its_own_epochs_also_when_the_race_goes_on_later(
    graph, follow, tmp_path
):
    # a and b are ahead and diverge, one in the second round and one after it. What c does then must not count in the rounds of next time.
    entrants = follow(
        {"a": [0.9, 0.9, math.nan], "b": [0.8] * 4 + [math.nan], "c": [0.7, 0.7, 0.95, 0.95, 0.95]},
        ((2, 2), (4, 1)),
    )
    expected = {"a": ("diverged", 2), "b": ("diverged", 4), "c": ("won", 5)}
    for _ in range(2):
        assert outcomes(successive_halving(graph, entrants, checkpoint=tmp_path)[1]) == expected


def test_on_a_tie_the_first_one_is_ahead_whoever_was_ahead_before(graph, follow):
    entrants = follow(
        {"a": [0.7, 0.7, 0.9, 0.9], "b": [0.8, 0.8, 0.9, 0.9], "c": [0.1] * 4}, ((2, 2), (3, 1))
    )
    assert outcomes(successive_halving(graph, entrants)[1]) == {
        "a": ("won", 4),
        "b": ("stopped", 3),
        "c": ("stopped", 2),
    }


def test_a_ctrl_c_in_any_round_keeps_the_best_so_far_and_goes_on(graph, scripted, tmp_path):
    whole, standings = successive_halving(graph, scripted)
    for after in range(1, 19):
        seen = 0

        def stop(name, epoch, row, after=after):
            nonlocal seen
            seen += 1
            if seen == after:
                signal.raise_signal(signal.SIGINT)

        folder = tmp_path / str(after)
        (fitted,), there = successive_halving(graph, scripted, checkpoint=folder, report=stop)
        assert fitted.interrupted == (seen >= after)
        assert [standing.outcome for standing in there.values()].count("won") == 1
        (again,), ended = successive_halving(graph, scripted, checkpoint=folder)
        same(again, whole[0])
        assert ended == standings


def test_a_report_says_which_fold_it_is_of(graph, scripted):
    said = set()
    successive_halving(
        two_folds(graph, 0),
        {"e": scripted["e"]},
        folds=(0, 1),
        report=lambda name, epoch, row: said.add(name),
    )
    successive_halving(graph, {"e": scripted["e"]}, report=lambda name, epoch, row: said.add(name))
    assert said == {"e fold 1/2", "e fold 2/2", "e"}


def test_one_fold_has_nothing_to_share(graph):
    assert (
        successive_halving(graph, CANDIDATES, share=True)[1]
        == successive_halving(graph, CANDIDATES)[1]
    )


def test_on_a_tie_the_first_one_wins(graph):
    for names in (("a", "b", "c"), ("c", "a", "b")):
        _, standings = successive_halving(graph, dict.fromkeys(names, QUICK))
        assert standings[names[0]].outcome == "won"


def test_who_diverges_is_out(graph):
    wild = dataclasses.replace(QUICK, lr=1e30, lr_gnn=1e30)
    (fitted,), standings = successive_halving(graph, {"wild": wild, "ce": CANDIDATES["ce"]})
    same(fitted, train(graph, CANDIDATES["ce"]))
    assert "lower the learning rates" in standings["wild"].outcome
    with pytest.raises(Diverged, match="lower the learning rates"):
        successive_halving(graph, {"wild": wild})


@pytest.fixture(scope="module", params=[{}, {"folds": (0, 1), "share": True}])
def race(request, graph):
    """A graph, the options of a race on it, and how the race ends when nothing disturbs it."""
    how = request.param
    graph = two_folds(graph, 0) if how else graph
    return graph, how, successive_halving(graph, CANDIDATES, **how)


@pytest.mark.parametrize("after", [3, 11, 25, 36, 42, 45, 55])
def test_interrupted_anywhere_it_goes_on_to_the_same_end(race, tmp_path, after):
    graph, how, (undisturbed, standings) = race
    seen = 0

    def stop(name, epoch, row):
        nonlocal seen
        seen += 1
        if seen == after:
            raise KeyboardInterrupt  # as a second Ctrl-C, or a kill: nothing is tidied up

    with pytest.raises(KeyboardInterrupt):
        successive_halving(graph, CANDIDATES, **how, checkpoint=tmp_path / "training", report=stop)
    fitted, again = successive_halving(graph, CANDIDATES, **how, checkpoint=tmp_path / "training")
    for one, other in zip(fitted, undisturbed, strict=True):
        same(one, other)
    assert again == standings


def test_the_classifier_races_by_default_and_says_who_won(graph, tmp_path):
    model = NodeClassifier("gcn", settings={"epochs": 30, "hidden_channels": 8}).fit(graph)
    assert set(model.standings_) == {"ce", "enc", "light-ce", "light-enc"}
    assert model.standings_[model.objective_].outcome == "won"
    assert model.fitted_.settings == candidates(epochs=30, hidden_channels=8)[model.objective_]
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert (again.objective_, again.standings_) == (model.objective_, model.standings_)
    assert (again.predict(graph) == model.predict(graph)).all()


def test_a_weight_of_ones_own_holds_for_every_entrant_that_has_the_term():
    found = candidates(tv=3.0)
    assert [(name, settings.tv) for name, settings in found.items()] == [
        ("ce", 0.0),
        ("enc", 3.0),
        ("light-ce", 0.0),
        ("light-enc", 3.0),
    ]


def test_no_entrants_are_refused(graph):
    with pytest.raises(UsageError, match="at least one"):
        successive_halving(graph, {})


def test_a_full_disk_is_no_divergence(graph, monkeypatch, tmp_path):
    """It ends the race, which goes on when there is room; it must not decide who wins."""
    plain, calls = TrainingState.save, iter(range(100))

    def save(self, path):
        if next(calls) == 0:
            raise DataError("Cannot write: No space left on device.")
        plain(self, path)

    monkeypatch.setattr(TrainingState, "save", save)
    with pytest.raises(DataError, match="No space left"):
        successive_halving(graph, CANDIDATES, checkpoint=tmp_path)
    _, standings = successive_halving(graph, CANDIDATES, checkpoint=tmp_path)
    assert outcomes(standings) == outcomes(successive_halving(graph, CANDIDATES)[1])
