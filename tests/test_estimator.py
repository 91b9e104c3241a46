"""NodeClassifier: a scikit-learn classifier, on matrices and on graphs."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import everynode as en
from everynode import Graph, NodeClassifier, Split
from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.estimator_settings import Choices
from everynode.evaluation.calibration import temperature
from everynode.presets import candidates
from everynode.selection.cross_validation import with_validation
from everynode.training import train

SMALL = {"epochs": 15, "hidden_channels": 8}
QUICK = {"backbone": "gcn", "settings": SMALL, "verbose": False}


def more(parameters: dict, networks: object) -> dict:
    """The same parameters, with several networks per fold."""
    return parameters | {"settings": parameters["settings"] | {"n_estimators": networks}}


@parametrize_with_checks(
    [NodeClassifier(effort="quick", settings={"epochs": 30})],
    expected_failed_checks=lambda _: {
        "check_classifiers_classes": "it uses -1 as a real label, and here -1 means unlabeled",
    },
    xfail_strict=True,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def arrays(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels and edges of three classes that are easy to tell apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    features = np.eye(3)[labels] @ (2 * rng.normal(size=(3, 6))) + 0.3 * rng.normal(size=(n, 6))
    source = rng.integers(0, n, 3 * n)
    target = np.where(
        rng.random(3 * n) < 0.8,
        (source + 3 * rng.integers(1, n // 3, 3 * n)) % n,
        rng.integers(0, n, 3 * n),
    )
    return features.astype(np.float32), labels, np.stack([source, target])


def folds(n: int, count: int, seed: int = 0) -> list[Split]:
    rng = np.random.default_rng(seed)
    parts = [
        torch.from_numpy(rng.permutation(n)).split([n // 3, n // 3, n - 2 * (n // 3)])
        for _ in range(count)
    ]
    return [Split(*(p.sort().values for p in part)) for part in parts]


@pytest.fixture(scope="module")
def graph() -> Graph:
    X, y, edges = arrays()
    return Graph.from_arrays(X, edges, y, splits=folds(len(y), 1), name="toy")


@pytest.fixture(scope="module")
def model(graph) -> NodeClassifier:
    return NodeClassifier(**QUICK).fit(graph)


# ---------------------------------------------------------------------- fit, predict, score


def test_fit_on_a_graph_is_the_same_training(graph, model):
    settings = candidates(epochs=15, hidden_channels=8)[model.objective_]
    assert settings.cvg > 0
    fitted = train(graph, settings, seed=0)
    for name, value in fitted.network.state_dict().items():
        assert torch.equal(value, model.network_.state_dict()[name])
    assert model.history_ == fitted.history
    assert (model.best_epoch_, model.n_iter_, model.n_features_in_) == (fitted.best_epoch, 15, 6)
    assert model.classes_.tolist() == [0, 1, 2]


def test_an_ensemble_is_the_mean_of_its_networks(graph, tmp_path):
    """Each is the network of its seed; saved, loaded and exported it predicts the same."""
    quick = QUICK | {"objective": "enc"}
    together = NodeClassifier(**more(quick, 3) | {"random_state": 5}).fit(graph)
    alone = [
        NodeClassifier(**quick | {"random_state": seed}).fit(graph).log_probabilities(graph).exp()
        for seed in (5, 6, 7)
    ]
    assert (alone[0] - alone[1]).abs().max() > 1e-3, "no difference: this test would see nothing"
    mean = torch.stack(alone).mean(0).numpy()
    assert together.log_probabilities(graph).exp().numpy() == pytest.approx(mean, abs=1e-12)
    probabilities = together.predict_proba(graph)
    together.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(graph), probabilities)
    assert len(again.networks_) == 3
    together.export(tmp_path / "net.pt2")
    arcs = graph.edge_index
    program = torch.export.load(tmp_path / "net.pt2").module()
    assert program(
        graph.dense_features, arcs, torch.ones(arcs.shape[1])
    ).detach().numpy() == pytest.approx(probabilities, abs=2e-6)
    (tmp_path / "model" / "3" / "model.json").unlink()
    with pytest.raises(DataError, match=r"model\.json is missing"):
        NodeClassifier.load(tmp_path / "model")


def test_an_ensemble_goes_on_from_its_checkpoints(graph, tmp_path):
    whole = NodeClassifier(**more(QUICK, 2) | {"objective": "auto"}).fit(graph)
    first = NodeClassifier(**QUICK | {"objective": "auto"}).fit(graph, checkpoint=tmp_path)
    again = NodeClassifier(**more(QUICK, 2) | {"objective": "auto"}).fit(graph, checkpoint=tmp_path)
    assert np.array_equal(again.predict_proba(graph), whole.predict_proba(graph))
    assert again.objective_ == first.objective_
    assert {path.name for path in tmp_path.iterdir()} >= {"network-2.safetensors"}
    for wrong in (0, 2.0, "2", None):
        with pytest.raises(UsageError, match="n_estimators"):
            NodeClassifier(**more(QUICK, wrong)).fit(graph)


def test_an_ensemble_that_is_interrupted_keeps_what_it_has(graph, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("everynode.selection.ensemble.train", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = NodeClassifier(**more(QUICK, 3)).fit(graph)
    assert len(model.networks_) == 1
    assert model.predict_proba(graph).shape == (graph.num_nodes, graph.num_classes)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
@pytest.mark.parametrize("objective", ["enc", "ce", "mi+tv"])
def test_every_backbone_and_objective(graph, backbone, objective):
    model = NodeClassifier(**QUICK | {"backbone": backbone, "objective": objective}).fit(graph)
    assert (
        set(model.history_) - {"ce", "total", "val_loss", "val_accuracy"}
        == {"enc": {"mi", "tv", "cvg"}, "ce": set(), "mi+tv": {"mi", "tv"}}[objective]
    )
    assert model.fitted_.settings.backbone == backbone


def test_probabilities_are_probabilities(graph, model):
    p = model.predict_proba(graph)
    assert p.shape == (90, 3)
    assert (p >= 0).all()
    assert np.abs(p.sum(1) - 1).max() < 1e-12
    assert (model.predict(graph) == model.classes_[p.argmax(1)]).all()


def test_predictions_do_not_depend_on_chance(graph, model):
    """No dropout when predicting."""
    assert (model.predict_proba(graph) == model.predict_proba(graph)).all()


def test_score_is_the_share_that_is_right(graph, model):
    predicted = model.predict(graph)
    for part in ("train", "val", "test"):
        nodes = getattr(graph.splits[0], part).numpy()
        assert model.score(graph, part) == np.mean(predicted[nodes] == graph.labels.numpy()[nodes])
    assert model.score(graph) == model.score(graph, "test")


def test_it_learns_from_arrays_with_edges():
    X, y, edges = arrays()
    model = NodeClassifier(
        objective="ce", settings={"epochs": 60, "dropout": 0.0, "layer_dropout": 0.0}, verbose=False
    ).fit(X, y, edge_index=edges)
    assert model.score(X, y, edge_index=edges) > 0.85
    without = model.predict_proba(X)
    assert not np.allclose(without, model.predict_proba(X, edge_index=edges)), (
        "the edges make no difference"
    )


def test_edge_weights_matter():
    X, y, edges = arrays()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, edges.shape[1])
    model = NodeClassifier(**QUICK).fit(X, y, edge_index=edges, edge_weight=weight)
    assert not np.allclose(
        model.predict_proba(X, edge_index=edges),
        model.predict_proba(X, edge_index=edges, edge_weight=weight),
    )


def test_sparse_features_give_what_dense_ones_give():
    X, y, edges = arrays()
    X[X < 1] = 0
    dense, sparse = (
        NodeClassifier(**QUICK).fit(m, y, edge_index=edges) for m in (X, scipy.sparse.csr_array(X))
    )
    assert np.allclose(
        dense.predict_proba(X, edge_index=edges),
        sparse.predict_proba(scipy.sparse.csr_array(X), edge_index=edges),
        atol=1e-4,
    )


# ---------------------------------------------------------------------- labels


LABELS = {
    "-1": lambda y, gone: np.where(gone, -1, y),
    "-1 as float": lambda y, gone: np.where(gone, -1.0, y),
    "NaN": lambda y, gone: np.where(gone, np.nan, y),
    "None among strings": lambda y, gone: np.array(
        [None if g else "abc"[v] for v, g in zip(y, gone, strict=True)], dtype=object
    ),
    "None among numbers": lambda y, gone: np.array(
        [None if g else int(v) for v, g in zip(y, gone, strict=True)], dtype=object
    ),
    "NaN among strings": lambda y, gone: np.array(
        [np.nan if g else "abc"[v] for v, g in zip(y, gone, strict=True)], dtype=object
    ),
    "a list with None": lambda y, gone: [
        None if g else "abc"[v] for v, g in zip(y, gone, strict=True)
    ],
}


@pytest.fixture(scope="module")
def half_labeled():
    X, y, edges = arrays()
    return X, y, edges, np.random.default_rng(1).random(len(y)) < 0.5


@pytest.mark.parametrize("kind", LABELS)
def test_unlabeled_nodes_by_any_name(half_labeled, kind):
    X, y, edges, gone = half_labeled
    expected = NodeClassifier(**QUICK).fit(X, np.where(gone, -1, y), edge_index=edges)
    model = NodeClassifier(**QUICK).fit(X, LABELS[kind](y, gone), edge_index=edges)
    assert model.classes_.tolist() in ([0, 1, 2], ["a", "b", "c"])
    assert (
        model.predict_proba(X, edge_index=edges) == expected.predict_proba(X, edge_index=edges)
    ).all()


@pytest.mark.parametrize("kind", LABELS)
def test_unlabeled_nodes_do_not_count_in_a_score(half_labeled, kind):
    X, y, edges, gone = half_labeled
    labels = LABELS[kind](y, gone)
    model = NodeClassifier(**QUICK).fit(X, np.where(gone, -1, y), edge_index=edges)
    if "strings" in kind or "list" in kind:
        model.classes_ = np.array(["a", "b", "c"])
    expected = np.mean(
        (model.predict(X, edge_index=edges) == np.array(labels, dtype=object))[~gone]
    )
    assert model.score(X, labels, edge_index=edges) == pytest.approx(expected)


def test_unlabeled_nodes_take_part_all_the_same(half_labeled):
    X, y, edges, gone = half_labeled
    labels = np.where(gone, -1, y)
    a = NodeClassifier(**QUICK).fit(X, labels, edge_index=edges)
    other = X.copy()
    other[gone] += 1
    b = NodeClassifier(**QUICK).fit(other, labels, edge_index=edges)
    assert not np.allclose(
        a.predict_proba(X, edge_index=edges), b.predict_proba(X, edge_index=edges)
    )


def test_classes_may_be_strings():
    X, y, edges = arrays()
    names = np.array(["zebra", "ant", "moth"])[y]
    model = NodeClassifier(**QUICK).fit(X, names, edge_index=edges)
    assert model.classes_.tolist() == ["ant", "moth", "zebra"]
    assert set(model.predict(X, edge_index=edges)) <= {"ant", "moth", "zebra"}
    assert model.score(X, names, edge_index=edges) == np.mean(
        model.predict(X, edge_index=edges) == names
    )


def test_classes_may_be_any_integers():
    X, y, edges = arrays()
    model = NodeClassifier(**QUICK).fit(X, 10 * y + 5, edge_index=edges)
    assert model.classes_.tolist() == [5, 15, 25]
    assert set(model.predict(X, edge_index=edges)) <= {5, 15, 25}


# ---------------------------------------------------------------------- holding out


def test_held_out_nodes_are_a_stratified_part_of_the_training_nodes(graph):
    none = torch.zeros(0, dtype=torch.int64)
    own = graph.splits[0]
    bare = graph.with_splits([Split(torch.cat([own.train, own.val]).sort().values, none, own.test)])
    made, folds = with_validation(bare, cv=0.25)
    (split,) = made.splits
    assert list(folds) == [0]
    assert sorted([*split.train.tolist(), *split.val.tolist()]) == bare.splits[0].train.tolist()
    assert torch.equal(split.test, own.test)
    assert not set(split.val.tolist()) & set(split.train.tolist())
    assert len(split.val) == 15
    whole, held = (
        torch.bincount(graph.labels[nodes], minlength=3)
        for nodes in (bare.splits[0].train, split.val)
    )
    assert ((held - 0.25 * whole).abs() <= 1).all()


def test_test_nodes_stay_out_of_training_when_validation_is_held_out(graph):
    none = torch.zeros(0, dtype=torch.int64)
    bare = graph.with_splits([graph.splits[0]._replace(val=none)])
    labels = graph.labels.clone()
    labels[bare.splits[0].test] = (labels[bare.splits[0].test] + 1) % 3
    turned = Graph.from_arrays(graph.features, graph.edges, labels, splits=bare.splits)
    a, b = (NodeClassifier(**QUICK).fit(g) for g in (bare, turned))
    assert (a.predict_proba(graph) == b.predict_proba(graph)).all()
    assert a.score(bare, "test") != b.score(turned, "test")


@pytest.mark.parametrize("cv", ["auto", 2, 5])
def test_cross_validation_averages_a_network_of_every_fold_and_judges_each_label_by_one_that_did_not_learn_it(
    graph, cv
):
    bare, seen = graph.with_splits([]), set(range(90))
    model = NodeClassifier(**QUICK, objective="tv", cv=cv, random_state=4).fit(bare)
    count = 3 if cv == "auto" else cv
    assert len(model.networks_) == count
    assert sorted(model.held_out_.nodes.tolist()) == list(range(90)), "every label judges once"
    folded, folds = with_validation(bare, cv=None if cv == "auto" else cv, seed=4)
    alone, told = [], {}
    for number, fold in enumerate(folds):
        split = folded.splits[fold]
        assert set(split.train.tolist()) | set(split.val.tolist()) == seen
        assert not set(split.train.tolist()) & set(split.val.tolist())
        network = train(folded, model.fitted_.settings, fold=fold, seed=4 + number).network
        with torch.no_grad():
            alone.append(torch.softmax(network(graph).double(), dim=1))
        told |= {node: alone[-1][node] for node in split.val.tolist()}
    mean = torch.stack(alone).mean(0)
    assert torch.allclose(model.log_probabilities(graph).exp(), mean, atol=1e-6)
    found = model.held_out_.log_probabilities.exp()
    assert all(
        torch.allclose(row, told[node], atol=1e-6)
        for node, row in zip(model.held_out_.nodes.tolist(), found, strict=True)
    )


def test_an_ensemble_of_folds_has_so_many_networks_of_each_and_is_saved(graph, tmp_path):
    model = NodeClassifier(**more(QUICK, 2), objective="ce", cv=2).fit(graph.with_splits([]))
    assert [fitted.fold for fitted in (model.fitted_, *model._more)] == [0, 1, 0, 1]
    assert len({fitted.seed for fitted in (model.fitted_, *model._more)}) == 4
    truth = graph.labels[model.held_out_.nodes]
    expected = temperature(model.held_out_.log_probabilities, truth)
    assert model.held_out_temperature_ == expected != 1.0
    assert 0 < model.temperature_ <= expected  # the average of the folds is less sure
    model.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert (again.predict_proba(graph) == model.predict_proba(graph)).all()
    assert again.cv == 2


def test_where_there_are_validation_nodes_or_many_labels_nothing_is_folded(graph):
    assert len(NodeClassifier(**QUICK, objective="ce", cv=3).fit(graph).networks_) == 1
    X, y, edges = arrays(180)
    assert len(NodeClassifier(**QUICK, objective="ce").fit(X, y, edge_index=edges).networks_) == 1
    few = np.where(np.arange(180) < 99, y, -1)
    assert len(NodeClassifier(**QUICK, objective="ce").fit(X, few, edge_index=edges).networks_) == 3


def test_interrupted_cross_validation_goes_on_to_the_same_end(graph, tmp_path):
    bare = graph.with_splits([])
    whole = NodeClassifier(**QUICK, cv=2).fit(bare)
    NodeClassifier(**QUICK, cv=2).fit(bare, checkpoint=tmp_path)
    for state in list(tmp_path.iterdir())[::2]:
        state.unlink()  # as if killed before these were begun
    again = NodeClassifier(**QUICK, cv=2).fit(bare, checkpoint=tmp_path)
    assert (again.predict_proba(graph) == whole.predict_proba(graph)).all()
    assert again.standings_ == whole.standings_


@pytest.mark.parametrize("preset", ["tuned", "paper"])
def test_folds_of_ones_own_labels_do_not_change_which_settings_a_preset_has(preset):
    graph = en.load("citeseer")
    own = graph.splits[0]
    few = graph.with_splits([Split(own.train[:60], own.val[:0], own.test)])
    tiny = {"preset": preset, "epochs": 1, "hidden_channels": 4}
    once, folded = (
        NodeClassifier(objective="enc", settings=tiny, cv=cv).fit(few).fitted_.settings
        for cv in (0.2, 3)
    )
    choices = Choices.of(NodeClassifier(objective="enc", settings=tiny))
    assert once == folded == choices.candidates(few)["enc"]


def test_folds_of_a_race_share_its_epochs_where_labels_are_few_and_nobody_said_how_long(graph):
    few = graph.with_splits([])
    assert int((few.labels >= 0).sum()) == 90
    short = {"epochs": 90, "hidden_channels": 4}
    quick = {"backbone": "gcn", "settings": short, "random_state": 3}

    def stopped(model):
        return sorted(
            standing.epochs
            for standing in model.standings_.values()
            if standing.outcome == "stopped"
        )

    for folds, patience, epochs in ((3, 33, 20), (2, 50, 30), (6, 20, 10)):
        model = NodeClassifier(**quick, cv=folds).fit(few)
        assert model.fitted_.settings.patience == patience
        assert stopped(model) == [epochs] * 3
    two = NodeClassifier(**more(quick, 2), cv=2).fit(few)
    assert {made.settings.patience for made in (two.fitted_, *two._more)} == {50}
    assert len(two.networks_) == 4
    for asked in ({"cv": 0.2}, {"cv": 3, "settings": short | {"patience": 100}}):
        model = NodeClassifier(**quick | asked).fit(few)
        assert model.fitted_.settings.patience == 100
        assert stopped(model) == [20, 40, 80]
    assert NodeClassifier(**quick, cv=3, objective="ce").fit(few).fitted_.settings.patience == 100


def test_a_column_of_labels_is_taken_with_a_warning_that_names_the_caller():
    X, y, edges = arrays()
    with pytest.warns(DataConversionWarning, match="column-vector") as caught:
        NodeClassifier(settings={"epochs": 1, "hidden_channels": 4}, objective="ce").fit(
            X, y[:, None], edge_index=edges
        )
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]


def test_who_predicts_without_the_edges_is_warned():
    X, y, edges = arrays()
    quick = {"settings": {"epochs": 1, "hidden_channels": 4}, "objective": "ce"}
    model = NodeClassifier(**quick).fit(X, y, edge_index=edges)
    with pytest.warns(UserWarning, match="edge_index is missing"):
        model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X, edge_index=edges)
        NodeClassifier(**quick).fit(X, y).predict(X)


def test_with_many_labels_every_fold_has_a_whole_race():
    many = generate(150, 400, 6, 3, seed=1).with_splits([])
    model = NodeClassifier("gcn", settings={"epochs": 3, "hidden_channels": 4}, cv=2).fit(many)
    assert model.fitted_.settings.patience == 100


def test_a_loaded_model_scores_on_the_fold_that_it_was_fitted_on(graph, tmp_path):
    none = torch.zeros(0, dtype=torch.int64)
    two = graph.with_splits([split._replace(val=none) for split in folds(90, 2, seed=3)])
    model = NodeClassifier(**QUICK, objective="ce").fit(two, fold=1)
    model.save(tmp_path / "model")
    assert (
        NodeClassifier.load(tmp_path / "model").score(two)
        == model.score(two)
        == model.score(two, fold=1)
    )


def test_auc_needs_two_classes_in_every_fold(graph):
    labels = torch.full((90,), -1)
    labels[:8] = torch.tensor([0, 0, 0, 0, 0, 0, 1, 2])
    few = Graph.from_arrays(graph.features, graph.edges, labels, classes=graph.classes)
    with pytest.raises(
        DataError, match=r"of a single class, which have no AUC: hold out labels once"
    ):
        NodeClassifier(**QUICK).set_params(settings={"epochs": 3, "monitor": "auc"}).fit(few)


@pytest.mark.parametrize("cv", [0, 1, 1.0, 1.5, -0.2, float("nan"), "three", None, True])
def test_a_wrong_number_of_folds_is_refused(graph, cv):
    with pytest.raises(
        UsageError,
        match="'cv' of NodeClassifier must be 'auto', a number of folds >= 2, or a share",
    ):
        NodeClassifier(**QUICK, cv=cv).fit(graph)


def test_a_graph_without_splits_is_held_out_of_its_labeled_nodes(graph):
    model = NodeClassifier(**QUICK).fit(graph.with_splits([]))
    assert len(model.history_["val_accuracy"]) == 15
    assert model.predict(graph).shape == (90,)


def test_several_folds():
    X, y, edges = arrays()
    graph = Graph.from_arrays(X, edges, y, splits=folds(len(y), 10), name="toy")
    model = NodeClassifier(**QUICK)
    seen = {}
    for fold in (3, 7, 3):
        model.fit(graph, fold=fold)
        nodes = graph.splits[fold].test.numpy()
        assert model.score(graph, "test") == np.mean(model.predict(graph)[nodes] == y[nodes])
        assert model.fitted_.fold == fold
        p = model.predict_proba(graph)
        assert (seen.setdefault(fold, p) == p).all(), "refitting is not fitting anew"
    assert not np.allclose(seen[3], seen[7])
    assert model.score(graph, "test", fold=7) == np.mean(
        (model.predict(graph) == y)[graph.splits[7].test.numpy()]
    )
    with pytest.raises(UsageError, match="folds 0 to 9"):
        model.fit(graph, fold=10)


def test_a_fold_without_validation_nodes_keeps_its_number():
    X, y, edges = arrays()
    none = torch.zeros(0, dtype=torch.int64)
    graph = Graph.from_arrays(
        X, edges, y, splits=[s._replace(val=none) for s in folds(len(y), 4)], name="toy"
    )
    model = NodeClassifier(**QUICK).fit(graph, fold=3)
    nodes = graph.splits[3].test.numpy()
    assert model.score(graph, "test") == np.mean(model.predict(graph)[nodes] == y[nodes])


# ---------------------------------------------------------------------- on disk


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_save_and_load_give_the_same_probabilities(graph, tmp_path, backbone):
    model = NodeClassifier(
        **QUICK | {"backbone": backbone, "objective": "mi+tv", "random_state": 4}
    ).fit(graph)
    model.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert (loaded.predict_proba(graph) == model.predict_proba(graph)).all()
    assert loaded.get_params() == model.get_params()
    assert loaded.score(graph, "test") == model.score(graph, "test")
    assert loaded.history_ == model.history_
    assert (loaded.best_epoch_, loaded.n_iter_, loaded.n_features_in_) == (
        model.best_epoch_,
        model.n_iter_,
        model.n_features_in_,
    )
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == [
        "held_out.safetensors",
        "model.json",
        "model.safetensors",
    ]


def test_classes_survive_saving(tmp_path):
    X, y, edges = arrays()
    for labels in (np.array(["zebra", "ant", "moth"])[y], y + 5, y == 0):
        model = NodeClassifier(**QUICK).fit(X, labels, edge_index=edges)
        model.save(tmp_path / "model")
        loaded = NodeClassifier.load(tmp_path / "model")
        assert (loaded.predict(X, edge_index=edges) == model.predict(X, edge_index=edges)).all()
        assert loaded.classes_.dtype.kind == model.classes_.dtype.kind


def test_parameters_from_numpy_can_be_saved(graph, tmp_path):
    """As a grid over np.arange and np.linspace gives them."""
    model = NodeClassifier(
        settings={"epochs": np.int64(3), "tv": np.float64(0.5), "n_estimators": np.int64(1)},
        random_state=np.int64(1),
        verbose=np.bool_(False),
    ).fit(graph)
    model.save(tmp_path / "model")
    assert (
        NodeClassifier.load(tmp_path / "model").predict_proba(graph) == model.predict_proba(graph)
    ).all()


def test_a_model_saved_by_the_function_can_be_loaded(graph, tmp_path):
    from everynode.training import save_model

    fitted = train(graph, en.Settings(hidden_channels=8, epochs=3))
    save_model(tmp_path / "model", fitted)
    with torch.no_grad():
        expected = torch.softmax(fitted.network(graph).double(), 1).numpy()
    assert NodeClassifier.load(tmp_path / "model").predict_proba(graph) == pytest.approx(
        expected, abs=1e-14
    )


@pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens")
def test_a_model_of_the_command_line_can_be_loaded(tmp_path, monkeypatch, capsys):
    from everynode.cli import main

    monkeypatch.delenv("EVERYNODE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = f"everynode train citeseer --epochs 3 --objective tv --json --out {tmp_path}/model"
    monkeypatch.setattr(sys, "argv", command.split())
    with pytest.raises(SystemExit, match="0"):
        main()
    record = json.loads(capsys.readouterr().out)
    model = NodeClassifier.load(tmp_path / "model")
    graph = en.load("citeseer")
    assert model.score(graph, "test") == record["test_accuracy"]
    assert (model.backbone, model.objective) == ("gcn", "tv")
    assert model.classes_.tolist() == list(range(6))


def test_loading_what_is_not_a_model_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match="not a model folder"):
        NodeClassifier.load(tmp_path)


# ---------------------------------------------------------------------- as scikit-learn expects


def test_clone_and_parameters():
    model = NodeClassifier("gat", "tv", settings={"tv": 3.0, "epochs": 7}, cv=3, random_state=5)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert copy.set_params(cv=0.3, backbone="gcn").get_params()["cv"] == 0.3
    assert model.cv == 3


def test_the_parameters_are_few():
    """A dozen; everything else is a setting."""
    assert set(NodeClassifier().get_params()) == {
        "backbone", "objective", "effort", "time_limit", "settings", "class_weight",
        "cv", "n_jobs", "batch_size", "device", "random_state", "verbose",
    }  # fmt: skip


def test_a_share_of_the_labels_is_held_out_once(graph):
    model = NodeClassifier(**QUICK, objective="ce", cv=0.4).fit(graph.with_splits([]))
    assert len(model.networks_) == 1
    assert len(model.held_out_.nodes) == 36
    assert (
        len(
            NodeClassifier(effort="quick", settings=SMALL, cv=0.4)
            .fit(graph.with_splits([]))
            .held_out_.nodes
        )
        == 36
    )


def test_every_parameter_reaches_the_settings(graph):
    given = {
        "num_layers": 3, "hidden_channels": 5, "dropout": 0.25, "layer_dropout": 0.1, "normalize_features": True, "mi": 0.7, "mi_lambda": 1.5, "tv": 1.25,
        "tv_sigma": 3.0, "tv_gate": "row", "cvg": 0.5, "halves": "fixed", "lr_gnn": 0.002, "lr": 0.004, "weight_decay_gnn": 0.001,
        "weight_decay": 0.02, "epochs": 2, "patience": 9, "monitor": "auc", "class_weight": "balanced",
    }  # fmt: skip
    own = {name: given[name] for name in given if name in NodeClassifier().get_params()}
    rest = {name: value for name, value in given.items() if name not in own}
    other = {"class_weight": None, "backbone": "gat"}  # a parameter wins, a default does not
    for settings in (rest | other, en.Settings(**rest | other)):
        fitted = NodeClassifier(objective="enc", **own, settings=settings).fit(graph).fitted_
        assert {name: getattr(fitted.settings, name) for name in given} == given
        assert fitted.settings.backbone == "gat"


def test_a_setting_that_does_not_exist_is_refused(graph):
    with pytest.raises(UsageError, match=r"Unknown setting 'tw'\. Choose from"):
        NodeClassifier(settings={"tw": 1.0}).fit(graph)
    with pytest.raises(
        UsageError, match="'settings' of NodeClassifier must be None, a Settings, a"
    ):
        NodeClassifier(settings=3).fit(graph)


def test_the_device_is_checked_and_used(graph, model, tmp_path):
    same = NodeClassifier(**QUICK, device="cpu").fit(graph)
    assert (same.predict_proba(graph) == model.predict_proba(graph)).all()
    with pytest.raises(UsageError, match="device 'nowhere' cannot be used here"):
        NodeClassifier(**QUICK, device="nowhere").fit(graph)
    model.save(tmp_path / "model")
    assert (
        NodeClassifier.load(tmp_path / "model", device="cpu").predict(graph) == model.predict(graph)
    ).all()
    with pytest.raises(UsageError, match="device 'nowhere' cannot be used here"):
        NodeClassifier.load(tmp_path / "model", device="nowhere")


def test_weights_of_classes_have_an_effect(graph):
    plain, one = (
        NodeClassifier(**QUICK | {"objective": "ce"}, class_weight=w).fit(graph)
        for w in (None, {0: 50.0, 1: 0.1, 2: 0.1})
    )
    assert (one.predict(graph) == 0).sum() > (plain.predict(graph) == 0).sum()


def test_random_state_decides(graph):
    a, b, c = (
        NodeClassifier(random_state=s, **QUICK).fit(graph).predict_proba(graph) for s in (1, 1, 2)
    )
    assert (a == b).all()
    assert not (a == c).all()
    d, e = (
        NodeClassifier(random_state=np.random.RandomState(9), **QUICK)
        .fit(graph)
        .predict_proba(graph)
        for _ in range(2)
    )
    assert (d == e).all()


def test_grid_search_and_pipeline():
    """Without edges it is an ordinary classifier."""
    X, y, _ = arrays(60)
    search = GridSearchCV(
        NodeClassifier(objective="ce", **QUICK),
        {"settings": [SMALL | {"lr": 1e-6}, SMALL | {"lr": 0.1}], "cv": [2, 0.2]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_["settings"]["lr"] == 0.1
    assert search.best_score_ > 0.5
    assert make_pipeline(StandardScaler(), NodeClassifier(objective="ce", **QUICK)).fit(
        X, y
    ).predict(X).shape == (60,)


def test_outside_a_terminal_nothing_is_shown_unless_asked_for(graph, capsys):
    NodeClassifier(settings={"epochs": 2}).fit(graph)
    NodeClassifier(settings={"epochs": 2}, verbose=False).fit(graph)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


# ---------------------------------------------------------------------- helpful errors


def test_helpful_errors(graph, model):
    X, y, edges = arrays()
    with pytest.raises(NotFittedError):
        NodeClassifier().predict(graph)
    with pytest.raises(NotFittedError):
        NodeClassifier().save("nowhere")
    with pytest.raises(UsageError, match="without y, edge_index"):
        NodeClassifier(**QUICK).fit(graph, y)
    with pytest.raises(UsageError, match="-1 for unlabeled"):
        NodeClassifier(**QUICK).fit(X)
    with pytest.raises(DataError, match="90 rows of X, 5 labels"):
        NodeClassifier(**QUICK).fit(X, y[:5])
    with pytest.raises(DataError, match="at least two classes"):
        NodeClassifier(**QUICK).fit(X, np.zeros(90, dtype=int))
    with pytest.raises(DataError, match="at least two classes"):
        NodeClassifier(**QUICK).fit(X, np.full(90, -1))
    with pytest.raises(DataError, match="drop these edges"):
        NodeClassifier(**QUICK).fit(X, y, edge_index=edges + 5)
    with pytest.raises(DataError, match="only one training node"):
        NodeClassifier(**QUICK).fit(X[:3], y[:3])
    with pytest.raises(UsageError, match="'train', 'val' or 'test'"):
        model.score(graph, "holdout")
    with pytest.raises(DataError, match="has no split"):
        model.score(graph.with_splits([]), "test")
    with pytest.raises(DataError, match="made for 6 features a node"):
        model.predict(Graph.from_arrays(np.ones((4, 9)), [[0], [1]]))
    with pytest.raises(ValueError, match="9 features, but NodeClassifier is expecting 6"):
        model.predict(np.ones((4, 9)))


def test_scoring_another_graph_goes_by_the_names_of_the_classes():
    X, y, edges = arrays()
    names = np.array(["a", "b", "c"])[y]
    model = NodeClassifier(**QUICK).fit(X, names, edge_index=edges)
    some = np.flatnonzero(names != "a")  # here b is class 0, and c class 1
    other = Graph.from_arrays(
        X[some],
        np.zeros((2, 0), dtype=int),
        names[some].tolist(),
        splits=[(np.arange(3), [], np.arange(3, len(some)))],
    )
    assert other.classes == ("b", "c")
    expected = np.mean(model.predict(X[some])[3:] == names[some][3:])
    assert model.score(other, "test") == pytest.approx(expected)
    assert expected > 0.4


def test_edge_weights_are_used_in_scoring_and_refused_beside_a_graph(graph):
    X, y, edges = arrays()
    weight = np.linspace(0.1, 9.0, edges.shape[1])
    model = NodeClassifier(**QUICK).fit(X, y, edge_index=edges, edge_weight=weight)
    predicted = model.predict(X, edge_index=edges, edge_weight=weight)
    assert model.score(X, y, edge_index=edges, edge_weight=weight) == pytest.approx(
        np.mean(predicted == y)
    )
    with pytest.raises(UsageError, match="edge_weight"):
        NodeClassifier(**QUICK).fit(graph, edge_weight=weight)


def test_an_interrupted_fit_says_so(graph, monkeypatch):
    import dataclasses

    from everynode.selection import single_fit

    plain = single_fit.successive_halving

    def interrupted(*args, **options):
        fitted, standings = plain(*args, **options)
        return [dataclasses.replace(one, interrupted=True) for one in fitted], standings

    monkeypatch.setattr(single_fit, "successive_halving", interrupted)
    with pytest.warns(UserWarning, match="interrupted after 20 epochs|interrupted after"):
        NodeClassifier(**QUICK).fit(graph)


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path):
    X, y, edges = arrays()
    model = NodeClassifier(**QUICK, cv=0.2).fit(X, y, edge_index=edges)
    model.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    model.verbose = object()
    with pytest.raises(DataError, match="cannot be saved"):
        model.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    seeded = NodeClassifier(random_state=np.random.RandomState(3), **QUICK).fit(
        X, y, edge_index=edges
    )
    seeded.save(tmp_path)
    assert isinstance(NodeClassifier.load(tmp_path).random_state, int)


# ---------------------------------------------------------------------- calibration, files, and going on


def test_a_temperature_changes_probabilities_and_no_prediction(graph, model):
    assert model.temperature_ != 1.0
    with torch.no_grad():
        logits = model.network_(graph).double()
    plain, scaled = torch.softmax(logits, dim=1).numpy(), model.predict_proba(graph)
    assert not np.allclose(plain, scaled)
    assert (model.predict(graph) == model.classes_[plain.argmax(1)]).all()
    powered = plain ** (1 / model.temperature_)
    assert np.allclose(scaled, powered / powered.sum(1, keepdims=True), atol=1e-9)
    val = graph.nodes("val")
    expected = temperature(logits[val], graph.labels[val])
    assert model.temperature_ == pytest.approx(expected, rel=1e-6)


def test_a_temperature_is_kept_with_the_model(graph, tmp_path):
    warm = NodeClassifier(**QUICK).fit(graph)
    warm.save(tmp_path / "warm")
    again = NodeClassifier.load(tmp_path / "warm")
    assert again.temperature_ == warm.temperature_
    assert (again.predict_proba(graph) == warm.predict_proba(graph)).all()


def test_a_recipe_is_kept_with_the_model(tmp_path):
    people = {
        "name": [f"p{i}" for i in range(40)],
        "x": [float(i % 2) + i / 100 for i in range(40)],
        "team": ["a", "b"] * 20,
    }
    links = {"from": [f"p{i}" for i in range(38)], "to": [f"p{i + 2}" for i in range(38)]}
    graph = en.read(people, links, label="team", directed=True)
    model = NodeClassifier(**QUICK).fit(graph)
    model.save(tmp_path / "own")
    again = NodeClassifier.load(tmp_path / "own")
    assert again.feature_encoder_ == graph.feature_encoder
    assert again.directed_
    same = en.read(
        {"x": people["x"], "name": people["name"]},
        links,
        feature_encoder=again.feature_encoder_,
        directed=True,
    )
    assert (again.predict_proba(same) == model.predict_proba(graph)).all()


def test_a_checkpoint_goes_on_to_the_same_end(graph, model, tmp_path):
    NodeClassifier(**QUICK).fit(graph, checkpoint=tmp_path / "states")
    assert any((tmp_path / "states").iterdir())
    again = NodeClassifier(**QUICK).fit(graph, checkpoint=tmp_path / "states")
    assert again.history_ == model.history_
    assert (again.predict_proba(graph) == model.predict_proba(graph)).all()


def test_files_give_the_numbers_of_the_graph_they_were_written_from(tmp_path):
    """Features of zeros and ones, classes and edges come back as they were: the same seed, the same probabilities."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 3
    features = (rng.random((80, 12)) < 0.15 + 0.5 * (np.arange(12) % 3 == labels[:, None])).astype(
        np.float32
    )
    source = rng.integers(0, 80, 200)
    graph = Graph.from_arrays(
        features, np.stack([source, (source + 3) % 80]), labels, splits=folds(80, 1)
    )
    part = np.full(80, "", dtype=object)
    for name, nodes in graph.splits[0]._asdict().items():
        part[nodes.numpy()] = name
    heads = ["id", *(f"w{j}" for j in range(12)), "label", "split"]
    lines = [",".join(heads)]
    lines += [
        ",".join([f"n{i}", *map(str, features[i].astype(int)), f"c{labels[i]}", part[i]])
        for i in range(80)
    ]
    (tmp_path / "nodes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "".join(f"n{a},n{b}\n" for a, b in graph.edges.T.tolist())
    )
    own = en.read(tmp_path / "nodes.csv", tmp_path / "edges.csv")
    one, two = (NodeClassifier(**QUICK, objective="enc").fit(g) for g in (graph, own))
    assert (one.predict_proba(graph) == two.predict_proba(own)).all()
    assert one.score(graph, "test") == two.score(own, "test")


