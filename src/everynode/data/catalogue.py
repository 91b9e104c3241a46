"""The named graphs: where their files are, which splits they have, and what to know before trusting a score on them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import torch

from everynode.data import bundle, geom_gcn, ogb, planetoid
from everynode.data.check import Report, check
from everynode.data.files import Raw, Root, digests
from everynode.data.splits import random_split
from everynode.errors import UsageError, unknown
from everynode.graph import Graph, Split

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
#: How many folds Geom-GCN's splits have.
FOLDS = 10


@dataclass(frozen=True)
class Entry:
    """One named graph."""

    name: str
    #: Which reader understands its files.
    format: Literal["planetoid", "geom-gcn", "geom-gcn-listed", "ogb"]
    #: The folder of its files below the root, as PyG lays them out.
    folder: str
    #: What it is called in file names and in the public repositories.
    stem: str
    #: The splits there are; the first is the default.
    splits: tuple[str, ...]
    about: str
    #: What a careful user wants to be told.
    caution: str = ""
    #: The folder of the ten folds, where it is not that of the other files.
    split_folder: str | None = None
    #: The revision of Geom-GCN's repository: PyG takes the Wikipedia graphs from an older one.
    revision: str = "master"
    #: How to get the files when they cannot be downloaded; empty when they can.
    no_download: str = ""

    @property
    def nodes_file(self) -> str:
        """Geom-GCN's node file."""
        return f"{self.folder}/out1_node_feature_label.txt"

    @property
    def edges_file(self) -> str:
        """Geom-GCN's edge file."""
        return f"{self.folder}/out1_graph_edges.txt"

    def files(self, split: str) -> dict[str, str | None]:
        """Every file that loading with this split reads, below the root, and its public address (None: not to be downloaded)."""
        if self.format == "ogb":
            return {f"{self.folder}/{name}": None for name in ogb.FILES}
        geom_gcn_url = f"{_GEOM_GCN}/{self.revision}"
        if self.format == "planetoid":
            wanted = {f"{self.folder}/ind.{self.stem}.{part}": f"{_PLANETOID}/ind.{self.stem}.{part}" for part in planetoid.PARTS}
        else:
            both = (self.nodes_file, self.edges_file)
            wanted = {path: f"{geom_gcn_url}/new_data/{self.stem}/{path.rpartition('/')[2]}" for path in both}
        if split == "geom-gcn":
            wanted |= {path: f"{geom_gcn_url}/splits/{path.rpartition('/')[2]}" for path in self.folds()}
        return dict.fromkeys(wanted) if self.no_download else dict(wanted)

    def folds(self) -> list[str]:
        """The files of the ten folds, below the root."""
        return [f"{self.split_folder or self.folder}/{self.stem}_split_0.6_0.2_{fold}.npz" for fold in range(FOLDS)]


def _planetoid(name: str, folder: str, about: str, caution: str) -> Entry:
    splits = ("public", "geom-gcn", "random")
    return Entry(name, "planetoid", f"{folder}/raw", name, splits, about, caution, split_folder=f"{folder}/geom-gcn/raw")


_TEN = ("geom-gcn", "random")
_TWINS = "Many test nodes have a twin in train with the same neighbours and class: scores are inflated."
_SMALL = "The test sets are so small that one node is worth 2 points or more."


def _wikipedia(name: str) -> Entry:
    revision = "f1fc0d14b3b019c562737240d06ec83b07d16a8f"
    about = "Wikipedia pages by monthly traffic, 5 classes."
    return Entry(name, "geom-gcn", f"{name}/geom_gcn/raw", name, _TEN, about, _TWINS, revision=revision)


