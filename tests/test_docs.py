"""Every code block of README and docs/ runs, is parsed, or is marked as output; links lead somewhere."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from everynode import load
from everynode.cli import app
from everynode.graph.sample import Sample
from everynode.objectives.total_variation import squared_feature_gradient

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: The pages that are kept up; the archive's links and tables are tested, its code is not run.
PAGES = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).parts[0] not in ("archive", "generated")
]
ALL = [ROOT / "README.md", *PAGES, *sorted((DOCS / "archive").glob("*.md"))]
FENCE = re.compile(r"^```(\S*)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: `sh` runs, `console` is parsed; `diff` is applied to a loop; `text` is output or the content of a file.
KINDS = {"python", "sh", "console", "diff", "text", "{toctree}", "{eval-rst}"}
#: These run in test_examples.py.
EXAMPLES = set((ROOT / "examples" / "README.md").read_text(encoding="utf-8").splitlines())


def place(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, kind: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [content for name, file, content in found if name == kind and not file]


def having(kind: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, kind)]


def commands(page: Path, kind: str) -> list[str]:
    lines = "".join(blocks(page, kind)).splitlines()
    return [line.split(" #")[0].strip() for line in lines if line.strip()]


def python(code: str, folder: Path) -> str:
    code = code.replace('effort="quick"', 'effort="quick", time_limit="10m"')  # a busy machine
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_here(code: str) -> None:
    """Run short code in this process, which saves the imports."""
    exec(compile(code, "page", "exec"), {"__name__": "__main__"})


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of examples/, with the files that a page tells the reader to save."""
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))


def save_files(page: Path, folder: Path) -> None:
    for _, file, content in FENCE.findall(page.read_text(encoding="utf-8")):
        if file:
            (folder / file).write_text(content, encoding="utf-8")


def untested(text: str, *, archived: bool = False) -> list[str]:
    """The first lines of blocks that no test here would find, or whose kind no test knows."""
    kinds = KINDS | ({""} if archived else set())
    rest = FENCE.sub(lambda block: "" if block[1] in kinds else block[0], text)
    return re.findall(r"^ *(?:`{3,}|~{3,}|:{3,}|(?:    |\t)(?![-*\d|])\S).*", rest, re.MULTILINE)


@pytest.mark.parametrize("page", ALL, ids=place)
def test_every_block_is_of_a_kind_that_is_tested(page: Path) -> None:
    assert untested(page.read_text(encoding="utf-8"), archived="archive" in page.parts) == []


@pytest.mark.parametrize(
    "block",
    [
        "```bash\nls\n```\n", "```\nls\n```\n", "  ```python\n  1 / 0\n  ```\n", "~~~python\n1 / 0\n~~~\n",
        "````python\n1 / 0\n````\n", ":::{code}\n1 / 0\n:::\n", "    print()\n", "```python\n1 / 0\n",
    ],
)  # fmt: skip
def test_a_block_that_nothing_runs_is_noticed(block: str) -> None:
    assert untested(f"Text.\n\n{block}\nText.\n")
    assert untested(f"```python\n1\n```\n\n{block}")
    assert not untested("- a list\n    - of lists\n\n```python\nif 1:\n    pass\n```\n")


@pytest.mark.long
@pytest.mark.parametrize("page", having("python"), ids=place)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, examples: Path) -> None:
    save_files(page, examples)
    code = "".join(blocks(page, "python"))
    python('import os\nos.environ["MPLBACKEND"] = "agg"\n' + code, examples)
    if page.parent.name == "gallery":
        shown = set(re.findall(r"\]\(([\w-]+\.png)\)", page.read_text(encoding="utf-8")))
        assert shown
        assert all((examples / name).stat().st_size > 5_000 for name in shown)


#: The commands that run, each with a page that shows it.
SHELL = {
    command: page
    for page in having("sh")
    for command in commands(page, "sh")
    # tests/app runs the application in a browser.
    if command not in EXAMPLES and not command.startswith(("pip ", "cd ", "everynode app "))
}


