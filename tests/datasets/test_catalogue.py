import hashlib
import importlib.util
import io
import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import torch

from everynode.datasets import CATALOGUE, bundled, catalogue, check_named, files, is_present, load
from everynode.errors import DataError, UsageError

# nodes, undirected edges without loops, features, classes, folds of the default split
SIZES = {
    "cora": (2708, 5278, 1433, 7, 1),
    "citeseer": (3327, 4552, 3703, 6, 1),
    "pubmed": (19717, 44324, 500, 3, 1),
    "chameleon": (2277, 31371, 2325, 5, 10),
    "squirrel": (5201, 198353, 2089, 5, 10),
    "actor": (7600, 26659, 932, 5, 10),
    "cornell": (183, 277, 1703, 5, 10),
    "cornell-legacy": (183, 277, 1703, 5, 10),
    "texas": (183, 279, 1703, 5, 10),
    "wisconsin": (251, 450, 1703, 5, 10),
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, as on a new machine."""
    monkeypatch.delenv("EVERYNODE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "everynode"


def offline(*_, **__):
    raise urllib.error.URLError("no route to host")


def copy(data_root: Path, target: Path, *folders: str) -> Path:
    for folder in folders:
        shutil.copytree(data_root / folder, target / folder, copy_function=shutil.copyfile)
    return target


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name, data_root):
    graph = load(name, data_dir=data_root)
    assert (
        graph.num_nodes,
        graph.num_edges,
        graph.num_features,
        graph.num_classes,
        len(graph.splits),
    ) == SIZES[name]
    assert graph.name == name
    assert graph.classes == tuple(range(graph.num_classes))
    if CATALOGUE[name].splits[0] == "public":
        assert [len(part) for part in graph.splits[0]] == [20 * graph.num_classes, 500, 1000]


def pyg(name, split, root):
    from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork

    if split == "public" or name == "cora":
        return Planetoid(root, {"cora": "Cora", "citeseer": "CiteSeer"}[name], split=split)[0]
    if name == "chameleon":
        return WikipediaNetwork(root, name, geom_gcn_preprocess=True)[0]
    return Actor(f"{root}/actor")[0] if name == "actor" else WebKB(root, name)[0]


@pytest.mark.parametrize(
    ("name", "folder", "split"),
    [
        ("cora", "Cora", "public"),
        ("cora", "Cora", "geom-gcn"),
        ("citeseer", "CiteSeer", "public"),
        ("texas", "texas", "geom-gcn"),
        ("chameleon", "chameleon", "geom-gcn"),
        ("actor", "actor", "geom-gcn"),
    ],
)
def test_equals_pyg_node_by_node_and_arc_by_arc(name, folder, split, data_root, tmp_path):
    from torch_geometric.utils import remove_self_loops

    theirs = pyg(name, split, str(copy(data_root, tmp_path, folder)))
    ours = load(name, split, data_dir=data_root, directed=True)
    assert torch.equal(ours.dense_features, theirs.x)
    arcs = remove_self_loops(theirs.edge_index)[0]
    n = ours.num_nodes
    assert torch.equal(ours.edges[0] * n + ours.edges[1], (arcs[0] * n + arcs[1]).sort().values)
    labelled = ours.labels >= 0
    assert int((~labelled).sum()) == (15 if name == "citeseer" else 0)
    assert torch.equal(ours.labels[labelled], theirs.y[labelled])
    assert bool((theirs.y[~labelled] == 0).all())  # what PyG makes of them
    for part in ("train", "val", "test"):
        masks = theirs[f"{part}_mask"].reshape(n, -1)
        assert masks.shape[1] == len(ours.splits)
        for fold, mine in enumerate(ours.splits):
            assert torch.equal(getattr(mine, part), masks[:, fold].nonzero()[:, 0])


def test_unknown_names_and_impossible_splits():
    with pytest.raises(UsageError, match=r"Unknown graph 'coar' .*did you mean 'cora'"):
        load("coar")
    with pytest.raises(
        UsageError, match=r"'texas' has no split 'public'. Choose from: geom-gcn, random"
    ):
        load("texas", "public")
    with pytest.raises(
        UsageError, match=r"'ogbn-arxiv' has no split 'geom-gcn'. Choose from: official, random"
    ):
        load("ogbn-arxiv", "geom-gcn")
    assert tuple(CATALOGUE) == (*SIZES, "ogbn-arxiv", "generated")


def test_random_split_follows_its_arguments(tmp_path):
    first, again, other = (
        load("citeseer", "random", data_dir=tmp_path, per_class=5, seed=s) for s in (1, 1, 2)
    )
    assert [len(part) for part in first.splits[0]] == [30, 500, 1000]
    assert first.digest == again.digest != other.digest
    assert torch.bincount(first.labels[first.splits[0].train]).tolist() == [5] * 6


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
        for entry in CATALOGUE.values():
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
        with pytest.raises(DataError, match=r"Cannot write .*: No space left on device.*EVERYNODE_DATA"):
            load("texas")
        assert not [p for p in cache.rglob("*") if p.is_file()]

    def test_addresses(self):
        wiki = catalogue.CATALOGUE["chameleon"].files("geom-gcn")
        assert all("/geom-gcn/f1fc0d14" in url for url in wiki.values())
        film = catalogue.CATALOGUE["actor"].files("geom-gcn")
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


def test_check_named_compares_with_graphs_that_share_files(data_root):
    report = check_named("cornell-legacy", data_dir=data_root)
    assert report.facts["copies_of"] == {"texas": ["features", "labels"]}
    assert report.facts["nodes_without_in_edges"] == 34
    assert (
        "It has the same features and labels as texas: one of the two files has the wrong name."
        in report.warnings
    )
    json.dumps(report.to_dict(), allow_nan=False)
    assert check_named("cornell", data_dir=data_root).facts["copies_of"] == {}
