"""A run's key: another for everything that decides the result, the same wherever and whenever the run is described."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everynode.batches import Batches
from everynode.datasets.files import Root
from everynode.experiments.experiment import experiments
from everynode.experiments.run_spec import Run, short, versions
from everynode.settings import Settings, declarations


def other(value):
    """Another value of the same kind."""
    if value is None:
        return 0
    if isinstance(value, dict):
        return value | {"torch": "0.0.0"}
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, float):
        return value / 2 if value else 0.25
    return not value if isinstance(value, bool) else value + 1


@pytest.mark.parametrize(
    "name", [f.name for f in dataclasses.fields(Run) if f.name not in ("settings", "preset")]
)
def test_the_key_changes_with_every_part_of_a_run(make_run, name):
    run = make_run()
    changed = Batches(16) if name == "batches" else other(getattr(run, name))
    assert dataclasses.replace(run, **{name: changed}).key != run.key


def test_the_preset_is_a_label(make_run):
    """The same settings from another file are the same run."""
    run = make_run()
    assert dataclasses.replace(run, preset="tuned.toml").key == run.key


#: Settings with which every setting has an effect.
EVERY = {
    "consistency": 0.5, "prior": 0.5, "preg": 0.5, "neighbor_consistency": 0.5, "graphmix": 0.5,
    "lpa": 0.5, "vat": 0.5, "backbone": "gcnii",
}  # fmt: skip
OTHERS = {
    "backbone": "gcn", "monitor": "loss", "class_weight": "balanced", "weights": {"mine": 0.5},
    "tv_gate": "none", "halves": "fixed", "consistency_distance": "squared",
    "preg_distance": "cross_entropy",
}  # fmt: skip


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Settings)])
def test_the_key_changes_with_every_active_setting(make_run, name):
    backbone = next(iter(declarations()[name].of_backbones), EVERY["backbone"])
    run = dataclasses.replace(make_run(), settings=Settings(**EVERY | {"backbone": backbone}))
    changed = OTHERS.get(name) or other(getattr(run.settings, name))
    assert dataclasses.replace(run, settings=run.settings.replace(**{name: changed})).key != run.key


@pytest.mark.parametrize("name", [n for n, d in declarations().items() if d.of_term])
def test_a_setting_of_an_absent_term_does_not_change_the_key(make_run, name):
    run = make_run(objective="ce")
    changed = OTHERS.get(name) or other(getattr(run.settings, name))
    assert dataclasses.replace(run, settings=run.settings.replace(**{name: changed})).key == run.key


@pytest.mark.parametrize("name", [n for n, d in declarations().items() if d.of_backbones])
def test_a_setting_of_another_backbone_does_not_change_the_key(make_run, name):
    run = make_run()
    changed = other(getattr(run.settings, name))
    assert dataclasses.replace(run, settings=run.settings.replace(**{name: changed})).key == run.key


def test_a_whole_number_is_the_same_setting(make_run):
    run = make_run(tv=1.0)
    assert make_run(tv=1).key == run.key
    assert make_run(class_weight={"a": 2}).key == make_run(class_weight={"a": 2.0}).key


@pytest.mark.parametrize(("task", "same"), [("train", False), ("time", False), ("tsne", False), ("describe", True), ("tsne-input", True)])  # fmt: skip
def test_settings_are_part_of_runs_that_build_a_model(make_run, task, same):
    run = make_run(task=task)
    wider = dataclasses.replace(run, settings=run.settings.replace(hidden_channels=16))
    assert (wider.key == run.key) is same


@pytest.mark.parametrize("name", ["protocol", "torch"])
def test_the_key_changes_with_protocol_and_torch(make_run, name):
    run = make_run()
    assert dataclasses.replace(run, versions=versions() | {name: "another"}).key != run.key


def test_the_specification_is_canonical_json_and_the_key_its_sha256(make_run):
    run = make_run(seed=3, objective="tv")
    content = json.loads(run.specification)
    assert content == {
        "dataset": "toy",
        "graph_digest": run.graph_digest,
        "split": "public",
        "fold": 0,
        "seed": 3,
        "objective": "tv",
        "versions": versions(),
        "settings": json.loads(json.dumps(run.settings.identity())),
    }
    assert run.specification == json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert run.key == hashlib.sha256(run.specification.encode()).hexdigest()


def test_what_does_nothing_is_no_part_of_the_specification(make_run):
    settings = json.loads(make_run(objective="ce").specification)["settings"]
    assert not settings.keys() & {"class_weight", "weights", "mi", "tv_sigma", "gcnii_alpha"}
    weighted = make_run(class_weight="balanced")
    assert json.loads(weighted.specification)["settings"]["class_weight"] == "balanced"


def test_the_key_changes_with_the_source_of_a_plugin(make_run, monkeypatch):
    run = make_run()
    mine = dataclasses.replace(run, settings=run.settings.replace(weights={"mine": 1.0}))
    keys = set()
    for digest in ("first", "second"):
        monkeypatch.setattr("everynode.plugins.digest", lambda names, digest=digest: digest)
        keys.add(dataclasses.replace(mine).key)
        assert "plugin" not in dataclasses.replace(run).specification
    assert len(keys) == 2


def test_recorded_runs_keep_their_keys(tmp_path):
    """The runs of results/ are found again under the keys they were recorded with."""
    with (Path(__file__).parents[2] / "results" / "runs-paper.csv").open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["versions.torch"] == versions()["torch"] and row["dataset"] != "ogbn-arxiv"
        ]
    if not rows:
        pytest.skip(
            "a run's key holds torch's version, and results/runs-paper.csv was recorded with another one than is installed here"
        )
    root = Root(tmp_path, downloads=False)
    plans = (experiment.plan("paper", None, root)[0] for experiment in experiments().values())
    planned = {run.key for plan in plans for runs in plan.values() for run in runs}
    assert len(rows) > 500
    assert {row["key"] for row in rows} <= planned


def test_the_order_of_the_versions_does_not_matter(make_run):
    run = make_run()
    turned = dict(reversed(run.versions.items()))
    assert list(turned) != list(run.versions)
    assert dataclasses.replace(run, versions=turned).key == run.key


KEYS = """
from everynode.datasets.files import Root
from everynode.experiments.experiment import experiments
plan, _ = experiments()["weights"].plan("paper", 2, Root.find())
print(*(run.key for runs in plan.values() for run in runs))
"""


def test_keys_are_the_same_in_every_process_whatever_its_hash_seed():
    found = [
        subprocess.run(
            [sys.executable, "-c", KEYS],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
        for seed in ("0", "1")
    ]
    assert len(found[0].stdout.split()) == 56
    assert found[0].stdout == found[1].stdout


@pytest.mark.parametrize(
    "module", ["run_spec", "experiment", "runtime_model", "store", "planning", "exports"]
)
def test_describing_runs_needs_nothing_that_computes(module):
    code = f"import sys, everynode.experiments.{module}; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert f"everynode.experiments.{module}" in modules
    assert not {"torch", "numpy", "scipy", "sklearn"} & set(modules)


def test_the_description_names_the_run(make_run):
    run = make_run(
        seed=2,
        objective="mi+tv",
        num_layers=5,
        per_class=7,
        split_seed=3,
        split="random",
        fold=1,
        task="time",
    )
    assert run.describe() == {
        "dataset": "toy", "backbone": "gcn", "num_layers": 5, "objective": "mi+tv", "preset": "default", "split": "random", "per_class": 7,
        "split_seed": 3, "fold": 1, "seed": 2, "task": "time",
    }  # fmt: skip


def test_a_share_that_is_not_a_number_is_a_dash():
    assert [short(value) for value in (None, float("nan"), 0.0, 1.0)] == ["-", "-", "0.0", "100.0"]
