"""Write ``results/README.md`` and ``benchmarks/README.md``, one line a file; with ``--check``, say whether they are up to date.

A file that no page, test, benchmark or module uses is an error: delete it.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import readme
from tables.common import pages

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
INDEX = RESULTS / "README.md"
#: What a file is, and the command that makes it, where the file does not say so itself.
KNOWN: dict[str, tuple[str, str]] = {
    "bench.json": ("A step of everynode and of stock PyG", ""),
    "bench-folds.json": (
        "An epoch of everynode and of two PyG users, half of the nodes labeled",
        "",
    ),
    "bench-memory.json": ("Peak memory of a step of everynode and of stock PyG", ""),
    "compare-*.json": ("Cross-entropy and ENC on a public split, ten seeds, paired", ""),
    "held-out-before.json": ("The same with the cross-validation of everynode 0.11.0", ""),
    "race-designs-before.json": ("The same with the rounds of everynode 0.12.0", ""),
    "runs-paper.csv": ("Every run of the paper's tables", "make reproduce"),
    "runs-tuned.csv": (
        "Every run of the tables with tuned settings",
        "everynode reproduce all --preset tuned; everynode results export results/runs-tuned.csv --add",
    ),
    "same-accuracy-gat.json": ("GAT on Cora seed by seed, with two versions of everynode", ""),
    "tables-authors.json": (
        "Cross-entropy with the settings of GCNII's authors beside the paper's numbers",
        "everynode results tables results/tables-authors.json --preset authors --store results/runs-tuned.csv",
    ),
    "tables-paper-terms.json": (
        "The tables with the paper's terms, tuned",
        "everynode results tables results/tables-paper-terms.json --preset results/tuned-paper-terms.toml --store results/runs-tuned.csv",
    ),
    "tables-paper.json": (
        "The paper's tables with its settings",
        "everynode results tables results/tables-paper.json --preset paper --store results/runs-paper.csv",
    ),
    "runs-systems.csv": (
        "Every run of the paper's table of the public splits with its other systems",
        "everynode results merge results/runs-paper.csv results/runs-tuned.csv --into runs; everynode reproduce systems --preset systems; "
        "everynode results export results/runs-systems.csv --preset systems --experiment systems",
    ),
    "runs-systems-folds.csv": (
        "Every run of the paper's tables of the ten folds with its other systems",
        "everynode results merge results/runs-paper.csv --into runs; everynode reproduce systems-folds --preset systems; "
        "everynode results export results/runs-systems-folds.csv --preset systems --experiment systems-folds",
    ),
    "tables-systems-folds.json": (
        "The other systems of the paper's tables of the ten folds",
        "everynode results tables results/tables-systems-folds.json --preset systems --store results/runs-systems-folds.csv",
    ),
    "tables-systems.json": (
        "The other systems of the paper's tables, by one protocol",
        "everynode results tables results/tables-systems.json --preset systems --store results/runs-systems.csv",
    ),
    "tables-tuned.json": (
        "The tables with tuned settings",
        "everynode results tables results/tables-tuned.json --preset tuned --store results/runs-tuned.csv",
    ),
    "torture.json": (
        "Fuzzed files and models, kills, full disks: tried and failed",
        "make torture",
    ),
    "tsne-paper.json": ("Cora's nodes in the plane, before and after training", "make reproduce"),
    "tuned-class-prior.toml": (
        "Settings of the tuning round of 0.11.0",
        "everynode tune (archived)",
    ),
    "tuned-paper-terms.toml": (
        "Settings of the tuning round with the paper's terms",
        "everynode tune (archived)",
    ),
    "unseen.csv": (
        "The default, its candidates and the outsiders on every drawn cell",
        "python benchmarks/unseen.py run STORE; python benchmarks/unseen.py write STORE",
    ),
    "unseen-few-labels.json": (
        "What the default's members learn from when labels are few, by half of the graphs",
        "python benchmarks/unseen_few_labels.py STORE",
    ),
    "unseen-class-shares.json": (
        "The estimated class shares of unlabeled nodes, chosen on one half of the graphs",
        "python benchmarks/unseen_shares.py STORE",
    ),
    "unseen-constants.json": (
        "The constants of the ensemble, chosen on one half of the graphs",
        "python benchmarks/unseen_replay.py STORE",
    ),
    "tuning-rounds.zip": (
        "Settings (.toml) and trials (.csv) of every tuning round",
        "everynode tune export (archived)",
    ),
}
#: What happens to be opened while a table is made, and the files of results/ among it.
_opened: set[str] = set()


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Remember the files of results/ that are opened."""
    if event == "open" and isinstance(arguments[0], str):
        path = Path(arguments[0])
        if path.parent.name == "results":
            _opened.add(path.name)


