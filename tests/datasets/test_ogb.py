import gzip
import hashlib
import io
import urllib.request
import zipfile

import pytest

from everynode.datasets import CATALOG, entries, files, is_present, load, ogb
from everynode.datasets.files import Root
from everynode.errors import DataError
from everynode.experiments.experiment import find

SMALL = {
    "raw/edge.csv.gz": "0,1\n2,1\n1,1\n0,1\n",
    "raw/node-feat.csv.gz": "0.5,-1.25\n0,3\n1e-3,2\n4,4\n",
    "raw/node-label.csv.gz": "0\n2\n1\nnan\n",
    "split/time/train.csv.gz": "2\n0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "3\n",
}


def write(root, **changes):
    for name, text in (SMALL | changes).items():
        path = root / "ogbn_arxiv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else gzip.compress(text.encode()))
    return root


def test_a_small_graph_in_the_layout_of_arxiv(tmp_path):
    graph = load("ogbn-arxiv", data_dir=write(tmp_path), directed=True)
    assert graph.edges.T.tolist() == [[0, 1], [2, 1]]
    assert graph.repairs == {"self_loops": 1, "repeated_edges": 1, "one_way_edges": 0}
    assert graph.dense_features[0].tolist() == [0.5, -1.25]
    assert graph.labels.tolist() == [0, 2, 1, -1]
    assert [part.tolist() for part in graph.splits[0]] == [[0, 2], [1], [3]]
    assert load("ogbn-arxiv", data_dir=tmp_path).repairs["one_way_edges"] == 2
    assert len(load("ogbn-arxiv", "random", data_dir=tmp_path, per_class=1).splits[0].train) == 3
    assert is_present("ogbn-arxiv", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("raw/edge.csv.gz", "0,1\n0,x\n", "edge.csv.gz is not a table of numbers: .*row 1"),
        ("raw/edge.csv.gz", "0,1,2\n", "edge.csv.gz has 3 columns where 2"),
        ("raw/edge.csv.gz", "0,1.5\n", "edge.csv.gz: 1.5 is not a whole number"),
        ("raw/edge.csv.gz", "0,inf\n", "edge.csv.gz: inf is not a whole number"),
        ("raw/edge.csv.gz", "0,7\n", "nodes 0 and 7, but nodes are 0 to 3"),
        ("raw/node-feat.csv.gz", "1,2\n3\n", "node-feat.csv.gz is not a table of numbers"),
        ("raw/node-feat.csv.gz", "é\n", "node-feat.csv.gz is not a table of numbers"),
        ("raw/node-label.csv.gz", "0\n1\n", "node-label.csv.gz has 2 x 1 labels for 4 nodes"),
        ("split/time/test.csv.gz", "9\n", "test nodes of fold 0 reach outside"),
        ("split/time/test.csv.gz", b"not gzip", "test.csv.gz is damaged or incomplete"),
        (
            "raw/edge.csv.gz",
            gzip.compress(b"0,1\n" * 999, mtime=0)[:-12],
            "edge.csv.gz is damaged or incomplete",
        ),
    ],
)
def test_bad_files(file, text, words, tmp_path):
    with pytest.raises(DataError, match=words):
        load("ogbn-arxiv", data_dir=write(tmp_path, **{file: text}))


def test_missing(tmp_path):
    (write(tmp_path) / "ogbn_arxiv" / "raw" / "edge.csv.gz").unlink()
    assert not is_present("ogbn-arxiv", data_dir=tmp_path)
    with pytest.raises(
        DataError,
        match=r"edge\.csv\.gz is missing and cannot be downloaded: unpack OGB's archive again",
    ):
        load("ogbn-arxiv", data_dir=tmp_path)


