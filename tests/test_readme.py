"""The README is true: its Python runs, its commands exist, its tables come from results/."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from everynode import __version__
from everynode.experiments.compare import compare_records

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_the_diff_of_the_loop_runs(tmp_path: Path) -> None:
    """The three-line change, applied to a loop that has the names it uses."""
    (diff,) = re.findall(r"```diff\n(.*?)```", README, re.DOTALL)
    changed = "\n".join(line[2:] for line in diff.splitlines() if not line.startswith("-")).replace(
        "range(200)", "range(2)"
    )
    before = (
        "import torch, everynode, torch.nn.functional as F\nfrom torch_geometric.nn import GCN\n"
    )
    before += (
        "data = everynode.load('citeseer').to_pyg()\nmodel = GCN(data.num_features, 8, 2, 6)\n"
    )
    before += "optimizer = torch.optim.Adam(model.parameters())\n"
    done = subprocess.run(
        [sys.executable, "-c", before + changed],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_and_flag_exists() -> None:
    block = README.split("## The command line")[1].split("```sh\n")[1].split("```")[0]
    lines = [
        line.split("#")[0].split() for line in block.splitlines() if line.startswith("everynode")
    ]
    assert len(lines) >= 5
    for _, *words in lines:
        commands = (
            words[:2] if words[0] in ("data", "results") or words[1:2] == ["export"] else words[:1]
        )
        shown = subprocess.run(
            [sys.executable, "-m", "everynode", *commands, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert shown.returncode == 0, shown.stderr
        for flag in (w for w in words if w.startswith("--")):
            assert re.search(rf"(?<![\w-]){flag}(?![\w-])", shown.stdout), flag


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, spaces to dashes, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            file, _, anchor = target.partition("#")
            there = page.parent / file if file else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("tool", ["readme.py", "results_index.py"])
def test_tables_and_indexes_come_from_results(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tables", "runs"),
    [("paper", "paper"), ("tuned", "tuned"), ("paper-terms", "tuned"), ("authors", "tuned")],
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
        (
            "paper-terms",
            "--preset results/tuned-paper-terms.toml --store results/runs-tuned.csv",
        ),
    ],
)
def test_the_tables_are_what_the_committed_runs_say(
    tables: str, words: str, tmp_path: Path
) -> None:
    """Every mean, verdict and star."""
    made = tmp_path / "tables.json"
    command = [sys.executable, "-m", "everynode", "results", "tables"]
    subprocess.run(
        [*command, made, *words.split()], cwd=ROOT, check=True, capture_output=True, timeout=120
    )
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_benchmark_and_result_that_a_page_names_exists(page: Path) -> None:
    names = re.findall(
        r"(?<![/\w])(?:benchmarks|results)/[\w-]+\.\w+", page.read_text(encoding="utf-8")
    )
    assert [name for name in names if not (ROOT / name).exists()] == []