# ---------------------------------------------------------------------- as it was fitted, so it predicts


def test_arrays_have_the_direction_that_the_model_was_fitted_with(tmp_path):
    X, y, edges = arrays()
    graph = Graph.from_arrays(X, edges, y, splits=folds(len(y), 1), directed=True)
    model = NodeClassifier(**QUICK).fit(graph)
    model.save(tmp_path)
    for one in (model, NodeClassifier.load(tmp_path)):
        np.testing.assert_allclose(
            one.predict_proba(X, edge_index=edges), model.predict_proba(graph), atol=1e-6
        )


def test_double_precision_stays_double(graph, tmp_path):
    X, _, edges = arrays()
    model = NodeClassifier(**QUICK).fit(graph.to(torch.float64))
    model.save(tmp_path)
    expected = model.predict_proba(graph.to(torch.float64))
    for one in (model, NodeClassifier.load(tmp_path)):
        np.testing.assert_array_equal(one.predict_proba(graph.to(torch.float64)), expected)
        np.testing.assert_allclose(one.predict_proba(X, edge_index=edges), expected, atol=1e-6)


def test_a_loaded_model_looks_at_columns_and_edges_as_a_fitted_one_does(tmp_path):
    X, y, edges = arrays()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = NodeClassifier(**QUICK).fit(frame, y, edge_index=edges)
    model.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[list("badcfe")], edge_index=edges)
    with pytest.warns(UserWarning, match="fitted with edges"):
        loaded.predict(frame)
    model.fit(Graph.from_arrays(X, edges, y))
    assert not hasattr(model, "feature_names_in_")


