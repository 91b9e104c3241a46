"""Public files: missing, damaged, downloaded."""

from __future__ import annotations

import hashlib
import io
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from everynode.datasets import CATALOG, catalog, files, load
from everynode.errors import DataError


def offline(*_, **__):
    raise urllib.error.URLError("no route to host")


def copy(data_root: Path, target: Path, *folders: str) -> Path:
    for folder in folders:
        shutil.copytree(data_root / folder, target / folder, copy_function=shutil.copyfile)
    return target


class TestFiles:
    def test_missing_from_a_named_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            urllib.request,
            "urlopen",
            lambda *_, **__: pytest.fail("a named folder is never downloaded into"),
        )
        with pytest.raises(
            DataError,
            match=r"Cora/raw/ind\.cora\.x is missing: put it there .*https.*unset EVERYNODE_DATA",
        ):
            load("cora", data_dir=tmp_path)
        monkeypatch.setenv("EVERYNODE_DATA", str(tmp_path))
        with pytest.raises(DataError, match=r"texas/raw/out1_node_feature_label.txt is missing"):
            load("texas")
        assert list(tmp_path.iterdir()) == []

    def test_what_cannot_be_downloaded_says_how_to_get_it(self, cache, monkeypatch):
        monkeypatch.setattr(
            urllib.request, "urlopen", lambda *_, **__: pytest.fail("no address is known")
        )
        with pytest.raises(DataError, match=r"is missing and cannot be downloaded: .*before 2022"):
            load("cornell-legacy")

    @pytest.mark.parametrize(
        "damage", [lambda b: b[: len(b) // 2], lambda b: b[:-1] + b"7", lambda b: b""]
    )
    @pytest.mark.parametrize(
        "file",
        [
            "texas/raw/out1_graph_edges.txt",
            "texas/raw/out1_node_feature_label.txt",
            "texas/raw/texas_split_0.6_0.2_3.npz",
        ],
    )
    def test_damaged(self, file, damage, data_root, tmp_path):
        path = copy(data_root, tmp_path, "texas") / file
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(
            DataError,
            match=rf"{path.name} is not the public file.*expected [0-9a-f]{{12}}.*Fetch it again from https",
        ):
            load("texas", data_dir=tmp_path)

    def test_damaged_in_the_cache_is_to_be_deleted(self, data_root, cache):
        path = copy(data_root, cache, "Cora/raw") / "Cora/raw/ind.cora.graph"
        path.write_bytes(b"cut")
        with pytest.raises(
            DataError,
            match=r"ind\.cora\.graph is not the public file.*Delete it, and it will be downloaded again",
        ):
            load("cora")

    def test_unreadable(self, tmp_path):
        (tmp_path / "texas/raw/out1_node_feature_label.txt").mkdir(parents=True)
        with pytest.raises(DataError, match=r"Cannot read .*out1_node_feature_label.txt"):
            load("texas", data_dir=tmp_path)

    def test_reading_leaves_a_folder_as_it_is(self, data_root, tmp_path):
        copy(data_root, tmp_path, "texas", "Cora")
        before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
        load("texas", data_dir=tmp_path)
        load("cora", "geom-gcn", data_dir=str(tmp_path))
        assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before

    def test_every_file_has_a_digest_and_matches_it(self, data_root):
        for entry in CATALOG.values():
            for path in entry.files(entry.splits[-2]) if entry.format != "ogb" else ():
                assert (
                    hashlib.sha256((data_root / path).read_bytes()).hexdigest()
                    == files.digests()[path]
                )


class TestDownload:
    def test_offline(self, cache, monkeypatch):
        monkeypatch.setattr(urllib.request, "urlopen", offline)
        with pytest.raises(
            DataError,
            match=r"Cannot download https://\S+ind\.cora\.x \(no route to host\): go online, or put that file at \S+",
        ):
            load("cora")
        assert not cache.exists()

    def test_lands_whole_and_only_once(self, cache, data_root, monkeypatch):
        asked = []

        def serve(url, timeout):
            asked.append(url)
            return io.BytesIO((data_root / "texas" / "raw" / url.rpartition("/")[2]).read_bytes())

        monkeypatch.setattr(urllib.request, "urlopen", serve)
        graph = load("texas")
        assert graph.digest == load("texas", data_dir=data_root).digest
        assert len(asked) == 12
        assert sorted(p.name for p in (cache / "texas/raw").iterdir()) == sorted(
            url.rpartition("/")[2] for url in asked
        )
        assert load("texas").digest == graph.digest
        assert len(asked) == 12
        assert all("geom-gcn/master/" in url for url in asked)

    def test_wrong_content_never_lands(self, cache, monkeypatch):
        monkeypatch.setattr(
            urllib.request,
            "urlopen",
            lambda url, timeout: io.BytesIO(b"<html>log in to the hotel network</html>"),
        )
        with pytest.raises(
            DataError,
            match=r"https.* is not the public file.*Try again later, or put the right file at",
        ):
            load("texas")
        assert not list(cache.rglob("*.txt"))

    def test_a_full_disk_leaves_nothing_behind(self, cache, data_root, monkeypatch):
        def serve(url, timeout):
            return io.BytesIO((data_root / "texas" / "raw" / url.rpartition("/")[2]).read_bytes())

        def full(self, target):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(urllib.request, "urlopen", serve)
        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(
            DataError, match=r"Cannot write .*: No space left on device.*EVERYNODE_DATA"
        ):
            load("texas")
        assert not [p for p in cache.rglob("*") if p.is_file()]

    def test_addresses(self):
        wiki = catalog.CATALOG["chameleon"].files("geom-gcn")
        assert all("/geom-gcn/f1fc0d14" in url for url in wiki.values())
        film = catalog.CATALOG["actor"].files("geom-gcn")
        assert film["actor/raw/out1_graph_edges.txt"].endswith(
            "/new_data/film/out1_graph_edges.txt"
        )
        assert film["actor/raw/film_split_0.6_0.2_9.npz"].endswith(
            "/splits/film_split_0.6_0.2_9.npz"
        )


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("EVERYNODE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.Root.find() == files.Root(tmp_path / ".cache" / "everynode", downloads=True)
    monkeypatch.setenv("EVERYNODE_DATA", "~/graphs")
    assert files.Root.find() == files.Root(tmp_path / "graphs", downloads=False)
