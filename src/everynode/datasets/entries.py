"""Catalog of the named graphs: their files, splits and known problems.

This module does not import PyTorch, so commands that only list graphs answer at once.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from typing import Literal

from everynode.datasets.files import Root, digests
from everynode.errors import UsageError, unknown

#: The endings of the eight files of a Planetoid graph.
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
#: The six files of an OGB graph, in its archive and below its folder.
OGB_FILES = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
#: The number of folds of Geom-GCN's splits.
FOLDS = 10
#: Training nodes per class of a random split.
PER_CLASS = 20
#: What to do if an unpacked archive lacks a file.
UNPACK = "unpack OGB's archive again."
#: The version of :func:`everynode.datasets.generate`, raised when the same arguments give another
#: graph.
GENERATOR = 2
#: The numbers of nodes, edges, non-zero features and classes of the named graphs.
SIZES = {
    "cora": (2708, 5278, 49216, 7),
    "citeseer": (3327, 4552, 105165, 6),
    "pubmed": (19717, 44324, 988031, 3),
    "chameleon": (2277, 31371, 29157, 5),
    "squirrel": (5201, 198353, 93477, 5),
    "actor": (7600, 26659, 40977, 5),
    "cornell": (183, 277, 17240, 5),
    "cornell-legacy": (183, 277, 15266, 5),
    "texas": (183, 279, 15266, 5),
    "wisconsin": (251, 450, 24057, 5),
    "ogbn-arxiv": (169343, 1157799, 21675904, 40),
}
#: The warning beside every number that was measured on a generated graph.
STAND_IN = (
    "A generated stand-in, not real data: a score on it says nothing about ogbn-arxiv or any other "
    "graph."
)


@dataclass(frozen=True)
class Entry:
    """A named graph.

    Attributes
    ----------
    name : str
        The name for :func:`everynode.load`.
    format : str
        The reader of its files.
    folder : str
        The folder of its files below the root, in PyG's layout.
    stem : str
        Its name in file names and in the public repositories.
    splits : tuple of str
        The available splits; the first is the default.
    about : str
        A short description.
    caution : str
        Known problems.
    split_folder : str, optional
        The folder of the ten folds, if it differs from ``folder``.
    revision : str
        The revision of Geom-GCN's repository: PyG uses an older one for the Wikipedia graphs.
    no_download : str
        How to obtain files that cannot be downloaded; empty otherwise.
    size : tuple of int, optional
        For a generated graph: the numbers of nodes, edges, features and classes.
    """

    name: str
    format: Literal["planetoid", "geom-gcn", "geom-gcn-listed", "ogb", "generated"]
    folder: str
    stem: str
    splits: tuple[str, ...]
    about: str
    caution: str = ""
    split_folder: str | None = None
    revision: str = "master"
    no_download: str = ""
    size: tuple[int, int, int, int] | None = None

    @property
    def nodes_file(self) -> str:
        """The node file of Geom-GCN."""
        return f"{self.folder}/out1_node_feature_label.txt"

    @property
    def edges_file(self) -> str:
        """The edge file of Geom-GCN."""
        return f"{self.folder}/out1_graph_edges.txt"

    def files(self, split: str) -> dict[str, str | None]:
        """Return the files needed for a split, and their addresses.

        The address is None if a file cannot be downloaded.
        """
        if self.format == "generated":
            return {}
        if self.format == "ogb":
            return {f"{self.folder}/{self.stem}.zip": f"{_OGB}/{self.stem}.zip"}
        geom_gcn_url = f"{_GEOM_GCN}/{self.revision}"
        if self.format == "planetoid":
            urls = {
                f"{self.folder}/ind.{self.stem}.{part}": f"{_PLANETOID}/ind.{self.stem}.{part}"
                for part in PLANETOID_PARTS
            }
        else:
            urls = {
                path: f"{geom_gcn_url}/new_data/{self.stem}/{path.rpartition('/')[2]}"
                for path in (self.nodes_file, self.edges_file)
            }
        if split == "geom-gcn":
            urls |= {
                path: f"{geom_gcn_url}/splits/{path.rpartition('/')[2]}" for path in self.folds()
            }
        return dict.fromkeys(urls) if self.no_download else dict(urls)

    def digest(self, split: str, root: Root) -> str:
        """Return a SHA-256 over the digests of the files, which identifies the data.

        Files with a known digest are not read, since the readers accept no other content. The
        unpacked files of OGB have none and are read.
        """
        identity = f"{self.name} {GENERATOR}" if self.size else self.name
        sha = hashlib.sha256(identity.encode())
        for path in self.unpacked() if is_unpacked(self, root) else sorted(self.files(split)):
            digest = digests().get(path)
            if digest is None:
                digest = hashlib.sha256(root.read(path, None, UNPACK)).hexdigest()
            sha.update(digest.encode())
        return sha.hexdigest()

    def unpacked(self) -> list[str]:
        """Return the paths of the unpacked OGB files; empty for other formats."""
        return [f"{self.folder}/{name}" for name in OGB_FILES] if self.format == "ogb" else []

    def folds(self) -> list[str]:
        """Return the paths of the ten folds."""
        return [
            f"{self.split_folder or self.folder}/{self.stem}_split_0.6_0.2_{fold}.npz"
            for fold in range(FOLDS)
        ]


def _planetoid(name: str, folder: str, about: str, caution: str) -> Entry:
    splits = ("public", "geom-gcn", "random")
    split_folder = f"{folder}/geom-gcn/raw"
    return Entry(
        name, "planetoid", f"{folder}/raw", name, splits, about, caution, split_folder=split_folder
    )


_TEN_FOLDS = ("geom-gcn", "random")
_TWINS = (
    "Many test nodes have a training twin with the same neighbors and class: scores are inflated."
)
_SMALL = "The test sets are so small that one node is worth 2 points or more."


def _wikipedia(name: str) -> Entry:
    return Entry(
        name,
        "geom-gcn",
        f"{name}/geom_gcn/raw",
        name,
        _TEN_FOLDS,
        "Wikipedia pages by monthly traffic, 5 classes.",
        _TWINS,
        revision="f1fc0d14b3b019c562737240d06ec83b07d16a8f",
    )


def _web_pages(
    name: str, detail: str, caution: str, *, folder: str = "", stem: str = "", no_download: str = ""
) -> Entry:
    about = f"Web pages of a university, 5 classes{detail}."
    folder = f"{folder or name}/raw"
    return Entry(
        name,
        "geom-gcn",
        folder,
        stem or name,
        _TEN_FOLDS,
        about,
        caution,
        no_download=no_download,
    )


_ENTRIES = (
    _planetoid(
        "cora",
        "Cora",
        "Papers that cite each other, 7 topics.",
        "The ten folds cover only the largest component.",
    ),
    _planetoid(
        "citeseer",
        "CiteSeer",
        "Papers that cite each other, 6 topics. Comes with the package.",
        "15 nodes have no label.",
    ),
    _planetoid("pubmed", "PubMed", "Papers on diabetes that cite each other, 3 topics.", ""),
    _wikipedia("chameleon"),
    _wikipedia("squirrel"),
    Entry(
        "actor",
        "geom-gcn-listed",
        "actor/raw",
        "film",
        _TEN_FOLDS,
        "Actors named on the same Wikipedia page, 5 classes.",
    ),
    _web_pages(
        "cornell",
        "; the file as corrected in 2022",
        f"Papers before 2022 used another file under this name: see cornell-legacy. {_SMALL}",
    ),
    _web_pages(
        "cornell-legacy",
        "; Cornell as published until 2022",
        "It holds the features and labels of Texas: only for comparison with old papers.",
        folder="legacy/cornell",
        stem="cornell",
        no_download="it is only in the history of graphdml-uiuc-jlu/geom-gcn before 2022 "
        "(new_data/cornell); put that file there.",
    ),
    _web_pages("texas", "", f"One class has one node. {_SMALL}"),
    _web_pages("wisconsin", "", _SMALL),
    Entry(
        "ogbn-arxiv",
        "ogb",
        "ogbn_arxiv",
        "arxiv",
        ("official", "random"),
        "arXiv papers that cite each other, 40 subjects.",
    ),
    Entry(
        "generated",
        "generated",
        "",
        "",
        ("stratified", "random"),
        "Generated on demand, as large as ogbn-arxiv; also generated-1000x5000 (nodes, edges) and "
        "generated-1000x5000x32x8 (features, classes).",
        STAND_IN,
        size=(169_343, 1_166_243, 128, 40),
    ),
)
#: The named graphs by name.
CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """Return the entry of a graph.

    >>> find("generated-1000x5000").size
    (1000, 5000, 128, 40)
    """
    if name in CATALOG:
        return CATALOG[name]
    default = CATALOG["generated"]
    if default.size and re.fullmatch(r"generated-\d{1,12}x\d{1,12}(x\d{1,12}x\d{1,12})?", name):
        numbers = [int(number) for number in name.partition("-")[2].split("x")]
        nodes, edges, features, classes = (*numbers, *default.size[len(numbers) :])
        return replace(default, name=name, size=(nodes, edges, features, classes))
    unknown("graph", name, CATALOG)


def choose(name: str, split: str | None) -> tuple[Entry, str]:
    """Return the entry of a graph and its split, by default the one that papers use."""
    entry = find(name)
    if split is not None and split not in entry.splits:
        raise UsageError(
            f"Graph {name!r} has no split {split!r}. Choose from: {', '.join(entry.splits)}."
        )
    return entry, split or entry.splits[0]


def is_generated(name: str) -> bool:
    """Return whether a graph is a generated stand-in, which every output must mention.

    >>> is_generated("generated-1000x5000"), is_generated("cora")
    (True, False)
    """
    return name.partition("-")[0] == "generated"


def is_present(
    name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None
) -> bool:
    """Return whether :func:`everynode.load` needs no download."""
    entry, split = choose(name, split)
    root = Root.find(data_dir)
    if is_unpacked(entry, root):
        return all(root.has(path) for path in entry.unpacked())
    if is_bundled(entry, root):
        return split != "geom-gcn" or all(root.has(path) for path in entry.folds())
    return all(root.has(path) for path in entry.files(split))


def is_bundled(entry: Entry, root: Root) -> bool:
    """Return whether to use the copy in the package, because the original files are missing."""
    return entry.name == "citeseer" and not any(root.has(path) for path in entry.files("public"))


def is_unpacked(entry: Entry, root: Root) -> bool:
    """Return whether the folder has OGB's unpacked files, which are then used."""
    return any(root.has(path) for path in entry.unpacked())