@cache
def read_by(page: str) -> frozenset[str]:
    """The files that the tables of a page are made from, and those that it names."""
    text = (ROOT / page).read_text(encoding="utf-8")
    _opened.clear()
    for mark in re.findall(r"<!-- ([\w-]+):begin -->", text):
        readme.TABLES[mark]()
    return frozenset(_opened) | named(text)


def named(text: str) -> frozenset[str]:
    """The files of results/ that a text names, also by a pattern."""
    patterns = set(re.findall(r"results/([\w*-]+\.\w+)", text))
    patterns |= {f"{name}.json" for name in re.findall(r'(?:write|result)\("([\w-]+)"', text)}
    return frozenset(path.name for pattern in patterns for path in RESULTS.glob(pattern))


def uses() -> dict[str, list[str]]:
    """The pages that use each file; the tests, benchmarks and modules of a file without a page."""
    sys.addaudithook(watch)
    on_pages, elsewhere = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for page in (path.relative_to(ROOT).as_posix() for path in pages()):
        for name in read_by(page):
            on_pages[name].append(page)
    for folder in ("tests", "benchmarks", "src"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name in named(path.read_text(encoding="utf-8")):
                elsewhere[name].append(path.relative_to(ROOT).as_posix())
    return {path.name: on_pages[path.name] or elsewhere[path.name] for path in files()}


def files() -> list[Path]:
    return sorted(path for path in RESULTS.iterdir() if path != INDEX and path.name[0] != ".")


def described(path: Path) -> tuple[str, str]:
    """What a file is, and the command that makes it."""
    command = ""
    if path.suffix == ".json" and isinstance(content := json.loads(path.read_text()), dict):
        command = content.get("command", "")
    for pattern, (what, made_by) in KNOWN.items():
        if path.match(pattern):
            return what, command or made_by
    script = re.search(r"benchmarks/\w+\.py", command)
    if not script:
        raise SystemExit(f"results/{path.name} names no benchmark: describe it in {__file__}.")
    return question(ROOT / script[0]), command


def question(script: Path) -> str:
    """The first line of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0]


def index() -> str:
    lines = [
        "# Results",
        "",
        "Every file, what it is, the command that made it, and the pages (or else the code) that use it. Written by",
        "`python tools/results_index.py`. A file that nothing uses is deleted.",
        "",
        "| file | what it is | made by | used by |",
        "|---|---|---|---|",
    ]
    for path, users in zip(files(), uses().values(), strict=True):
        if not users:
            raise SystemExit(f"Nothing uses results/{path.name}: delete it.")
        what, command = described(path)
        links = ", ".join(f"[{user}](../{user})" for user in users)
        lines.append(f"| [{path.name}]({path.name}) | {what} | `{command}` | {links} |")
    return "\n".join([*lines, ""])


def benchmarks() -> str:
    lines = [
        "# Benchmarks",
        "",
        "`make bench` (or `everynode bench`) compares everynode with stock PyG; its code is in `src/everynode/benchmarks/`. The scripts",
        "here are the studies around it. Each writes its result to `results/`, with its command and the load of the machine. Run them on",
        "an idle machine. This page is written by `python tools/results_index.py` from the first line of each script.",
        "",
        "| script | question |",
        "|---|---|",
    ]
    scripts = (path for path in sorted((ROOT / "benchmarks").glob("*.py")))
    rows = ((path.name, question(path)) for path in scripts if path.name != "common.py")
    return "\n".join([*lines, *(f"| `{name}` | {asks} |" for name, asks in rows), ""])


def main() -> int:
    made = {INDEX: index(), ROOT / "benchmarks/README.md": benchmarks()}
    stale = [
        path.relative_to(ROOT).as_posix()
        for path, fresh in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != fresh
    ]
    if "--check" in sys.argv:
        if stale:
            print(f"{', '.join(stale)}: out of date; run python tools/results_index.py.")
        return int(bool(stale))
    for path, fresh in made.items():
        path.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
