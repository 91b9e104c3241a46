"""``train``, ``compare`` and ``tune`` on the user's own files."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("elsewhere")
FAST = ("--epochs", "3", "--hidden-channels", "4", "--objective", "mi", "--mi", "0.1")


@pytest.fixture
def files(own_files) -> tuple[object, ...]:
    nodes, edges = own_files()
    return "--nodes", nodes, "--edges", edges, "--label", "team"


def test_train_reads_own_files_as_fit_does(call, files):
    done = call("train", *files, *FAST, "--features", "all,-city", "--out", "model", "--json", "-q")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["split"], record["fold"]) == ("drawn", 0)
    assert 0 < record["test_accuracy"] <= 1
    other = call("train", *files, *FAST, "--out", "model", "--json", "-q")
    assert other.returncode == 2  # with another column it is another run


def test_compare_pairs_runs_on_own_files(call, files):
    command = ("compare", *files, *FAST, "--seeds", "2", "--workers", "1", "--json", "-q")
    done = call(*command)
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    again = json.loads(call(*command).stdout)  # from the store
    assert {**again, "command": ""} == {**first, "command": ""}
    assert {"own", "drawn"} >= {record["split"] for record in first.get("records", [])}


def test_tune_searches_on_own_files(call, files):
    done = call(
        "tune", *files, *FAST, "--trials", "1", "--seeds", "1", "--workers", "1", "--json", "-q"
    )
    assert done.returncode == 0, done.stderr
    assert "drawn" in json.dumps(json.loads(done.stdout))


@pytest.mark.parametrize("command", ["train", "compare", "tune"])
def test_a_name_or_files_but_not_both(call, files, command):
    assert "Got neither." in call(command).stderr
    done = call(command, "cora", *files)
    assert done.returncode == 2
    assert "Got both." in done.stderr
    done = call(command, *files, "--per-class", "5")
    assert (done.returncode, "--per-class has no effect on --nodes" in done.stderr) == (2, True)
    assert "need --nodes or --edges" in call(command, "cora", "--features", "a").stderr
