"""The code in docs/ runs: tutorial, own graphs, the change for Lightning, mini-batches, extending."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import everynode
from everynode import load
from everynode.graph.sample import Sample
from everynode.objectives.total_variation import squared_feature_gradient

ROOT = Path(__file__).parents[1]
TUTORIAL, OWN, EXTENDING = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("tutorial.md", "own-graphs.md", "extending.md")
)
#: As much of Lightning as the shown class needs: a module that logs, and a Trainer's way to call it.
LIGHTNING = """
import sys, types
import torch, torch.nn.functional as F
import everynode as en
from torch_geometric.nn import GCN

lightning = types.ModuleType("lightning")
lightning.LightningModule = type("LightningModule", (torch.nn.Module,), {"log": lambda self, name, value: logged.append(float(value))})
logged = []
"""
TRAIN = """
from everynode.datasets import generate

graph = generate(200, 600, 8, 4)
data = graph.to_pyg()
module = Classifier(GCN(data.num_features, 8, 2, graph.num_classes), data)
optimizer = torch.optim.Adam(module.parameters())
for step in range(2):
    optimizer.zero_grad()
    module.training_step(None, step).backward()
    optimizer.step()
assert len(logged) == 2 and logged[0] != logged[1]
assert all(p.grad is not None for p in module.model.parameters())
"""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))


def test_the_tutorial_from_top_to_bottom(files):
    said = python("\n".join(blocks(TUTORIAL, "python")), files)
    assert "about: text" in said
    assert "test accuracy: 0." in said or "test accuracy: 1." in said
    assert said.count("newcomer") == 10


def test_the_commands_of_the_tutorial_are_those_of_the_examples():
    """Which run in test_examples."""
    known = "".join(
        blocks((ROOT / "examples" / "README.md").read_text(encoding="utf-8"), "sh")
    ).splitlines()
    assert set("".join(blocks(TUTORIAL, "sh")).splitlines()) <= set(known)


def test_the_python_of_own_graphs(files):
    python("\n".join(blocks(OWN, "python")), files)
    assert (files / "model" / "model.json").exists()


def test_the_change_for_lightning(tmp_path):
    (diff,) = blocks(OWN, "diff")
    changed = "\n".join(line[2:] for line in diff.splitlines() if not line.startswith("-"))
    python(LIGHTNING + changed + TRAIN, tmp_path)


def test_the_loop_with_batches_learns(tmp_path):
    (loop,) = [
        block
        for block in blocks((ROOT / "docs" / "scale.md").read_text(encoding="utf-8"), "python")
        if "NeighborLoader" in block
    ]
    judge = """
data, val = graph.to_pyg(), graph.nodes("val")
with torch.no_grad():
    right = model.eval()(data.x, data.edge_index).argmax(1) == data.y
print(right[val].double().mean().item())
"""
    accuracy = python("import torch\ntorch.manual_seed(0)\n" + loop + judge, tmp_path)
    assert float(accuracy) > 0.6  # six classes


@pytest.fixture
def extending(tmp_path: Path) -> Path:
    """A folder with the files that docs/extending.md tells the reader to save."""
    for name, content in re.findall(r"```python file=(\S+)\n(.*?)```", EXTENDING, re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def test_the_python_of_extending(extending):
    """Own terms and models in ENC and in NodeClassifier."""
    first, second = blocks(EXTENDING, "python")
    checks = (
        'assert objective.weights["hub_entropy"] == 0.2',
        'assert "hub_entropy" in model.fitted_.history',
    )
    python("\n".join([first, *checks, second]), extending)


@pytest.mark.parametrize("command", "".join(blocks(EXTENDING, "sh")).splitlines())
def test_the_commands_of_extending(command, extending):
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--quiet"],
        cwd=extending,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("title", ["Your own term", "Your own model"])
def test_a_section_of_extending_has_at_most_40_lines(title):
    section = EXTENDING.split(f"## {title}\n")[1].split("\n## ")[0]
    assert len(section.strip().splitlines()) <= 40


def test_every_public_name_is_in_the_reference_and_its_code_runs(tmp_path):
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `en\.(\w+)", page, re.MULTILINE)) == set(everynode.__all__)
    (code,) = blocks(page, "python")
    assert "must be in [0, 1)" in python(code, tmp_path)


@pytest.mark.parametrize("name", ["tutorial.md", "own-graphs.md", "extending.md", "reference.md"])
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / name).read_text(encoding="utf-8")):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target


def test_every_flag_of_own_graphs_exists():
    shown = subprocess.run(
        [sys.executable, "-m", "everynode", "fit", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    section = OWN[OWN.index("## One command") : OWN.index("## New nodes")]
    flags = set(re.findall(r"`(--[a-z-]+)|(?<= )(--[a-z-]+)", section))
    for flag in {one or two for one, two in flags}:
        assert flag in shown, flag


@pytest.mark.parametrize(
    "name",
    [
        "cora",
        "citeseer",
        "pubmed",
        "chameleon",
        "squirrel",
        "actor",
        "cornell",
        "texas",
        "wisconsin",
    ],
)
def test_with_row_normalized_features_the_gate_is_as_open_as_paper_md_says(name, data_root):
    said = re.search(
        r"the gate is above ([\d.]+) for half of all edges on every graph",
        (ROOT / "docs/paper.md").read_text(),
    )
    sample = Sample.of_graph(load(name, data_dir=data_root))
    gate = np.exp(-squared_feature_gradient(sample, "row") / 10.0)
    assert float(np.median(gate)) > float(said[1])