def test_a_fit_that_failed_is_no_fit():
    X, _, _ = arrays()
    model = NodeClassifier(**QUICK)
    with pytest.raises(DataError):
        model.fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("kind", ["string", "Int64", "object", "empty text", "category"])
def test_labels_of_pandas(kind):
    X, y, edges = arrays()
    made = {
        "string": lambda: pandas.Series(
            [None if i % 4 else f"c{c}" for i, c in enumerate(y)], dtype="string"
        ),
        "Int64": lambda: pandas.Series(
            [None if i % 4 else int(c) for i, c in enumerate(y)], dtype="Int64"
        ),
        "object": lambda: pandas.Series(
            [pandas.NA if i % 4 else f"c{c}" for i, c in enumerate(y)], dtype=object
        ),
        "empty text": lambda: np.array(["" if i % 4 else f"c{c}" for i, c in enumerate(y)]),
        "category": lambda: pandas.Series(
            [None if i % 4 else f"c{c}" for i, c in enumerate(y)], dtype="category"
        ),
    }[kind]()
    model = NodeClassifier(**QUICK, objective="ce").fit(X, made, edge_index=edges)
    assert model.classes_.tolist() == ([0, 1, 2] if kind == "Int64" else ["c0", "c1", "c2"])
    assert all(type(c) is (int if kind == "Int64" else str) for c in model.classes_.tolist())
    assert 0 <= model.score(X, made, edge_index=edges) <= 1


