"""``everynode fit --split-by`` and ``--edge-type``, and ``predict`` with the model."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
SETTINGS = (
    "--objective",
    "ce",
    "--epochs",
    "30",
    "--hidden-channels",
    "16",
    "--cv",
    "2",
    "--quiet",
)


def write_files(n: int = 240) -> tuple[str, ...]:
    random = np.random.default_rng(0)
    y = np.arange(n) % 3
    nodes = ["id,height,city,joined,team"]
    for i in range(n):
        team = ["red", "green", "blue"][y[i]] if i % 5 else ""
        city, joined = ["Graz", "Oslo"][i % 2], f"{1990 + i // 8}-03-0{1 + i % 8}"
        nodes.append(f"p{i},{random.normal(0.4 * y[i], 1):.3f},{city},{joined},{team}")
    links = ["source,target,kind"]
    for a in range(n):
        links += [f"p{a},p{b},works with" for b in random.choice(np.flatnonzero(y == y[a]), 2)]
        links += [f"p{a},p{b},lives near" for b in random.choice(n, 4)]
    Path("people.csv").write_text("\n".join(nodes) + "\n")
    Path("links.csv").write_text("\n".join(links) + "\n")
    return "--nodes", "people.csv", "--edges", "links.csv"


def table(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_future_tests_the_past_and_each_type_has_its_weight(call):
    files = write_files()
    flags = ("--label", "team", "--split-by", "joined", "--edge-type", "kind")
    done = call("fit", *files, *flags, "--out", "out", *SETTINGS)
    assert done.returncode == 0, done.stderr
    fitted = json.loads(Path("out/fit.json").read_text())
    assert fitted["edge_types"]["works with"] == 1.0
    assert fitted["edge_types"]["lives near"] < 1.0
    said = " ".join(fitted["parts"])
    assert "Weights of the types of link, chosen on" in said
    assert "Split by time: " in said
    assert "A random split would " in said
    page = Path("out/report.html").read_text()
    assert "lives near" in page
    assert "Split by time" in page
    rows = table("out/predictions.csv")
    test = [i for i, row in enumerate(rows) if row["part"] == "test"]
    train = [i for i, row in enumerate(rows) if row["part"] == "train"]
    assert min(test) > max(train)
    assert fitted["delivered"]["labels"] == 192  # the latest ones, too

    done = call("predict", "out", *files, "--out", "again.csv", "--quiet")
    assert done.returncode == 0, done.stderr
    again = table("again.csv")
    for before, after in zip(rows, again, strict=True):
        if before["part"] == "":
            assert after["predicted"] == before["predicted"]
            assert float(after["probability"]) == pytest.approx(float(before["probability"]), abs=1e-4)  # fmt: skip


def test_wrong_columns_are_refused_in_one_sentence(call):
    files = write_files(60)

    def refused(*flags: str) -> str:
        done = call("fit", *files, "--label", "team", *flags, "--out", "out", *SETTINGS)
        assert done.returncode in (2, 3)
        assert not Path("out").exists()
        return done.stderr

    assert "no column 'sort'" in refused("--edge-type", "sort")
    assert "neither a date nor a number" in refused("--split-by", "city")
    assert "Give one of the two" in refused("--split-by", "joined", "--split", "height")
    assert "--test-share" in refused("--split-by", "joined", "--test-share", "0.3")
