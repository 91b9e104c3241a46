"""The training loop: repeatable, honest about which epoch counts, and polite to Ctrl-C and to the caller's random state."""

from __future__ import annotations

import dataclasses
import gc
import math
import os
import signal
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import DataError, EverynodeError, UsageError
from everynode.evaluation.metrics import METRICS
from everynode.graph import Graph, Split
from everynode.numerics import subnormals_are_flushed
from everynode.objectives import cross_entropy
from everynode.settings import Settings
from everynode.training import TrainingResult, evaluate, train
from everynode.training.full_batch import build
from everynode.training.loop import Training

QUICK = Settings(hidden_channels=8, epochs=12, patience=12)
TERMS = ("mi", "tv", "cvg", "consistency", "prior", "preg")


def small_graph(seed: int = 0, n: int = 90, noise: float = 1.5) -> Graph:
    """Three classes, two thirds of the edges within one, features that tell a little."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    features = np.eye(3)[labels] @ rng.normal(size=(3, 6)) + noise * rng.normal(size=(n, 6))
    source = rng.integers(0, n, 3 * n)
    target = np.where(
        rng.random(3 * n) < 0.67,
        (source + 3 * rng.integers(1, n // 3, 3 * n)) % n,
        rng.integers(0, n, 3 * n),
    )
    parts = torch.from_numpy(rng.permutation(n)).split([n // 6, n // 3, n - n // 6 - n // 3])
    return Graph.from_arrays(
        features.astype(np.float32),
        np.stack([source, target]),
        labels,
        splits=[Split(*(p.sort().values for p in parts))],
    )


@pytest.fixture(scope="module")
def graph() -> Graph:
    return small_graph()


def weights(fitted: TrainingResult) -> dict[str, torch.Tensor]:
    return fitted.network.state_dict()


def same_weights(a: TrainingResult, b: TrainingResult) -> bool:
    one, two = weights(a), weights(b)
    assert list(one) == list(two)
    return all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_same_seed_same_result_bit_for_bit(graph, backbone):
    settings = dataclasses.replace(QUICK, backbone=backbone)
    a, b = train(graph, settings, seed=3), train(graph, settings, seed=3)
    assert same_weights(a, b)
    assert a.history == b.history
    assert (a.best_epoch, a.metrics) == (b.best_epoch, b.metrics)


def test_another_seed_is_another_result(graph):
    a, b = train(graph, QUICK, seed=3), train(graph, QUICK, seed=4)
    assert not same_weights(a, b)
    assert a.history["ce"] != b.history["ce"]


@pytest.mark.parametrize("monitor", ["loss", "accuracy"])
def test_the_weights_of_the_best_epoch_come_back(graph, monitor):
    settings = dataclasses.replace(QUICK, monitor=monitor, epochs=40, patience=40, lr=0.1)
    fitted = train(graph, settings)
    assert fitted.best_epoch < fitted.epochs - 1, (
        "the last epoch is the best: this test would see nothing"
    )
    assert not fitted.network.training
    with torch.no_grad():
        logits = fitted.network(graph)
    assert float(cross_entropy(logits, graph.labels, graph.nodes("val"))) == pytest.approx(
        fitted.metrics["val_loss"], rel=1e-6
    )
    assert evaluate(fitted.network, graph, "val") == fitted.metrics["val_accuracy"]
    for name, value in fitted.metrics.items():
        assert fitted.history[name][fitted.best_epoch] == value


@pytest.fixture
def scripted(graph, monkeypatch):
    """Train while the network answers the validation nodes as it is told: (share that is right, how sure of the right ones) by epoch."""

    def train_scripted(answers: list[tuple[float, float]], **options) -> TrainingResult:
        val, turn = graph.nodes("val"), iter(answers)

        def answer(network, inputs, logits):
            if network.training:
                return None
            share, sureness = next(turn, (0.0, 0.0))
            right = torch.arange(len(val)) < round(share * len(val))
            chosen = torch.where(right, graph.labels[val], (graph.labels[val] + 1) % 3)
            mine = (
                torch.nn.functional.one_hot(chosen, 3) * torch.where(right, sureness, 0.5)[:, None]
            )
            if len(logits) == len(val):
                return mine.to(logits.dtype)
            return torch.zeros_like(logits).index_copy(0, val, mine.to(logits.dtype))

        def build_with_hook(*args, **keywords):
            network, *rest = build(*args, **keywords)
            network.register_forward_hook(answer)
            return network, *rest

        monkeypatch.setattr("everynode.training.full_batch.build", build_with_hook)
        return train(graph, dataclasses.replace(QUICK, epochs=len(answers), **options))

    return train_scripted


ANSWERS = [(0.2, 1.0), (0.6, 1.0), (0.5, 9.0), (0.6, 1.5), (0.6, 1.5), (0.6, 1.2), (0.1, 1.0)]


@pytest.mark.parametrize(("monitor", "best"), [("accuracy", 3), ("loss", 2)])
def test_selection_by_accuracy_with_ties_by_loss_or_by_loss_alone(scripted, monitor, best):
    fitted = scripted(ANSWERS, monitor=monitor)
    assert fitted.history["val_accuracy"] == pytest.approx([share for share, _ in ANSWERS])
    assert int(np.argmin(fitted.history["val_loss"])) == 2
    assert fitted.best_epoch == best
    assert fitted.metrics == {
        name: fitted.history[name][best] for name in ("val_accuracy", "val_loss")
    }


@pytest.mark.parametrize("monitor", ["macro_f1", "balanced_accuracy", "auc"])
def test_selection_by_another_metric_with_ties_by_loss(graph, monitor):
    settings = dataclasses.replace(QUICK, monitor=monitor, epochs=30, patience=30, lr=0.1)
    fitted = train(graph, settings)
    name = f"val_{monitor.replace('-', '_')}"
    keys = list(
        zip(fitted.history[name], [-loss for loss in fitted.history["val_loss"]], strict=True)
    )
    assert fitted.best_epoch == keys.index(max(keys))
    assert set(fitted.metrics) == {"val_loss", "val_accuracy", name}
    with torch.no_grad():
        val = graph.nodes("val")
        assert METRICS[monitor](fitted.network(graph)[val], graph.labels[val]) == pytest.approx(
            fitted.metrics[name]
        )


def test_an_auc_needs_two_classes_to_validate_on(graph):
    val = graph.nodes("val")
    one_class = graph.with_splits([graph.splits[0]._replace(val=val[graph.labels[val] == 0])])
    with pytest.raises(DataError, match="of one class, which has no AUC: select by another metric"):
        train(one_class, dataclasses.replace(QUICK, monitor="auc"))


@pytest.mark.parametrize(
    ("patience", "epochs", "best"), [(1, 3, 1), (2, 4, 1), (3, 5, 1), (4, 10, 5), (9, 12, 5)]
)
@pytest.mark.parametrize("monitor", ["loss", "accuracy"])
def test_training_stops_after_so_many_epochs_without_a_better_one(
    scripted, monitor, patience, epochs, best
):
    sureness = [
        1.0,
        2.0,
        1.5,
        2.0,
        1.9,
        2.1,
        2.05,
        2.1,
        1.8,
        1.7,
        1.6,
        1.5,
    ]  # as good as before is not better
    fitted = scripted([(0.5, sure) for sure in sureness], patience=patience, monitor=monitor)
    assert (fitted.epochs, fitted.best_epoch) == (epochs, best)


def test_training_stops_at_the_epochs_limit(graph):
    assert train(graph, dataclasses.replace(QUICK, epochs=7, patience=100)).epochs == 7
    only = train(graph, dataclasses.replace(QUICK, epochs=1))
    assert (only.epochs, only.best_epoch) == (1, 0)


def test_a_longer_run_begins_as_the_shorter_one(graph):
    short, long = (train(graph, dataclasses.replace(QUICK, epochs=n, patience=99)) for n in (5, 9))
    assert all(long.history[name][:5] == values for name, values in short.history.items())


@pytest.mark.parametrize(
    ("objective", "terms"),
    [
        ("ce", ()),
        ("mi", ("mi",)),
        ("mi+tv", ("mi", "tv")),
        ("enc", TERMS[:-1]),
        ("enc+preg", TERMS),
    ],
)
def test_history_has_each_term_total_and_validation(graph, objective, terms):
    settings = dataclasses.replace(
        QUICK, consistency=0.5, prior=0.5, preg=0.1, epochs=3
    ).for_objective(objective)
    reported = []
    fitted = train(graph, settings, report=lambda epoch, row: reported.append((epoch, row)))
    assert set(fitted.history) == {"ce", *terms, "total", "val_loss", "val_accuracy"}
    assert all(len(values) == fitted.epochs == 3 for values in fitted.history.values())
    assert [epoch for epoch, _ in reported] == [0, 1, 2]
    assert all(
        fitted.history[name][epoch] == value
        for epoch, row in reported
        for name, value in row.items()
    )
    for epoch in range(3):
        parts = fitted.history["ce"][epoch] + sum(
            getattr(settings, term) * fitted.history[term][epoch] for term in terms
        )
        assert fitted.history["total"][epoch] == pytest.approx(parts, rel=1e-5)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_each_parameter_group_has_its_own_rates(graph, backbone):
    settings = dataclasses.replace(
        QUICK, backbone=backbone, lr_gnn=0.011, weight_decay_gnn=0.012, lr=0.013, weight_decay=0.014
    )
    network, _, optimizer = build(graph, settings, fold=0, seed=0)
    rates = {
        id(p): (g["lr"], g["weight_decay"]) for g in optimizer.param_groups for p in g["params"]
    }
    assert len(rates) == len(list(network.parameters()))
    for name, parameter in network.named_parameters():
        assert rates[id(parameter)] == (
            (0.011, 0.012) if name.startswith("layers.") else (0.013, 0.014)
        ), name


def test_rates_reach_the_weights(graph):
    """A rate that can move nothing leaves its group where the seed put it, and the other group moves."""
    start, *_ = build(graph, QUICK, fold=0, seed=0)
    fitted = train(
        graph, dataclasses.replace(QUICK, lr_gnn=1e-30, weight_decay_gnn=0.0, monitor="loss")
    )
    for name, value in start.state_dict().items():
        moved = float((value - weights(fitted)[name]).abs().max())
        assert (moved < 1e-20) == name.startswith("layers."), (name, moved)


def test_test_nodes_do_not_influence_training(graph):
    test = graph.nodes("test")
    labels = graph.labels.clone()
    labels[test] = (labels[test] + 1) % 3
    settings = dataclasses.replace(QUICK, consistency=0.5, prior=0.5, preg=0.1)
    a, b = train(graph, settings), train(dataclasses.replace(graph, labels=labels), settings)
    assert same_weights(a, b)
    assert a.history == b.history
    assert a.metrics == b.metrics


def test_validation_nodes_choose_but_do_not_train(graph):
    val = graph.nodes("val")
    labels = graph.labels.clone()
    labels[val] = (labels[val] + 1) % 3
    a, b = train(graph, QUICK), train(dataclasses.replace(graph, labels=labels), QUICK)
    assert a.history["total"] == b.history["total"]
    assert a.history["val_accuracy"] != b.history["val_accuracy"]


def test_but_the_class_prior_learns_its_shares_from_them(graph):
    val = graph.nodes("val")
    labels = graph.labels.clone()
    labels[val] = (labels[val] + 1) % 3
    settings = dataclasses.replace(QUICK, prior=1.0)
    a, b = train(graph, settings), train(dataclasses.replace(graph, labels=labels), settings)
    assert a.history["total"] != b.history["total"]


@pytest.mark.parametrize(
    "term", [term for term in TERMS if term != "consistency"]
)  # which takes a second pass
def test_switching_a_term_on_changes_nothing_else(graph, term):
    plain = QUICK.for_objective("ce")
    on = train(graph, dataclasses.replace(plain, **{term: 0.7}))
    without = train(graph, plain)
    assert on.history["ce"][0] == without.history["ce"][0], (
        "the dropout masks of the first forward pass differ"
    )
    assert on.history["ce"] != without.history["ce"]
    # A weight that vanishes in float32: the term is computed in every epoch, and the training stays the same but for rounding.
    silent = train(graph, dataclasses.replace(plain, **{term: 1e-60}))
    assert term in silent.history
    assert silent.history["ce"] == pytest.approx(without.history["ce"], rel=1e-4)
    assert on.history["ce"] != pytest.approx(without.history["ce"], rel=1e-4)


def test_consistency_needs_dropout(graph):
    with pytest.raises(
        UsageError, match="passes with different dropout, but dropout and layer_dropout are 0"
    ):
        train(graph, dataclasses.replace(QUICK, consistency=1.0, dropout=0.0, layer_dropout=0.0))


def test_no_two_trainings_go_by_the_same(graph):
    some = [
        Settings(consistency=consistency, consistency_temperature=t, prior=prior)
        for consistency, t in ((0.0, 0.5), (0.1, 0.5), (0.1, 0.51))
        for prior in (0.0, 0.02, 0.012)
    ]
    assert len({Training(graph, settings, seed=7).identity for settings in some}) == len(some)
    assert Training(graph, QUICK, seed=7).identity != Training(graph, QUICK, seed=8).identity


def test_the_source_of_a_plugin_is_part_of_the_identity(graph, monkeypatch):
    before = Training(graph, QUICK).identity
    monkeypatch.setattr("everynode.plugins.digest", lambda names: "changed" * ("gcn" in names))
    assert Training(graph, QUICK).identity != before


def test_a_device_moves_graph_and_model(graph):
    result = train(graph, QUICK, device="cpu", test_nodes=graph.nodes("test"))
    assert same_weights(result, train(graph, QUICK))
    training = Training(graph, QUICK, device="cpu")
    assert training.graph is graph, "the graph keeps its cached operators"
    batched = Training(graph, QUICK, device="cpu", batches=Batches(30))
    assert batched.ranks.device == torch.device("cpu")
    with pytest.raises(UsageError, match="'abacus' cannot be used here"):
        train(graph, QUICK, device="abacus")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_training_on_a_gpu(graph):
    result = train(graph, QUICK, device="cuda")
    assert next(result.network.parameters()).device.type == "cuda"


@pytest.mark.parametrize("before", [False, True])
def test_subnormal_numbers_are_flushed_in_training_and_as_they_were_afterwards(graph, before):
    seen = []
    torch.set_flush_denormal(before)
    try:
        train(graph, QUICK, report=lambda epoch, row: seen.append(subnormals_are_flushed()))
        assert seen
        assert all(seen)
        assert subnormals_are_flushed() == before
    finally:
        torch.set_flush_denormal(False)


def test_ctrl_c_keeps_the_best_so_far(graph):
    def report(epoch, row):
        if epoch == 6:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    settings = dataclasses.replace(QUICK, epochs=30, patience=30)
    stopped = train(graph, settings, report=report)
    assert signal.getsignal(signal.SIGINT) is before
    assert stopped.interrupted
    assert stopped.epochs == 7
    undisturbed = train(graph, dataclasses.replace(settings, epochs=7))
    assert not undisturbed.interrupted
    assert stopped.history == undisturbed.history
    assert same_weights(stopped, undisturbed)


def test_a_second_ctrl_c_ends_at_once(graph):
    epochs = []

    def report(epoch, row):
        epochs.append(epoch)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(graph, QUICK, report=report)
    assert epochs == [0]
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_works_outside_the_main_thread(graph):
    found = []
    thread = threading.Thread(target=lambda: found.append(train(graph, QUICK)))
    thread.start()
    thread.join()
    assert same_weights(found[0], train(graph, QUICK))


def test_the_callers_random_state_is_neither_used_nor_changed(graph):
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002 - the global state is what is tested
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    a = train(graph, QUICK)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002
    torch.manual_seed(321)
    assert same_weights(a, train(graph, QUICK))


def test_the_random_state_comes_back_when_training_fails(graph):
    before = torch.get_rng_state()
    with pytest.raises(EverynodeError):
        train(graph, dataclasses.replace(QUICK, lr=1e30, lr_gnn=1e30))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loss_that_is_not_finite_is_one_sentence(graph):
    with pytest.raises(
        EverynodeError, match=r"loss became (nan|inf) in epoch \d+: lower the learning rates"
    ):
        train(graph, dataclasses.replace(QUICK, lr=1e30, lr_gnn=1e30))


def test_a_graph_without_validation_nodes_is_refused(graph):
    none = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(DataError, match="no labeled validation node"):
        train(graph.with_splits([graph.splits[0]._replace(val=none)]), QUICK)


def test_a_graph_of_one_class_is_refused(graph):
    one = dataclasses.replace(graph, labels=torch.zeros_like(graph.labels), classes=(0,))
    with pytest.raises(DataError, match="nothing to tell apart"):
        train(one, QUICK)


def test_evaluate_counts_the_labeled_nodes_of_the_part(graph):
    fitted = train(graph, QUICK)
    with torch.no_grad():
        predicted = fitted.network(graph).argmax(1)
    for part in ("train", "val", "test"):
        nodes = getattr(graph.splits[0], part).tolist()
        assert evaluate(fitted.network, graph, part) == sum(
            int(predicted[i]) == int(graph.labels[i]) for i in nodes
        ) / len(nodes)
    none = torch.zeros(0, dtype=torch.int64)
    assert (
        evaluate(fitted.network, graph.with_splits([graph.splits[0]._replace(test=none)])) is None
    )


def test_the_fold_that_was_named_is_trained_on(graph):
    first = graph.splits[0]
    second = Split(first.val, first.train, first.test)
    folds = graph.with_splits([first, second])
    assert same_weights(train(folds, QUICK, fold=0), train(graph, QUICK))
    assert same_weights(train(folds, QUICK, fold=1), train(graph.with_splits([second]), QUICK))
    assert train(folds, QUICK, fold=1).fold == 1


def test_training_learns(graph):
    """On an easy graph, far better than chance: the loop does minimize."""
    easy = small_graph(seed=1, noise=0.3)
    fitted = train(
        easy,
        dataclasses.replace(
            QUICK, epochs=60, patience=60, dropout=0.0, layer_dropout=0.0, monitor="loss"
        ).for_objective("ce"),
    )
    score = evaluate(fitted.network, easy, "test")
    assert score is not None
    assert score > 0.8
    assert fitted.history["ce"][-1] < 0.5 * math.log(3)


def test_a_training_touches_no_other_generator_than_its_own(graph, monkeypatch):
    """torch.manual_seed would seed those of all devices, which are the caller's."""
    seeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    before = torch.get_rng_state()
    train(graph, Settings(hidden_channels=4, epochs=2))
    assert seeded == []
    assert torch.equal(torch.get_rng_state(), before)


def test_a_state_goes_on_only_with_what_was_watched(graph, tmp_path):
    """Else a history would have more epochs of one thing than of another."""
    settings, state = Settings(hidden_channels=4, epochs=3), tmp_path / "state"
    train(graph, settings, checkpoint=state)
    with pytest.raises(DataError, match="a training without test_nodes: remove it"):
        train(graph, settings, checkpoint=state, test_nodes=graph.nodes("test"))
    state.unlink()
    train(graph, settings, checkpoint=state, test_nodes=graph.nodes("test"))
    with pytest.raises(DataError, match="a training with test_nodes: remove it"):
        train(graph, settings, checkpoint=state)


def test_batches_watch_nothing(graph):
    with pytest.raises(UsageError, match="cannot score test nodes"):
        train(
            graph,
            Settings(hidden_channels=4, epochs=1),
            test_nodes=graph.nodes("test"),
            batches=Batches(10),
        )


def test_a_trained_network_lets_go_of_its_graph():
    graph = generate(60, 120, 4, 2, seed=3)
    network = train(graph, Settings(hidden_channels=4, epochs=2)).network
    known = weakref.ref(graph)
    del graph
    gc.collect()
    assert known() is None
    assert isinstance(network, nn.Module)
