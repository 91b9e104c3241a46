"""``everynode suspicious``, and prediction sets from the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
SETTINGS = (
    "--objective",
    "ce",
    "--epochs",
    "40",
    "--hidden-channels",
    "16",
    "--cv",
    "2",
    "--no-refit",
    "--quiet",
)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_flipped_labels_are_listed_and_sets_contain_the_labels(call, own_files):
    nodes, edges = own_files()
    lines = nodes.read_text().splitlines()
    flipped = [line for line in lines if line.endswith(",red")][:3]
    nodes.write_text(
        "\n".join(f"{line[:-4]},blue" if line in flipped else line for line in lines) + "\n"
    )
    names = {line.split(",")[0] for line in flipped}
    files = ("--nodes", nodes, "--edges", edges)
    done = call(
        "fit",
        *files,
        "--label",
        "team",
        "--test-share",
        "0",
        "--out",
        "out",
        "--coverage",
        "0.8",
        *SETTINGS,
    )
    assert done.returncode == 0, done.stderr
    table = rows(Path("out/predictions.csv"))
    labeled = [row for row in table if row["label"]]
    inside = sum(row["label"] in row["set"].split(" | ") for row in labeled)
    assert 0.65 <= inside / len(labeled) <= 0.97

    done = call("suspicious", "out", "--out", "wrong.csv")
    assert done.returncode == 0, done.stderr
    assert f"of {len(labeled)} held-out labels look wrong." in done.stdout
    worst = rows(Path("wrong.csv"))
    assert names & {row["id"] for row in worst}
    assert all(row["suggested"] == "red" for row in worst if row["id"] in names)
    plain = json.loads(call("suspicious", "out/model", "--json").stdout)
    assert [one["id"] for one in plain["suspicious"]] == [row["id"] for row in worst]
    assert call("suspicious", "out", "--out", "wrong.csv").returncode == 2

    done = call("predict", "out", *files, "--out", "again.csv", "--coverage", "0.8", "--json")
    assert json.loads(done.stdout)["coverage"] == 0.8
    assert [row["set"] for row in rows(Path("again.csv"))] == [row["set"] for row in table]
    done = call(
        "predict", "out", *files, "--out", "again.csv", "--coverage", "0.999", "--per-class"
    )
    assert (done.returncode, "needs at least 999 held-out labels in each class" in done.stderr) == (
        2,
        True,
    )


def test_too_high_a_coverage_is_refused_before_the_training(call, own_files):
    nodes, edges = own_files()
    done = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        "out",
        "--coverage",
        "0.999",
        *SETTINGS,
    )
    assert (done.returncode, "needs at least 999 held-out labels" in done.stderr) == (2, True)
    assert not Path("out").exists()


def test_labels_are_cleaned_only_where_that_helps_and_the_fit_says_so(call, own_files):
    nodes, edges = own_files(n=180)
    files = ("--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out")
    done = call("fit", *files, "--clean-labels", *SETTINGS)
    assert (done.returncode, "pass --refit" in done.stderr) == (2, True)
    quick = [flag for flag in SETTINGS if flag != "--no-refit"]
    done = call("fit", *files, "--clean-labels", *quick)
    assert done.returncode == 0, done.stderr
    said = json.loads(Path("out/fit.json").read_text())["parts"][-1]
    assert "held-out labels are right" in said
    assert said in done.stderr
