"""A small share of `make torture`, and that it would notice what it looks for."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools.torture import __main__ as torture  # noqa: E402
from tools.torture import commands, fuzz, kills, memory, models, page  # noqa: E402

import everynode as en  # noqa: E402


def test_fuzzed_files_are_read_whole_or_refused():
    failures = []
    counts = fuzz.fuzz(range(10**6, 10**6 + 160), failures)
    assert failures == []
    assert counts["inputs"] == 160
    assert min(counts["compared"], counts["refused"]) >= 20


def test_silent_loss_is_noticed(monkeypatch):
    read = en.read

    def lose_an_edge(*files):
        graph = read(*files)
        summary = dataclasses.replace(graph.summary, edge_rows=graph.summary.edge_rows - 1)
        return dataclasses.replace(graph, summary=summary)

    monkeypatch.setattr(en, "read", lose_an_edge)
    failures = []
    counts = fuzz.fuzz(range(80), failures)
    assert counts["lost"] >= 10
    assert counts["compared"] == 0
    assert {failure["outcome"] for failure in failures} == {"lost"}


def test_a_traceback_is_noticed(monkeypatch):
    monkeypatch.setattr(en, "read", lambda *_: 1 / 0)
    failures = []
    assert fuzz.fuzz(range(3), failures)["traceback"] == len(failures) == 3


def test_damaged_models_are_refused_or_predict():
    failures = []
    counts = models.models(range(10**6, 10**6 + 30), failures)
    assert failures == []
    assert counts["refused"] >= 15


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_many_fits_do_not_grow():
    failures = []
    assert memory.memory(range(8), failures)["fits"] == 8
    assert failures == []


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGTERM to a process")
def test_a_killed_export_continues(tmp_path, monkeypatch):
    words = ("results", "export", "out/runs.csv", "--store", "runs.db")
    monkeypatch.setattr(kills, "COMMANDS", {"results export": words})
    monkeypatch.setattr(kills, "_whole", {})
    compared = ("compare", "citeseer", "--seeds", "1", "--epochs", "2", "--workers", "1")
    folder = tmp_path / "work"
    folder.mkdir()
    assert commands.run((*compared, "--out", "."), folder).code == 0
    monkeypatch.setattr(kills, "template", lambda: folder)
    failures = []
    counts = kills.kills([1], failures)
    assert failures == []
    assert counts["as undisturbed"] == 1


def test_the_counts_continue_where_they_stopped(tmp_path):
    results = tmp_path / "torture.json"
    for total in (3, 5):
        torture.run("fuzz", total, 2, 60, results)
        record = json.loads(results.read_text())["parts"]["fuzz"]
        assert record["next_seed"] == record["counts"]["inputs"] == total


def test_the_page_is_the_one_of_the_results():
    command = [sys.executable, "-m", "tools.torture.page", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    assert "| fuzz |" in page.PAGE.read_text(encoding="utf-8")
