"""The README is true: its Python runs, its commands exist, its tables come from results/."""

import csv
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from everynode import __version__
from everynode.experiments.compare import compare_records

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    block = block.replace('effort="quick"', 'effort="quick", time_limit="10m"')  # a busy machine
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "packaging/RELEASE.md"])
def test_every_target_of_make_exists(page: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.findall(r"(?:^|`)make ([^`#\n]+)", text, re.MULTILINE)
    named = {word for words in shown for word in words.split() if "=" not in word}
    assert named
    assert named <= set(targets)


def test_it_has_at_most_900_words() -> None:
    assert len(README.split()) <= 900


def test_what_we_found_has_at_most_1500_words_with_its_tables() -> None:
    assert len((ROOT / "docs/found.md").read_text(encoding="utf-8").split()) <= 1500


def test_the_changelog_has_at_most_100_lines_for_all_released_versions() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *released = changelog.split("\n## 0.")
    assert len(released) >= 15
    assert sum(len(version.splitlines()) for version in released) <= 100


def test_tables_come_from_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "argv", ["readme.py", "--check"])
    assert importlib.import_module("readme").main() == 0, capsys.readouterr().out


def test_the_index_is_that_of_results() -> None:
    command = [sys.executable, ROOT / "tools/results_index.py", "--check"]  # it watches all reading
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tables", "runs"),
    [
        ("paper", "paper"),
        ("tuned", "tuned"),
        ("paper-terms", "tuned"),
        ("authors", "tuned"),
        ("systems", "systems"),
    ],
)
def test_every_number_of_the_tables_is_of_runs_that_are_here(tables: str, runs: str) -> None:
    found = json.loads((ROOT / f"results/tables-{tables}.json").read_text())
    cited = {key for table in found for cell in table["cells"] for key in cell["runs"]}
    with (ROOT / f"results/runs-{runs}.csv").open(newline="") as file:
        there = {row["key"] for row in csv.DictReader(file)}
    shortened = {key[: len(next(iter(cited)))] for key in there}
    assert cited
    assert cited - shortened == set()


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ("paper", "--preset paper --store results/runs-paper.csv"),
        ("tuned", "--preset tuned --store results/runs-tuned.csv"),
        ("authors", "--preset authors --store results/runs-tuned.csv"),
        ("systems", "--preset systems --store results/runs-systems.csv"),
        ("systems-folds", "--preset systems --store results/runs-systems-folds.csv"),
        (
            "paper-terms",
            "--preset results/tuned-paper-terms.toml --store results/runs-tuned.csv",
        ),
    ],
)
def test_the_tables_are_what_the_committed_runs_say(
    tables: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Every mean, verdict and star."""
    made = tmp_path / "tables.json"
    monkeypatch.chdir(ROOT)
    done = call("results", "tables", made, *words.split())
    assert done.returncode == 0, done.stderr
    again = f"make it anew: everynode results tables results/tables-{tables}.json {words}"
    committed = (ROOT / f"results/tables-{tables}.json").read_text()
    for there, fresh in zip(json.loads(committed), json.loads(made.read_text()), strict=True):
        assert there == fresh, again


@pytest.mark.parametrize(
    "file", sorted((ROOT / "results").glob("compare-*.json")), ids=lambda file: file.stem
)
def test_a_committed_comparison_says_what_its_runs_say(file: Path) -> None:
    found = json.loads(file.read_text())
    summary = compare_records(found["runs"], "enc").to_dict()["summary"]
    for metric in ("test_accuracy", "val_accuracy"):
        for objective in ("ce", "enc"):
            assert found["summary"][metric][objective] == pytest.approx(
                summary[metric][objective]
            ), (metric, objective)
    assert found["summary"]["gain"] == pytest.approx(summary["gain"])


def test_the_version_is_that_of_the_citation() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_benchmark_and_result_that_a_page_names_exists(page: Path) -> None:
    names = re.findall(
        r"(?<![/\w])(?:benchmarks|results)/[\w-]+\.\w+", page.read_text(encoding="utf-8")
    )
    assert [name for name in names if not (ROOT / name).exists()] == []
