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

from everynode.datasets.files import Root
from everynode.experiments.experiment import experiments
from everynode.experiments.run_spec import LATER, LATER_FIELDS, Run, short, versions
from everynode.settings import Settings


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


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Run) if f.name != "settings"])
def test_the_key_changes_with_every_part_of_a_run(make_run, name):
    run = make_run()
    assert dataclasses.replace(run, **{name: other(getattr(run, name))}).key != run.key


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Settings)])
def test_the_key_changes_with_every_setting(make_run, name):
    run = make_run()
    changed = {"monitor": "loss", "class_weight": "balanced"}.get(name) or other(
        getattr(run.settings, name)
    )
    assert (
        dataclasses.replace(run, settings=dataclasses.replace(run.settings, **{name: changed})).key
        != run.key
    )


@pytest.mark.parametrize("name", ["protocol", "torch"])
def test_the_key_changes_with_protocol_and_torch(make_run, name):
    run = make_run()
    assert dataclasses.replace(run, versions=versions() | {name: "another"}).key != run.key


def test_the_specification_is_canonical_json_and_the_key_its_sha256(make_run):
    run = make_run(seed=3, objective="tv")
    said, whole = json.loads(run.specification), json.loads(json.dumps(dataclasses.asdict(run)))
    for name in LATER:
        assert whole["settings"].pop(name) == LATER[name]
    for name in LATER_FIELDS:
        assert whole.pop(name) == LATER_FIELDS[name]
    assert said == whole
    assert run.specification == json.dumps(said, sort_keys=True, separators=(",", ":"))
    assert run.key == hashlib.sha256(run.specification.encode()).hexdigest()


def test_a_younger_setting_is_no_part_of_the_key_while_it_does_nothing(make_run):
    assert "class_weight" not in make_run().specification
    weighted = make_run(class_weight="balanced")
    assert json.loads(weighted.specification)["settings"]["class_weight"] == "balanced"
    assert set(LATER) <= {f.name for f in dataclasses.fields(Settings)}
    assert {name: getattr(Settings(), name) for name in LATER} == LATER


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


@pytest.mark.parametrize("module", ["run", "declare", "estimate", "store"])
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
