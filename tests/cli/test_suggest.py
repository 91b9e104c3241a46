"""``everynode suggest``: from files, with a model, and back into ``fit --labels``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
SETTINGS = ("--objective", "ce", "--epochs", "20", "--hidden-channels", "8", "--cv", "2", "--quiet")


def test_from_no_label_at_all_to_a_fit(call, own_files):
    nodes, edges = own_files(known=1.0)
    truth = {line.split(",")[0]: line.split(",")[-1] for line in nodes.read_text().splitlines()[1:]}
    lines = [line.rpartition(",")[0] for line in nodes.read_text().splitlines()]
    nodes.write_text("\n".join(lines) + "\n")
    files = ("--nodes", nodes, "--edges", edges)
    done = call("suggest", *files, "--count", "12", "--out", "ask.csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("12 of 120 unlabeled nodes to label next:\n")
    with Path("ask.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["stands_for"]) for row in rows) == 120
    assert {truth[row["id"]] for row in rows} == {"red", "green", "blue"}
    assert rows[0]["reason"].startswith(f"stands for {rows[0]['stands_for']} similar nodes")

    for row in rows[:-1]:  # a person leaves one empty
        row["label"] = truth[row["id"]]
    with Path("answers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    done = call("fit", *files, "--labels", "answers.csv", "--out", "out", *SETTINGS)
    assert done.returncode == 0, done.stderr
    with Path("out/predictions.csv").open(newline="") as file:
        predicted = {row["id"]: row["predicted"] for row in csv.DictReader(file)}
    right = sum(predicted[name] == team for name, team in truth.items())
    assert right > 80  # of 120, three teams

    done = call("suggest", "out", *files, "--labels", "answers.csv", "--count", "3", "--json")
    assert done.returncode == 0, done.stderr
    plain = json.loads(done.stdout)
    assert plain["unlabeled"] == 109
    asked = {row["id"] for row in rows[:-1]}
    for row in plain["suggestions"]:
        assert row["id"] not in asked
        assert row["predicted"] == predicted[row["id"]]
        assert "the model is" in row["reason"]


def test_bad_input_is_refused(call, own_files):
    nodes, edges = own_files(known=1.0)
    files = ("--nodes", nodes, "--edges", edges)
    done = call("suggest", *files, "--label", "team")
    assert (done.returncode, "Every node has a label" in done.stderr) == (2, True)
    Path("ask.csv").write_text("")
    done = call("suggest", *files, "--out", "ask.csv")
    assert (done.returncode, "ask.csv exists: choose another --out." in done.stderr) == (2, True)
    done = call("suggest", *files, "--count", "0")
    assert (done.returncode, "must be >= 1" in done.stderr) == (2, True)
    assert "No graph is given" in call("suggest").stderr
