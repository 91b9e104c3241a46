"""``everynode bench --out``: what was measured stays measured."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("elsewhere")
GRAPH = "generated-60x200x8x3"
QUICK = (
    "bench",
    "--graphs",
    GRAPH,
    "--backbones",
    "gcn",
    "--seconds",
    "0.01",
    "--threads",
    "1",
    "--quiet",
)


@pytest.fixture
def this_machine(monkeypatch):
    """Limits that take no time to measure; test_measure.py measures them."""
    limits = {"gflops": 10.0, "gbytes_per_s": 10.0, "threads": 1, "load": 0.0}
    monkeypatch.setattr("everynode.benchmarks.measure.machine", lambda threads: limits)


@pytest.mark.usefixtures("this_machine")
def test_rows_are_kept_and_not_measured_again(call, tmp_path):
    out = tmp_path / "bench.json"
    assert call(*QUICK, "--objectives", "ce", "--out", out).returncode == 0
    first = json.loads(out.read_text())["rows"]
    assert [row["objective"] for row in first] == ["ce"]
    done = call(*QUICK, "--objectives", "ce,mi+tv", "--out", out, "--json")
    assert done.returncode == 0
    rows = json.loads(out.read_text())["rows"]
    assert [row["objective"] for row in rows] == ["ce", "mi+tv"]
    assert rows[0] == first[0]  # to the last digit, so it was not measured again
    assert json.loads(done.stdout)["rows"] == rows


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"rows": [{"graph": "cora"}]}'])
def test_another_file_is_refused_and_left_alone(call, tmp_path, content):
    out = tmp_path / "bench.json"
    out.write_text(content)
    done = call(*QUICK, "--out", out)
    assert done.returncode == 3
    assert "not a result of `everynode bench`" in done.stderr
    assert out.read_text() == content


def test_a_term_that_the_other_side_has_not_is_refused(call):
    done = call("bench", "--objectives", "ce,consistency")
    assert done.returncode == 2
    assert (
        "The stock side of the benchmark has no consistency: choose --objectives from ce, enc, mi, tv, cvg and their sums."
        in done.stderr
    )
