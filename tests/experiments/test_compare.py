"""Comparing: runs that are known are not repeated, pairs are pairs, and a record says everything that decided it."""

from __future__ import annotations

import dataclasses
import json
import os
import signal

import numpy as np
import pytest
import torch
from scipy import stats

import everynode.experiments.compare as module
from everynode.experiments.compare import BASELINE, conclude, do_runs
from everynode.experiments.run import Run
from everynode.experiments.store import Store
from everynode.graph import Graph, Split
from everynode.settings import Settings
from everynode.training import evaluate, fit

SETTINGS = Settings(channels=8, epochs=4)


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    n = 60
    parts = torch.from_numpy(rng.permutation(n)).split([15, 20, 25])
    split = Split(*(p.sort().values for p in parts))
    return Graph.from_arrays(rng.normal(size=(n, 5)), rng.integers(0, n, (2, 3 * n)), np.arange(n) % 3, splits=[split, split])


def make_run(graph: Graph, seed: int = 0, objective: str = "enc", **changes) -> Run:
    run = Run("toy", graph.digest, "public", 0, seed, "default", objective, SETTINGS.for_objective(objective))
    return dataclasses.replace(run, **changes)


def pairs(graph: Graph, seeds: int) -> list[Run]:
    return [make_run(graph, seed, objective) for seed in range(seeds) for objective in (BASELINE, "enc")]


@pytest.fixture
def counted(monkeypatch):
    """The runs that were really carried out (with one worker, so in this process)."""
    done = []
    work = module._work

    def count(run, graph):
        done.append(run)
        return work(run, graph)

    monkeypatch.setattr(module, "_work", count)
    return done


def test_runs_in_the_store_are_not_done_again(graph, tmp_path, counted):
    store = Store(tmp_path / "runs.db")
    heard = []
    first = do_runs(pairs(graph, 2), graph, store, workers=1, on_record=lambda record, fresh: heard.append(fresh))
    assert len(counted) == 4
    assert heard == [True] * 4
    again = do_runs(pairs(graph, 3), graph, Store(tmp_path / "runs.db"), workers=1, on_record=lambda record, fresh: heard.append(fresh))
    assert counted[4:] == pairs(graph, 3)[4:]
    assert heard[4:] == [False] * 4 + [True] * 2
    assert again[:4] == first


def test_records_come_in_the_order_of_the_runs(graph, tmp_path):
    store = Store(tmp_path / "runs.db")
    runs = pairs(graph, 2)
    do_runs([runs[2]], graph, store, workers=1)
    records = do_runs(runs, graph, store, workers=2)
    assert [record["key"] for record in records] == [run.key for run in runs]


def test_several_workers_find_what_one_finds(graph, tmp_path):
    def timeless(records):
        return [{name: value for name, value in record.items() if not name.startswith("seconds")} for record in records]

    one, two = (do_runs(pairs(graph, 2), graph, Store(tmp_path / f"{n}.db"), workers=n) for n in (1, 2))
    assert timeless(one) == timeless(two)


def test_what_ended_before_a_failure_is_kept(graph, tmp_path, monkeypatch):
    work = module._work

    def fail(run, graph):
        if run.seed == 1:
            raise RuntimeError("out of luck")
        return work(run, graph)

    monkeypatch.setattr(module, "_work", fail)
    store = Store(tmp_path / "runs.db")
    runs = pairs(graph, 2)
    with pytest.raises(RuntimeError, match="out of luck"):
        do_runs(runs, graph, store, workers=1)
    assert [store.get(run.key) is not None for run in runs] == [True, True, False, False]


