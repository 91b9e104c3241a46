"""Optional dependencies: the extras of pyproject.toml, and the errors that name them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from everynode.errors import UsageError
from everynode.extras import EXTRAS, need_extra
from everynode.selection.leaderboard import Leaderboard

ROOT = Path(__file__).parents[1]


def declared() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    """The packages, spelled as they are imported."""
    return {
        re.match(r"[\w-]+", line)[0].lower().replace("-", "_")
        for line in requirements
        if not line.startswith("everynode")
    }


def test_the_packages_of_each_extra_are_those_that_pyproject_declares():
    for extra, packages in EXTRAS.items():
        assert names(declared()["optional-dependencies"][extra]) == set(packages)


def test_a_package_of_an_extra_is_no_core_dependency():
    core = names(declared()["dependencies"])
    assert core.isdisjoint(name for packages in EXTRAS.values() for name in packages)


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_a_missing_package_names_the_extra(extra, monkeypatch):
    missing = EXTRAS[extra][0]
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError) as caught:
        need_extra(extra, "Flying", otherwise=", or walk")
    assert str(caught.value) == (
        f"Flying needs {missing}: pip install 'everynode[{extra}]' (in a clone: '.[{extra}]'), "
        "or walk."
    )


def test_an_extra_that_is_there_is_returned():
    assert need_extra("tables", "A table").__name__ == "pandas"


@pytest.mark.parametrize("words", [("tune", "citeseer"), ("tune", "export", "runs", "t.toml")])
def test_tune_without_optuna_names_the_extra(words, call, elsewhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = call(*words)
    assert done.returncode == 2
    assert "`everynode tune` needs optuna: pip install 'everynode[tune]'" in done.stderr


def test_a_table_without_pandas_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"pip install 'everynode\[tables\]'"):
        Leaderboard(()).to_pandas()


def test_no_command_but_tune_imports_the_packages_of_an_extra(tmp_path):
    """Every module but those of tuning and the app is imported without them."""
    packages = sorted(name for extra in EXTRAS.values() for name in extra)
    code = f"""
import importlib, pkgutil, sys
for name in {packages}:
    sys.modules[name] = None
import everynode
tuning = ("everynode.app", "selection.study_storage", "selection.tun", "report.study", "numba_kernels", "__main__")
for module in pkgutil.walk_packages(everynode.__path__, "everynode."):
    if not any(part in module.name for part in tuning):
        importlib.import_module(module.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