def archive(folder="arxiv", **changes):
    """The same graph as OGB publishes it: one zip file with everything below one folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr(f"{folder}/RELEASE_v1.txt", "")
        for name, text in (SMALL | {"raw/node_year.csv.gz": "2019\n"} | changes).items():
            if text is not None:
                packed.writestr(f"{folder}/{name}", gzip.compress(text.encode(), mtime=0))
    return out.getvalue()


class TestArchive:
    @pytest.fixture
    def known(self, monkeypatch):
        """Let the digest of this archive be the known one."""

        def make(content):
            table = {"ogbn_arxiv/arxiv.zip": hashlib.sha256(content).hexdigest()}
            for module in (files, entries):
                monkeypatch.setattr(module, "digests", lambda: table)
            return content

        return make

    def test_the_digest_of_the_public_one_is_known(self, tmp_path):
        (path,) = CATALOG["ogbn-arxiv"].files("official")
        assert files.digests()[path].startswith("49f85c801589")
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_bytes(archive())
        with pytest.raises(
            DataError,
            match=r"arxiv\.zip is not the public file: .*expected 49f85c801589.*Fetch it again from https",
        ):
            load("ogbn-arxiv", data_dir=tmp_path)

    def test_it_is_downloaded_once_whole_and_read_as_if_unpacked(
        self, known, tmp_path, monkeypatch
    ):
        content, asked = known(archive()), []
        monkeypatch.delenv("EVERYNODE_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(
            urllib.request, "urlopen", lambda url, timeout: asked.append(url) or io.BytesIO(content)
        )
        assert not is_present("ogbn-arxiv")
        graphs = [
            load("ogbn-arxiv"),
            load("ogbn-arxiv"),
            load("ogbn-arxiv", data_dir=write(tmp_path / "unpacked")),
        ]
        assert len({graph.digest for graph in graphs}) == 1
        assert asked == ["https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"]
        assert is_present("ogbn-arxiv")
        assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [
            "arxiv.zip"
        ]

    def test_runs_are_known_before_it_is_here_and_unpacked_files_are_told_apart(self, tmp_path):
        nowhere = Root(tmp_path / "nowhere", downloads=True)
        plan, missing = find("arxiv").plan("paper", 2, nowhere)
        assert missing == {}
        assert len({run.key for runs in plan.values() for run in runs}) == 12
        entry = CATALOG["ogbn-arxiv"]
        by_hand, changed = (
            Root(write(tmp_path / name, **edges), downloads=False)
            for name, edges in CHANGED.items()
        )
        assert len({entry.digest("official", root) for root in (nowhere, by_hand, changed)}) == 3
        assert find("arxiv").plan("paper", 2, Root(tmp_path, downloads=False))[1].keys() == {
            "ogbn-arxiv"
        }

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"not a zip", r"arxiv\.zip is damaged \(File is not a zip file\): fetch it again"),
            (archive(**{"raw/edge.csv.gz": None}), r"arxiv\.zip does not hold raw/edge\.csv\.gz"),
            (archive(**{"raw/edge.csv.gz": "0,9\n"}), "nodes 0 and 9, but nodes are 0 to 3"),
        ],
    )
    def test_bad(self, content, words, known, tmp_path):
        (tmp_path / "ogbn_arxiv").mkdir()
        (tmp_path / "ogbn_arxiv/arxiv.zip").write_bytes(known(content))
        with pytest.raises(DataError, match=words):
            load("ogbn-arxiv", data_dir=tmp_path)


#: Two unpacked folders that differ in an edge.
CHANGED = {"unchanged": {}, "changed": {"raw/edge.csv.gz": "0,2\n"}}


def test_empty_tables():
    none = {name: gzip.compress(b"") for name in ogb.OGB_FILES}
    filled = none | {
        name: gzip.compress(SMALL[name].encode())
        for name in ("raw/node-feat.csv.gz", "raw/node-label.csv.gz")
    }
    raw = ogb.read(filled, "folder")
    assert raw.arcs.shape == (2, 0)
    assert [len(part) for part in raw.split] == [0, 0, 0]
