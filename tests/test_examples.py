"""The examples, as a new user runs them: every command of their README, and what it leaves behind."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
COMMANDS = re.findall(
    r"```sh\n(.*?)\n```", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.DOTALL
)
#: By the nodes' file: nodes, and the least share of the judged nodes that must be right.
PROMISED = {
    "people": (400, 0.8),
    "accounts": (600, 0.85),
    "functions": (240, 0.8),
    "papers": (300, 0.9),
    "club": (50, 0.6),
    "kunden": (500, 0.6),
    "films": (300, 0.6),
    "airports": (200, 0.6),
    "companies": (250, 0.6),
    "staff": (360, 0.6),
}
#: These fit within seconds; the others belong to `make test-long`.
SHORT = {"films", "airports", "companies", "staff"}
#: The first command, with the files alone: what it reads without a question, or the flag it names.
FIRST = {
    "people.csv links.csv": "--label",
    "accounts.csv transfers.csv": "--label",
    "functions.csv interactions.txt": "--label",
    "papers.parquet citations.jsonl": "--label",
    "club.graphml": "--label",
    "kunden.csv empfehlungen.csv": "--label",
    "films.csv seen-with.csv": "--label",
    "airports.csv flights.csv": "--label",
    "companies.xlsx companies.xlsx": "--label",
    "staff.csv contacts.csv": "--label",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder, as somebody who has just unpacked it."""
    return Path(shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("user") / "examples"))


@pytest.fixture
def run(folder: Path, call: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run a command of the README in the folder; return what it prints."""

    def in_folder(command: str) -> str:
        words = shlex.split(command)
        assert words[0] == "everynode"
        monkeypatch.chdir(folder)
        done = call(*words[1:])
        assert done.returncode == 0, done.stderr
        return done.stdout

    return in_folder


def test_there_is_a_command_for_every_file():
    named = {
        word for command in COMMANDS for word in shlex.split(command) if (EXAMPLES / word).is_file()
    }
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} - named == {
        "README.md",
        "make.py",
    }
    assert len(COMMANDS) == len(PROMISED) + 1


@pytest.mark.parametrize("files", FIRST)
def test_the_first_command_names_the_missing_flag_and_the_second_reads(files, folder, call):
    nodes, *edges = (str(folder / file) for file in files.split())
    command = ["fit", "--nodes", nodes, *(["--edges", *edges] if edges else []), "--dry-run"]
    first = call(*command)
    assert first.returncode in (2, 3)
    assert FIRST[files] in first.stderr.splitlines()[-1]
    label = next(
        words[words.index("--label") + 1]
        for words in map(str.split, COMMANDS)
        if Path(nodes).name in words
    )
    second = call(*command, "--label", label)
    assert second.returncode == 0, second.stderr
    assert "labeled" in second.stdout


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name, marks=() if name in SHORT else pytest.mark.long)
        for command, name in zip(COMMANDS, PROMISED, strict=False)
    ],
)
def test_every_example_fits(command, folder, run):
    said = run(command)
    name = re.search(r"--nodes (\w+)", command)[1]
    nodes, least = PROMISED[name]
    out = folder / "runs" / f"fit-{name}"
    assert (out / "report.html").stat().st_size > 20_000
    with (out / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == nodes
    summary = json.loads((out / "fit.json").read_text())
    judged = summary["quality"].get("test") or summary["quality"]["validation"]
    assert judged["accuracy"][0] >= least
    assert ("test" in summary["quality"]) == (name != "club")
    assert "predictions" in said
    if name == "accounts":  # the rare class is found at all
        found = [row for row in rows if row["label"] == "fraud" and row["predicted"] == "fraud"]
        assert len(found) >= 0.4 * sum(row["label"] == "fraud" for row in rows)


def test_newcomers_get_a_team(folder, run):
    if not (folder / "runs" / "fit-people").exists():
        run(f"{COMMANDS[0]} --effort quick")
    run(COMMANDS[-1])
    with (folder / "newcomers-predicted.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows[400:]] == [f"newcomer{k}" for k in range(10)]
    with (folder / "runs" / "fit-people" / "predictions.csv").open(newline="") as file:
        before = list(csv.DictReader(file))
    same = sum(
        one["predicted"] == two["predicted"] for one, two in zip(before, rows[:400], strict=True)
    )
    assert same >= 380  # ten newcomers do not turn everything over


def test_the_files_are_those_that_make_py_makes(folder):
    before = {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix in (".csv", ".txt", ".jsonl", ".graphml")
    }
    subprocess.run([sys.executable, "make.py"], cwd=folder, check=True, timeout=120)
    for name, content in before.items():
        if name != "newcomers-predicted.csv":
            assert (folder / name).read_bytes() == content, name
