"""``everynode explain``, and the slices and the card of a fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import everynode as en

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
QUICK = ("--objective", "ce", "--epochs", "30", "--hidden-channels", "8", "--quiet")


def test_a_fit_is_explained_with_its_own_files_and_with_given_ones(call, own_files, monkeypatch):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges)
    column = nodes.read_text().splitlines()[0].split(",")[1]
    done = call(
        "fit", *files, "--label", "team", "--out", "out", "--slice", column, "--coverage", "0.8",
        *QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    some = [line.split(",")[0] for line in nodes.read_text().splitlines()[1:3]]
    done = call("explain", "out", "--node", some[0], "--node", some[1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" is predicted ") == 2
    assert (
        call("explain", "out", *files, "--node", some[0], "--node", some[1]).stdout == done.stdout
    )

    plain = json.loads(call("explain", "out", "--node", some[0], "--json", "--count", "3").stdout)
    (one,) = plain["explanations"]
    assert one["node"] == some[0]
    assert len(one["reasons"]) <= 3
    graph = en.read(str(nodes), str(edges), label="team")
    same = en.NodeClassifier.load("out").explain(graph, graph.node_ids[0])
    assert same.sentence == one["sentence"]
    for ours, theirs in zip(same.to_dict(3)["reasons"], one["reasons"], strict=True):
        assert ours["name"] == theirs["name"]
        assert ours["change"] == pytest.approx(theirs["change"], abs=1e-6)

    result = json.loads(Path("out/fit.json").read_text())
    assert {row["by"] for row in result["slices"]} == {column, "degree", "component", "class size"}
    assert result["coverage"][0]["name"] == "all test nodes"
    assert f"| {column} " in Path("out/model-card.md").read_text()
    page = Path("out/report.html").read_text()
    order = [
        page.index(f'id="{name}"') for name in ("uncertain", "suspicious", "quality", "slices")
    ]
    assert order == sorted(order)


def test_bad_nodes_and_classes_are_refused_with_a_remedy(call, own_files):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges)
    assert call("fit", *files, "--label", "team", "--out", "out", *QUICK).returncode == 0
    for flags, text in (
        ((), "Give its id: --node ID"),
        (("--node", "nobody"), "There is no node 'nobody'"),
        (("--node", nodes.read_text().splitlines()[1].split(",")[0], "--class", "x"), "'x'"),
    ):
        done = call("explain", "out", *flags)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
    Path("out/fit.json").unlink()
    done = call("explain", "out", "--node", "nobody")
    assert (done.returncode, "give --nodes and --edges" in done.stderr) == (2, True)
    done = call("fit", *files, "--label", "team", "--out", "b", "--slice", "nothing", *QUICK)
    assert done.returncode in (2, 3)
    assert "nothing" in done.stderr
