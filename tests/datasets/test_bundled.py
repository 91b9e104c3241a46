"""The Citeseer that comes with the package."""

from __future__ import annotations

import importlib.util
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from everynode.datasets import bundled, files, is_present, load
from everynode.errors import DataError


def offline(*_, **__):
    raise urllib.error.URLError("no route to host")


def copy(data_root: Path, target: Path, *folders: str) -> Path:
    for folder in folders:
        shutil.copytree(data_root / folder, target / folder, copy_function=shutil.copyfile)
    return target


class TestBundled:
    def test_equals_the_files(self, data_root, tmp_path):
        bundled, from_files = (
            load("citeseer", data_dir=tmp_path),
            load("citeseer", data_dir=data_root),
        )
        assert bundled.digest == from_files.digest
        assert bundled.repairs == from_files.repairs

    def test_the_tool_makes_the_same_bytes(self, data_root):
        spec = importlib.util.spec_from_file_location(
            "tool", Path(__file__).parents[2] / "tools" / "bundle_citeseer.py"
        )
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        assert tool.pack_folder(data_root / "CiteSeer" / "raw") == tool.TARGET.read_bytes()

    def test_needs_no_network_and_writes_nothing(self, cache, monkeypatch):
        monkeypatch.setattr(urllib.request, "urlopen", offline)
        assert load("citeseer").num_nodes == 3327
        assert is_present("citeseer")
        assert not is_present("citeseer", "geom-gcn")
        assert not cache.exists()

    def test_folds_come_from_the_root(self, data_root, tmp_path):
        copy(data_root, tmp_path, "CiteSeer/geom-gcn")
        assert is_present("citeseer", "geom-gcn", data_dir=tmp_path)
        mixed = load("citeseer", "geom-gcn", data_dir=tmp_path)
        assert mixed.digest == load("citeseer", "geom-gcn", data_dir=data_root).digest

    def test_wrong_content_is_refused(self, monkeypatch):
        monkeypatch.setattr(files, "digests", lambda: {bundled.CITESEER: "0" * 64})
        with pytest.raises(
            DataError, match=r"citeseer.npz is not the public file.*Install everynode again"
        ):
            bundled.read()
