"""The named graphs as a table: where their files are, which splits they have, and what to know before trusting a score on them.

Nothing here needs PyTorch, so that commands which only list or count answer at once.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from typing import Literal

from everynode.datasets.files import Root, digests
from everynode.errors import UsageError, unknown

#: The eight files of a Planetoid graph, by the ends of their names.
PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
#: The six files of a graph of OGB, in its archive and below its folder once that is unpacked.
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
#: How many folds Geom-GCN's splits have.
FOLDS = 10
#: What to do about a file that is missing where others of the archive are.
UNPACK = "unpack OGB's archive again."
#: Raised whenever :func:`everynode.datasets.generate` makes another graph of the same arguments.
GENERATOR = 2
#: Nodes, edges, non-zero features and classes of the named graphs.
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
#: What a person has to be told of every number that was got on a generated graph.
STAND_IN = "A generated stand-in, not real data: a score on it is no score on ogbn-arxiv, nor on anything else."


@dataclass(frozen=True)
class Entry:
    """One named graph."""

    name: str
    #: Which reader understands its files.
    format: Literal["planetoid", "geom-gcn", "geom-gcn-listed", "ogb", "generated"]
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
    #: Of a generated graph: how many nodes, edges, features and classes to make.
    size: tuple[int, int, int, int] | None = None

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
        if self.format == "generated":
            return {}
        if self.format == "ogb":
            return {f"{self.folder}/{self.stem}.zip": f"{_OGB}/{self.stem}.zip"}
        geom_gcn_url = f"{_GEOM_GCN}/{self.revision}"
        if self.format == "planetoid":
            wanted = {
                f"{self.folder}/ind.{self.stem}.{part}": f"{_PLANETOID}/ind.{self.stem}.{part}"
                for part in PLANETOID_PARTS
            }
        else:
            both = (self.nodes_file, self.edges_file)
            wanted = {
                path: f"{geom_gcn_url}/new_data/{self.stem}/{path.rpartition('/')[2]}"
                for path in both
            }
        if split == "geom-gcn":
            wanted |= {
                path: f"{geom_gcn_url}/splits/{path.rpartition('/')[2]}" for path in self.folds()
            }
        return dict.fromkeys(wanted) if self.no_download else dict(wanted)

    def digest(self, split: str, root: Root) -> str:
        """A SHA-256 over the public files' digests: which data this is, known without reading it (a reader refuses any other bytes).

        OGB's files once somebody has unpacked them have no known digests, and are read.
        """
        sha = hashlib.sha256(
            f"{self.name} {GENERATOR}".encode() if self.size else self.name.encode()
        )
        for path in self.unpacked() if is_unpacked(self, root) else sorted(self.files(split)):
            known = digests().get(path)
            sha.update(
                (known or hashlib.sha256(root.read(path, None, UNPACK)).hexdigest()).encode()
            )
        return sha.hexdigest()

    def unpacked(self) -> list[str]:
        """The files of OGB's archive, below the root, once somebody has unpacked it there."""
        return [f"{self.folder}/{name}" for name in OGB_FILES] if self.format == "ogb" else []

    def folds(self) -> list[str]:
        """The files of the ten folds, below the root."""
        return [
            f"{self.split_folder or self.folder}/{self.stem}_split_0.6_0.2_{fold}.npz"
            for fold in range(FOLDS)
        ]


def _planetoid(name: str, folder: str, about: str, caution: str) -> Entry:
    splits = ("public", "geom-gcn", "random")
    return Entry(
        name,
        "planetoid",
        f"{folder}/raw",
        name,
        splits,
        about,
        caution,
        split_folder=f"{folder}/geom-gcn/raw",
    )


_TEN = ("geom-gcn", "random")
_TWINS = (
    "Many test nodes have a twin in train with the same neighbours and class: scores are inflated."
)
_SMALL = "The test sets are so small that one node is worth 2 points or more."


def _wikipedia(name: str) -> Entry:
    revision = "f1fc0d14b3b019c562737240d06ec83b07d16a8f"
    about = "Wikipedia pages by monthly traffic, 5 classes."
    return Entry(
        name, "geom-gcn", f"{name}/geom_gcn/raw", name, _TEN, about, _TWINS, revision=revision
    )


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
    Entry("ogbn-arxiv", "ogb", "ogbn_arxiv", "arxiv", ("official", "random"), "arXiv papers that cite each other, 40 subjects."),
    Entry(
        "generated", "generated", "", "", ("stratified", "random"),
        "Made at need, as large as ogbn-arxiv; generated-1000x5000 (nodes, edges), generated-1000x5000x32x8 (features, classes) too.",
        STAND_IN, size=(169_343, 1_166_243, 128, 40),
    ),
)  # fmt: skip
#: The named graphs by name.
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """The entry of a graph.

    >>> find("generated-1000x5000").size
    (1000, 5000, 128, 40)
    """
    if name in CATALOGUE:
        return CATALOGUE[name]
    default = CATALOGUE["generated"]
    if default.size and re.fullmatch(r"generated-\d{1,12}x\d{1,12}(x\d{1,12}x\d{1,12})?", name):
        given = [int(number) for number in name.partition("-")[2].split("x")]
        nodes, edges, features, classes = (*given, *default.size[len(given) :])
        return replace(default, name=name, size=(nodes, edges, features, classes))
    unknown("graph", name, CATALOGUE)


def choose(name: str, split: str | None) -> tuple[Entry, str]:
    """The entry of a graph, and its split: the given one, or by default the one that papers use."""
    entry = find(name)
    if split is not None and split not in entry.splits:
        raise UsageError(
            f"Graph {name!r} has no split {split!r}. Choose from: {', '.join(entry.splits)}."
        )
    return entry, split or entry.splits[0]


def is_generated(name: str) -> bool:
    """Whether a graph is a generated stand-in, of which every output has to say so.

    >>> is_generated("generated-1000x5000"), is_generated("cora")
    (True, False)
    """
    return name.partition("-")[0] == "generated"


def is_present(
    name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None
) -> bool:
    """Whether :func:`everynode.load` can do without a download."""
    entry, split = choose(name, split)
    root = Root.find(data_dir)
    if is_unpacked(entry, root):
        return all(root.has(path) for path in entry.unpacked())
    wanted = (
        entry.folds() if is_bundled(entry, root) and split == "geom-gcn" else entry.files(split)
    )
    return (is_bundled(entry, root) and split != "geom-gcn") or all(
        root.has(path) for path in wanted
    )


def is_bundled(entry: Entry, root: Root) -> bool:
    """Whether the package's own copy is to be used: it is, unless the folder has the original files."""
    return entry.name == "citeseer" and not any(root.has(path) for path in entry.files("public"))


def is_unpacked(entry: Entry, root: Root) -> bool:
    """Whether somebody has unpacked OGB's archive there: then its files are read, whole archive or not."""
    return any(root.has(path) for path in entry.unpacked())