@pytest.mark.long
@pytest.mark.parametrize("command", SHELL)
def test_a_command_of_a_page_runs(command: str, examples: Path) -> None:
    page = SHELL[command]
    save_files(page, examples)
    if "papers/" in command:  # the page's Python writes this graph
        python("".join(blocks(page, "python")), examples)
    words = shlex.split(command.replace("--effort quick", "--effort quick --time-limit 10m"))
    assert words[0] == "everynode"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=examples, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [line for page in having("console") for line in commands(page, "console")]
    + [
        line
        for block in blocks(ROOT / "README.md", "sh")
        for line in block.splitlines()
        if line.startswith("everynode")
    ],
)
def test_the_flags_of_a_shown_command_exist(command: str) -> None:
    words = shlex.split(command, comments=True)
    if "everynode" not in words:
        assert words[0] == "ray"
        return
    tokens = words[words.index("everynode") + 1 :]
    app.parse_args(tokens, exit_on_error=False, print_error=False)


def anchors(page: Path) -> set[str]:
    """As GitHub and MyST make them of headings: lower case, spaces to dashes, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=place)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("https://", "../generated/")):
            continue
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize(
    "package", ["", "datasets", "graph", "io", "models", "objectives", "training"]
)
def test_every_public_name_is_in_the_python_reference(package: str) -> None:
    reference = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    listed = {name.split(".")[-1] for name in re.findall(r"^   ([\w.]+)$", reference, re.MULTILINE)}
    module = importlib.import_module(f"everynode.{package}".rstrip("."))
    assert {name for name in module.__all__ if callable(getattr(module, name))} - listed == set()


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_every_page_is_in_the_navigation(page: Path) -> None:
    listed = {"index.md"}
    for parent in DOCS.rglob("index.md"):
        for kind, _, content in FENCE.findall(parent.read_text(encoding="utf-8")):
            if kind == "{toctree}":
                entries = [line for line in content.splitlines() if line and line[0] != ":"]
                listed |= {
                    f"{(parent.parent / entry).relative_to(DOCS).as_posix()}.md"
                    for entry in entries
                }
    assert page.relative_to(DOCS).as_posix() in listed


@pytest.mark.parametrize("title", ["Your own term", "Your own model"])
def test_a_section_of_extending_has_at_most_40_lines(title: str) -> None:
    text = (DOCS / "guides/extending.md").read_text(encoding="utf-8")
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    assert len(section.strip().splitlines()) <= 40


@pytest.mark.parametrize("name", ["start/pyg-loop.md", "../README.md"])
def test_the_three_lines_run(name: str) -> None:
    """The change, applied to a loop that has the names it uses."""
    (diff,) = blocks(DOCS / name, "diff")
    lines = [line[2:] for line in diff.splitlines() if not line.startswith("-")]
    changed = "\n".join(lines).replace("range(200)", "range(2)")
    before = """
import torch, everynode, torch.nn.functional as F
from torch_geometric.nn import GCN
data = everynode.load('citeseer').to_pyg()
model = GCN(data.num_features, 8, 2, 6)
optimizer = torch.optim.Adam(model.parameters())
"""
    python_here(before + changed)


def test_the_change_for_lightning() -> None:
    lightning = pytest.importorskip("lightning", reason="needs the extra [docs]")
    assert hasattr(lightning, "LightningModule")
    (diff,) = blocks(DOCS / "gallery/lightning.md", "diff")
    changed = "\n".join(line[2:] for line in diff.splitlines() if not line.startswith("-"))
    before = "import lightning, torch, torch.nn.functional as F\nimport everynode as en\n"
    after = """
from everynode.datasets import generate
from torch_geometric.nn import GCN
graph = generate(200, 600, 8, 4)
data = graph.to_pyg()
module = Classifier(GCN(data.num_features, 8, 2, graph.num_classes), data)
module.log = lambda name, value: None
module.training_step(None, 0).backward()
assert all(p.grad is not None for p in module.model.parameters())
"""
    python_here(before + changed + after)


@pytest.mark.parametrize(
    "name",
    ["cora", "citeseer", "pubmed", "chameleon", "squirrel", "actor", "cornell", "texas", "wisconsin"],
)  # fmt: skip
def test_with_row_normalized_features_the_gate_is_as_open_as_the_page_says(
    name: str, data_root: Path
) -> None:
    said = re.search(
        r"the gate is above ([\d.]+) for half of all edges on every graph",
        (DOCS / "paper/index.md").read_text(encoding="utf-8"),
    )
    assert said is not None
    sample = Sample.of_graph(load(name, data_dir=data_root))
    gate = np.exp(-squared_feature_gradient(sample, "row") / 10.0)
    assert float(np.median(gate)) > float(said[1])