@pytest.mark.parametrize("classes", [(1, "a", 2.5), ((0, 1), (0, 2), (1, 1))])
def test_classes_stay_what_they_are(classes, tmp_path):
    X, y, edges = arrays()
    graph = Graph.from_arrays(X, edges, y, classes=classes, splits=folds(len(y), 1))
    model = NodeClassifier(**QUICK, objective="ce").fit(graph)
    model.save(tmp_path)
    for one in (model, NodeClassifier.load(tmp_path)):
        assert tuple(one.classes_) == classes
        assert set(one.predict(graph)) <= set(classes)
        assert one.predict(graph).shape == (len(y),)
        assert one.score(graph, "test") == model.score(graph, "test") > 0.3


def test_arrays_that_run_backwards_are_arrays():
    X, y, edges = arrays()
    ours = Graph.from_arrays(
        X[:, ::-1], edges[::-1], y, edge_weight=np.arange(1.0, 1.0 + edges.shape[1])[::-1]
    )
    theirs = Graph.from_arrays(
        X[:, ::-1].copy(),
        edges[::-1].copy(),
        y,
        edge_weight=np.arange(1.0, 1.0 + edges.shape[1])[::-1].copy(),
    )
    assert ours.digest == theirs.digest


def test_scores_are_of_labels(graph, model):
    X, y, edges = arrays()
    with pytest.warns(DataConversionWarning):
        assert model.score(X, y[:, None], edge_index=edges) == model.score(X, y, edge_index=edges)
    with pytest.raises(UsageError, match="needs the labels"):
        model.score(X, edge_index=edges)
    with pytest.raises(DataError, match="No node has a label"):
        model.score(X, np.full(len(y), -1), edge_index=edges)
    with pytest.raises(UsageError, match=r"Graph.from_pyg"):
        NodeClassifier().fit(graph.to_pyg())
    with pytest.raises(DataError, match=r"use everynode.read"):
        model.predict(X, edge_index=np.array([["C-1"], ["C-2"]], dtype=object))


def test_progress_says_the_objective_once(monkeypatch, capsys):
    monkeypatch.setattr("everynode.progress.PLAIN_EVERY", 0.0)
    for objective, names in (("ce", {"ce"}), ("auto", {"ce", "enc", "light-ce", "light-enc"})):
        NodeClassifier("gcn", objective, settings=SMALL | {"epochs": 3}, verbose=True).fit(
            generate(60, 150, 4, 3, seed=0)
        )
        lines = capsys.readouterr().err.splitlines()
        found = [
            re.fullmatch(r"gcn: \d/3 epochs(?:, .* more)?, (\S+) val \d+\.\d% \| ce .*", line)
            for line in lines
        ]
        assert {match[1] for match in found} == names
