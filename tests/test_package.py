"""The package: what sdist and wheel contain, and that the wheel runs in an empty environment with what it declares."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: The packages whose lowest declared versions are installed. The others follow the package index.
OLD = ("numpy", "scipy", "scikit-learn")
#: The scikit-learn lines of the README, on a graph small enough to build anywhere.
QUICK_START = """
import networkx as nx
import numpy as np
import everynode as en

club = nx.karate_club_graph()
edges = np.array(club.edges).T
features = nx.to_numpy_array(club)
team = np.array([club.nodes[i]["club"] for i in club])
known = np.where(np.arange(34) % 3 == 0, team, None)
model = en.NodeClassifier("gcn", settings={"epochs": 20}).fit(features, known, edge_index=edges)
assert (model.predict(features, edge_index=edges) == team).mean() > 0.6
model.save("karate")
again = en.NodeClassifier.load("karate")
assert (again.predict(features, edge_index=edges) == model.predict(features, edge_index=edges)).all()
"""

pytestmark = pytest.mark.long


def run(*words: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that sees nothing of this environment."""
    hidden = ("PYTHONPATH", "EVERYNODE_DATA", "EVERYNODE_PLUGINS")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def has_index(folder: Path) -> bool:
    """Whether pip finds a package index."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
    return subprocess.run([*words, "hatchling"], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist of a copy of the project, and the wheel that is built from the sdist."""
    folder = tmp_path_factory.mktemp("built")
    if not has_index(folder / "probe"):
        pytest.skip("needs a package index, from which pip takes hatchling")
    ignored = shutil.ignore_patterns(".*", "runs", "build", "dist", "__pycache__")
    copy = shutil.copytree(ROOT, folder / "project", ignore=ignored)
    run(sys.executable, "-m", "build", "--outdir", folder, copy, cwd=folder)
    return next(folder.glob("everynode-*.tar.gz")), next(folder.glob("everynode-*.whl"))


def test_the_sdist_has_what_the_tests_need(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("src/everynode", "tests", "docs", "examples", "results", "benchmarks", "tools"):
        present = (
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix in {".py", ".toml", ".md", ".json", ".csv"}
        )
        assert set(present) <= names, folder
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "constraints.txt"} <= names


def test_the_wheel_has_every_module_and_data_file_and_no_test(built):
    names = set(zipfile.ZipFile(built[1]).namelist())
    source = ROOT / "src"
    files = (path for path in (source / "everynode").rglob("*") if path.is_file())
    expected = {
        path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts
    }
    assert "everynode/py.typed" in expected
    assert expected <= names
    assert not [name for name in names if name not in expected and ".dist-info/" not in name]


def test_the_metadata_has_the_extras(built):
    wheel = zipfile.ZipFile(built[1])
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    extras = set(re.findall(r"^Provides-Extra: (.+)$", wheel.read(name).decode(), re.M))
    assert extras == set(PROJECT["optional-dependencies"])


def lowest(name: str, python: Path, folder: Path) -> str:
    """The lowest version, at least the declared one, of which there is a wheel for this Python."""
    (line,) = (line for line in PROJECT["dependencies"] if re.match(rf"{name}\b", line))
    declared = [int(part) for part in re.search(r">=([\d.]+)", line)[1].split(".")]
    listed = run(python, "-m", "pip", "index", "versions", name, cwd=folder).stdout
    versions = re.search(r"Available versions: (.*)", listed)[1].split(", ")
    numbers = sorted(
        [int(part) for part in version.split(".")]
        for version in versions
        if re.fullmatch(r"\d+(\.\d+)+", version)
    )
    for number in (number for number in numbers if number >= declared):
        wanted = f"{name}=={'.'.join(map(str, number))}"
        words = [python, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder]
        found = subprocess.run([*words, "--only-binary=:all:", wanted], capture_output=True)
        if found.returncode == 0:
            return wanted
    raise AssertionError(f"{name} has no wheel for this Python")


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> tuple[Path, list[str]]:
    """An empty environment with the wheel and the oldest declared versions: its programs, and these versions."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    python = programs / "python"
    old = [lowest(name, python, folder) for name in OLD]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    same = re.findall(
        r"^torch(?:-geometric)?==.*$", constraints, re.M
    )  # no CUDA where dev has none
    run(
        python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", built[1], *old, *same, cwd=folder
    )  # fmt: skip
    return programs, old


def test_the_oldest_versions_are_installed_and_agree(installed, tmp_path):
    programs, old = installed
    frozen = run(programs / "python", "-m", "pip", "freeze", cwd=tmp_path).stdout.splitlines()
    assert set(old) <= set(frozen)
    run(programs / "python", "-m", "pip", "check", cwd=tmp_path)


def test_the_quick_start_runs_from_python(installed, tmp_path):
    run(installed[0] / "python", "-c", QUICK_START, cwd=tmp_path)


def test_the_quick_start_runs_on_two_files(installed, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    words = (
        "fit --nodes people.csv --edges links.csv --id id --label team --backbone gcn --epochs 20"
    )
    run(installed[0] / "everynode", *words.split(), "--out", "out", cwd=tmp_path / "examples")
    made = tmp_path / "examples" / "out"
    assert len((made / "predictions.csv").read_text(encoding="utf-8").splitlines()) > 100
    assert (made / "report.html").exists()


def test_a_command_of_an_extra_names_the_extra(installed, tmp_path):
    done = run(installed[0] / "everynode", "tune", "citeseer", cwd=tmp_path, code=2)
    assert "pip install 'everynode[tune]'" in done.stderr
