"""The refit on all labels: more labels teach, and the measured model stays out of sample."""

from __future__ import annotations

import dataclasses
from copy import copy

import numpy as np
import pytest
import torch

from everynode import NodeClassifier
from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import EverynodeError
from everynode.graph import Split
from everynode.selection import refit as refit_module
from everynode.selection.refit import PREFIX, labels_to_teach

SMALL = {"epochs": 10, "hidden_channels": 8}
QUICK = {"effort": "quick", "time_limit": "5m", "settings": SMALL, "verbose": False}


@pytest.fixture(scope="module")
def graph():
    return generate(150, 500, 8, 3, seed=0)


@pytest.fixture(scope="module")
def measured(graph):
    return NodeClassifier(**QUICK).fit(graph)


@pytest.fixture(scope="module")
def delivered(measured, graph):
    return measured.refit(graph)


def test_all_labels_teach_the_same_members_with_the_same_weights(measured, delivered, graph):
    assert measured.num_labels_ == len(graph.nodes("train"))
    assert delivered.num_labels_ == graph.num_nodes
    before, after = (
        {member.candidate.name: member.weight for member in model.ensemble_}
        for model in (measured, delivered)
    )
    assert after == pytest.approx(before)
    assert delivered.leaderboard_ is measured.leaderboard_
    assert delivered.predict_proba(graph).sum(1) == pytest.approx(np.ones(graph.num_nodes))


def test_every_label_has_an_out_of_fold_prediction_that_calibrates(delivered, graph):
    nodes = delivered.held_out_.nodes
    assert sorted(nodes.tolist()) == list(range(graph.num_nodes))
    assert delivered.held_out_.log_probabilities.exp().sum(1).tolist() == pytest.approx(
        [1.0] * graph.num_nodes
    )
    for member in delivered.ensemble_:  # a closed form is solved on the split of all labels
        assert {result.fold for result in member.results} in ({0, 1, 2}, {3})
    assert delivered.num_folds_ == 3


def test_the_measured_classifier_stays_as_it_is(measured, graph):
    before, score = measured.predict_proba(graph), measured.score(graph)
    measured.refit(graph)
    assert np.array_equal(measured.predict_proba(graph), before)
    assert measured.score(graph) == score


def test_a_held_out_label_teaches_the_delivered_model_only(graph):
    """The test labels are shuffled: the measured model cannot know, the delivered one learns."""
    test = graph.nodes("test")
    labels = graph.labels.clone()
    labels[test] = (labels[test] + 1) % 3
    other = graph.with_labels(labels.tolist(), graph.classes)
    named = {"backbone": "gcn", "objective": "ce", "settings": SMALL, "verbose": False}
    models = [NodeClassifier(**named).fit(one) for one in (graph, other)]
    first, second = (model.predict_proba(graph) for model in models)
    assert np.array_equal(first, second)
    first, second = (
        model.refit(one).predict_proba(graph)
        for model, one in zip(models, (graph, other), strict=True)
    )
    assert np.abs(first - second).max() > 0.05


@pytest.mark.parametrize(("objective", "networks"), [("auto", 1), ("ce", 4)])
def test_a_single_model_is_refitted_on_folds_of_all_labels(graph, objective, networks, tmp_path):
    settings = SMALL | {"n_estimators": networks}
    model = NodeClassifier("gcn", objective, settings=settings, verbose=False).fit(graph)
    again = model.refit(graph, checkpoint=tmp_path)
    assert len(model.networks_) == networks
    assert len(again.networks_) == (3 if len(model.networks_) == 1 else 6)
    assert again.num_labels_ == graph.num_nodes
    assert again.fitted_.settings == model.fitted_.settings
    assert all(file.name.startswith(PREFIX) for file in tmp_path.glob("*.safetensors"))
    again.save(tmp_path / "m")
    loaded = NodeClassifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(graph), again.predict_proba(graph))
    assert loaded.num_labels_ == graph.num_nodes


def test_a_checkpoint_continues_beside_the_files_of_the_fit(graph, delivered, tmp_path):
    model = NodeClassifier(**QUICK).fit(graph, checkpoint=tmp_path)
    before = {file.name for file in tmp_path.iterdir()}
    model.refit(graph, checkpoint=tmp_path)
    files = [file for file in tmp_path.iterdir() if file.name not in before]
    assert files
    assert all(file.name.startswith(PREFIX) for file in files)
    files[0].unlink()
    times = {file: file.stat().st_mtime_ns for file in files[1:]}
    again = model.refit(graph, checkpoint=tmp_path)
    assert files[0].exists()
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == times
    assert np.array_equal(again.predict_proba(graph), delivered.predict_proba(graph))


def test_members_without_all_folds_are_left_out(measured, graph, monkeypatch):
    ensemble, real, ran = measured.ensemble_, refit_module.Job, []
    best = dataclasses.replace(ensemble.members[0], weight=0.6)
    renamed = dataclasses.replace(best.candidate, name="other")
    other = dataclasses.replace(best, weight=0.4, candidate=renamed)
    measured = copy(measured)
    measured.ensemble_ = dataclasses.replace(ensemble, members=(best, other))

    def stop(runner, units):
        """Run the first member whole and the second one on one fold."""
        names = list(runner.race.candidates)
        jobs = [real(names[0], *unit) for unit in units] + [real(names[1], *units[0])]
        ran.extend(jobs)
        runner.run(jobs)

    monkeypatch.setattr(refit_module, "_train", stop)
    model = measured.refit(graph)
    (member,) = model.ensemble_
    assert (member.candidate.name, member.weight) == (ran[0].candidate, 1.0)
    monkeypatch.setattr(refit_module, "_train", lambda runner, units: None)
    with pytest.raises(EverynodeError, match="could learn from all labels"):
        measured.refit(graph)


def test_some_labels_may_teach(measured, graph):
    nodes = torch.cat([graph.nodes("train"), graph.nodes("val")])
    model = measured.refit(graph, nodes)
    assert model.num_labels_ == len(nodes)
    assert sorted(model.held_out_.nodes.tolist()) == sorted(nodes.tolist())


def test_which_labels_teach():
    given = generate(60, 120, 8, 3)
    bare, nodes = given.with_splits([]), torch.arange(60)
    drawn = given.with_splits([Split(nodes[:30], nodes[30:40], nodes[40:])])
    assert labels_to_teach(bare, drawn, refit=False) is None
    assert labels_to_teach(bare, drawn).tolist() == nodes.tolist()
    assert labels_to_teach(drawn, drawn) is None
    assert labels_to_teach(drawn, drawn, refit=True).tolist() == nodes.tolist()
    # The user named the test nodes; the validation nodes were drawn from the training nodes.
    named = given.with_splits([Split(nodes[:40], nodes[:0], nodes[40:])])
    assert labels_to_teach(named, drawn).tolist() == nodes[:40].tolist()
    # Folds of all labels: nothing is left to learn from.
    assert labels_to_teach(bare, given.with_splits([Split(nodes, nodes[:0], nodes[:0])])) is None


def test_members_learn_on_the_mini_batches_of_the_measured_model(graph):
    model = NodeClassifier(**QUICK, batch_size=32).fit(graph)
    before, after = (
        {
            member.candidate.name: {one.batches for one in member.results}
            for member in each.ensemble_
        }
        for each in (model, model.refit(graph))
    )
    assert after == before
    assert {Batches(32)} in after.values() or {None} in after.values()