def test_ctrl_c_with_one_worker_ends_the_comparison_and_keeps_no_half_run(graph, tmp_path):
    """The run in hand notices Ctrl-C itself: it must not pass for a finished run, nor the others be carried out."""
    store = Store(tmp_path / "runs.db")
    run = make_run(graph)
    long = dataclasses.replace(run, settings=dataclasses.replace(run.settings, epochs=100_000, patience=100_000))
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            do_runs([long], graph, store, workers=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert store.get(long.key) is None


def other(value):
    """Another value of the same kind."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, float):
        return value / 2 if value else 0.25
    return value + 1


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Run) if f.name != "settings"])
def test_the_key_changes_with_every_part_of_a_run(graph, name):
    run = make_run(graph)
    assert dataclasses.replace(run, **{name: other(getattr(run, name))}).key != run.key


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Settings)])
def test_the_key_changes_with_every_setting(graph, name):
    run = make_run(graph)
    value = getattr(run.settings, name)
    changed = "loss" if name == "select" else other(value)
    assert dataclasses.replace(run, settings=dataclasses.replace(run.settings, **{name: changed})).key != run.key


def test_the_key_is_the_same_for_the_same_run(graph):
    assert make_run(graph).key == make_run(graph).key
    assert len(make_run(graph).key) == 64


def test_a_record_is_complete_and_true(graph, tmp_path):
    run = make_run(graph, seed=4, fold=1)
    (record,) = do_runs([run], graph, Store(tmp_path / "runs.db"), workers=1)
    fitted = fit(graph, run.settings, fold=1, seed=4)
    assert record.pop("seconds") >= 0
    assert record.pop("seconds_per_epoch") >= 0
    assert record == {
        "dataset": "toy",
        "backbone": "gcn",
        "objective": "enc",
        "preset": "default",
        "split": "public",
        "fold": 1,
        "seed": 4,
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        "val_loss": fitted.metrics["val_loss"],
        "val_accuracy": evaluate(fitted.network, graph, "val", 1),
        "test_accuracy": evaluate(fitted.network, graph, "test", 1),
        "interrupted": False,
        "settings": dataclasses.asdict(run.settings),
        "key": run.key,
        "version": run.version,
    }


def record(objective: str, seed: int, test: float, fold: int = 0, val: float = 0.5) -> dict:
    return {"objective": objective, "seed": seed, "fold": fold, "test_accuracy": test, "val_accuracy": val}


CE, ENC = [0.70, 0.71, 0.69, 0.75], [0.72, 0.72, 0.73, 0.76]


def test_pairs_are_made_by_seed_whatever_the_order():
    records = [record("ce", s, v) for s, v in enumerate(CE)] + [record("enc", s, v, val=v) for s, v in reversed(list(enumerate(ENC)))]
    result = conclude(records, "enc")
    expected = stats.ttest_rel(ENC, CE)
    assert result.gain.p_value == pytest.approx(expected.pvalue)
    assert result.gain.mean == pytest.approx(np.mean(ENC) - np.mean(CE))
    assert result.test["ce"].mean == pytest.approx(np.mean(CE))
    assert result.val["enc"].mean == pytest.approx(np.mean(ENC))
    assert stats.ttest_rel(ENC[::-1], CE).pvalue != pytest.approx(expected.pvalue)  # a wrong pairing would show


def test_pairs_are_made_by_fold_and_corrected_for_their_overlap():
    records = [record("enc", 0, v, fold=f) for f, v in enumerate(ENC)] + [record("ce", 0, CE[f], fold=f) for f in (2, 0, 3, 1)]
    plain, corrected = conclude(records, "enc"), conclude(records, "enc", test_share=20 / 48)
    assert plain.gain.p_value == pytest.approx(stats.ttest_rel(ENC, CE).pvalue)
    assert corrected.gain.p_value > plain.gain.p_value
    assert corrected.gain.mean == plain.gain.mean


def test_a_conclusion_is_plain_json():
    records = [record(objective, 0, 0.7) for objective in ("ce", "tv")]
    found = json.loads(json.dumps(conclude(records, "tv").to_dict(), allow_nan=False))
    assert found["runs"] == records
    assert set(found["summary"]) == {"test_accuracy", "val_accuracy", "gain"}
    assert set(found["summary"]["test_accuracy"]) == {"ce", "tv"}
    assert found["summary"]["gain"]["p_value"] is None