_ENTRIES = (
    _planetoid("cora", "Cora", "Papers that cite each other, 7 topics.", "The ten folds cover only the largest component."),
    _planetoid("citeseer", "CiteSeer", "Papers that cite each other, 6 topics. Comes with the package.", "15 nodes have no label."),
    _planetoid("pubmed", "PubMed", "Papers on diabetes that cite each other, 3 topics.", ""),
    _wikipedia("chameleon"),
    _wikipedia("squirrel"),
    Entry("actor", "geom-gcn-listed", "actor/raw", "film", _TEN, "Actors named on the same Wikipedia page, 5 classes."),
    Entry(
        "cornell", "geom-gcn", "cornell/raw", "cornell", _TEN, "Web pages of a university, 5 classes; the file as corrected in 2022.",
        f"Papers before 2022 used another file under this name: see cornell-legacy. {_SMALL}",
    ),
    Entry(
        "cornell-legacy", "geom-gcn", "legacy/cornell/raw", "cornell", _TEN, "Cornell as it was published until 2022.",
        "It holds the features and labels of Texas: only for comparing with old papers.",
        no_download="it is only in the history of graphdml-uiuc-jlu/geom-gcn before 2022 (new_data/cornell); put that file there.",
    ),
    Entry("texas", "geom-gcn", "texas/raw", "texas", _TEN, "Web pages of a university, 5 classes.", f"One class has one node. {_SMALL}"),
    Entry("wisconsin", "geom-gcn", "wisconsin/raw", "wisconsin", _TEN, "Web pages of a university, 5 classes.", _SMALL),
    Entry(
        "ogbn-arxiv", "ogb", "ogbn_arxiv", "arxiv", ("official", "random"), "arXiv papers that cite each other, 40 subjects.",
        no_download="unpack OGB's arxiv.zip (ogb.stanford.edu) so that ogbn_arxiv/raw/edge.csv.gz and ogbn_arxiv/split/time/train.csv.gz "
        "lie in the data folder.",
    ),
)  # fmt: skip
#: The named graphs by name.
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def load(
    name: str,
    split: str | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    directed: bool = False,
    per_class: int = 20,
    seed: int = 0,
) -> Graph:
    """A public graph by name, checked byte for byte, with raw features.

    ``split``: ``public`` (20 training nodes a class, 500 validation, 1000 test), ``geom-gcn`` (ten folds of 48/32/20 percent),
    ``official`` (ogbn-arxiv's own) or ``random`` (``per_class`` training nodes a class by ``seed``, then as in ``public``; see
    :func:`random_split` for small graphs); by default the one that papers use for this graph.
    ``data_dir``: a folder in PyG's layout, never written to; else ``$EVERYNODE_DATA``; else a cache folder, into which missing files
    are downloaded. Citeseer comes with the package.

    >>> load("citeseer")
    Graph 'citeseer': 3327 nodes, 4552 edges, 3703 features (sparse), 6 classes, 3312 labelled, 1 splits
    """
    entry, split = _choose(name, split)
    root = Root.find(data_dir)
    raw = _read(entry, root)
    if split == "random":
        splits = [random_split(torch.from_numpy(raw.labels), per_class, seed=seed)]
    elif split == "geom-gcn":
        splits = _read_folds(entry, root, len(raw.labels))
    else:
        assert raw.split is not None  # the catalogue says that these files bring one
        splits = [raw.split]
    classes = range(raw.num_classes)
    return Graph.from_arrays(raw.features, raw.arcs, raw.labels, splits=splits, classes=classes, directed=directed, name=name)


def is_present(name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Whether :func:`load` can do without a download."""
    entry, split = _choose(name, split)
    root = Root.find(data_dir)
    wanted = entry.folds() if _is_bundled(entry, root) and split == "geom-gcn" else entry.files(split)
    return (_is_bundled(entry, root) and split != "geom-gcn") or all(root.has(path) for path in wanted)


def check_named(name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None) -> Report:
    """:func:`check` of a named graph, also of its direction, and against the other present graphs that share files with it."""
    entry, split = _choose(name, split)
    own = _content(entry)
    twins = [other.name for other in _ENTRIES if other is not entry and own & _content(other) and is_present(other.name, data_dir=data_dir)]
    graph = load(name, split, data_dir=data_dir)
    directed = load(name, split, data_dir=data_dir, directed=True) if graph.repairs["one_way_edges"] else None
    return check(graph, directed=directed, others=[load(other, data_dir=data_dir) for other in twins])


def _choose(name: str, split: str | None) -> tuple[Entry, str]:
    if name not in CATALOGUE:
        unknown("graph", name, CATALOGUE)
    entry = CATALOGUE[name]
    if split is not None and split not in entry.splits:
        raise UsageError(f"Graph {name!r} has no split {split!r}. Choose from: {', '.join(entry.splits)}.")
    return entry, split or entry.splits[0]


def _content(entry: Entry) -> set[str]:
    """The digests of a graph's own files: equal ones give away a graph that was published under two names."""
    return {digests()[path] for path in entry.files("random") if path in digests()}


def _is_bundled(entry: Entry, root: Root) -> bool:
    """Whether the package's own copy is to be used: it is, unless the folder has the original files."""
    return entry.name == "citeseer" and not any(root.has(path) for path in entry.files("public"))


def _read(entry: Entry, root: Root) -> Raw:
    if _is_bundled(entry, root):
        return bundle.read()
    files = {path: root.read(path, url, entry.no_download) for path, url in entry.files("random").items()}
    where = str(root.folder / entry.folder)
    if entry.format == "planetoid":
        stem = f"ind.{entry.stem}"
        return planetoid.read({part: files[f"{entry.folder}/{stem}.{part}"] for part in planetoid.PARTS}, f"{where}/{stem}")
    if entry.format == "ogb":
        return ogb.read({part: files[f"{entry.folder}/{part}"] for part in ogb.FILES}, where)
    paths = (str(root.folder / entry.nodes_file), str(root.folder / entry.edges_file))
    return geom_gcn.read(files[entry.nodes_file], files[entry.edges_file], *paths, listed=entry.format == "geom-gcn-listed")


def _read_folds(entry: Entry, root: Root, n: int) -> list[Split]:
    address = entry.files("geom-gcn")
    return [geom_gcn.read_split(root.read(path, address[path], entry.no_download), str(root.folder / path), n) for path in entry.folds()]
