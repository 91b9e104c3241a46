"""Load graphs by name."""

from __future__ import annotations

import os

import torch

from everynode.datasets import bundled, geom_gcn, ogb, planetoid, synthetic
from everynode.datasets.diagnostics import check
from everynode.datasets.entries import (
    CATALOG,
    OGB_FILES,
    PER_CLASS,
    PLANETOID_PARTS,
    UNPACK,
    Entry,
    choose,
    is_bundled,
    is_present,
    is_unpacked,
)
from everynode.datasets.files import Root, digests
from everynode.datasets.findings import Report
from everynode.datasets.raw import Raw
from everynode.datasets.splits import random_split
from everynode.errors import UsageError
from everynode.graph import Graph, Split


def load(
    name: str,
    split: str | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    directed: bool = False,
    per_class: int = PER_CLASS,
    seed: int = 0,
) -> Graph:
    """Load a public graph by name, or generate one.

    Public files are verified by their digests. Features are not normalized. Citeseer comes with
    the package; other files are read from a folder in PyG's layout, or downloaded into a cache.

    Parameters
    ----------
    name : str
        A name in ``everynode.datasets.CATALOG``, or ``generated-NODESxEDGES``.
    split : str, optional
        "public" (20 training nodes per class, 500 validation, 1000 test), "geom-gcn" (ten folds of
        48/32/20 percent), "official" (ogbn-arxiv), "stratified" (generated graphs) or "random"
        (``per_class`` training nodes per class, then as in "public"). Default: the split that
        papers use for this graph.
    data_dir : path, optional
        A folder in PyG's layout, which is only read. Default: ``$EVERYNODE_DATA``, else the cache
        folder.
    directed : bool, default False
        Whether to keep the direction of the edges.
    per_class : int, default 20
        The number of training nodes per class of a "random" split.
    seed : int, default 0
        The seed of a "random" split.

    Returns
    -------
    Graph
        The graph with one split or several folds.

    Examples
    --------
    >>> load("citeseer")  # doctest: +NORMALIZE_WHITESPACE
    Graph 'citeseer': 3327 nodes, 4552 edges, 3703 features (sparse), 6 classes, 3312 labeled,
    1 splits
    """
    entry, split = choose(name, split)
    root = Root.find(data_dir)
    if entry.size is not None:
        if directed:
            raise UsageError(
                f"Graph {name!r} is generated without directions: leave out --directed "
                "(directed=True)."
            )
        return _generate(entry, split, per_class, seed)
    raw = _read(entry, root)
    if split == "random":
        splits = [random_split(torch.from_numpy(raw.labels), per_class, seed=seed)]
    elif split == "geom-gcn":
        splits = _read_folds(entry, root, len(raw.labels))
    else:
        assert raw.split is not None  # the catalog lists only splits that the files have
        splits = [raw.split]
    return Graph.from_arrays(
        raw.features,
        raw.arcs,
        raw.labels,
        splits=splits,
        classes=range(raw.num_classes),
        directed=directed,
        name=name,
    )


def check_named(
    name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None
) -> Report:
    """Run :func:`check` on a named graph.

    The report covers the effect of edge directions, and compares the graph with the other available
    graphs that share files with it.
    """
    entry, split = choose(name, split)
    own_digests = _file_digests(entry)
    similar = [
        other.name
        for other in CATALOG.values()
        if other is not entry
        and own_digests & _file_digests(other)
        and is_present(other.name, data_dir=data_dir)
    ]
    graph = load(name, split, data_dir=data_dir)
    directed = None
    if graph.repairs["one_way_edges"]:
        directed = load(name, split, data_dir=data_dir, directed=True)
    others = [load(other, data_dir=data_dir) for other in similar]
    return check(graph, directed=directed, others=others)


def _generate(entry: Entry, split: str, per_class: int, seed: int) -> Graph:
    assert entry.size is not None
    try:
        graph = synthetic.generate(*entry.size)
    except MemoryError:
        raise UsageError(
            f"Graph {entry.name!r} does not fit into memory: choose a smaller one."
        ) from None
    if split == "random":
        return graph.with_splits([random_split(graph.labels, per_class, seed=seed)])
    return graph


def _file_digests(entry: Entry) -> set[str]:
    """Return the digests of a graph's files; equal digests reveal a graph with two names."""
    return {digests()[path] for path in entry.files("random") if path in digests()}


def _read(entry: Entry, root: Root) -> Raw:
    if is_bundled(entry, root):
        return bundled.read()
    where = str(root.folder / entry.folder)
    if is_unpacked(entry, root):
        parts = zip(OGB_FILES, entry.unpacked(), strict=True)
        return ogb.read({part: root.read(path, None, UNPACK) for part, path in parts}, where)
    files = {
        path: root.read(path, url, entry.no_download) for path, url in entry.files("random").items()
    }
    if entry.format == "planetoid":
        stem = f"ind.{entry.stem}"
        contents = {part: files[f"{entry.folder}/{stem}.{part}"] for part in PLANETOID_PARTS}
        return planetoid.read(contents, f"{where}/{stem}")
    if entry.format == "ogb":
        (archive,) = files.values()
        return ogb.read(ogb.unpack(archive, f"{where}/{entry.stem}.zip"), where)
    return geom_gcn.read(
        files[entry.nodes_file],
        files[entry.edges_file],
        str(root.folder / entry.nodes_file),
        str(root.folder / entry.edges_file),
        listed=entry.format == "geom-gcn-listed",
    )


def _read_folds(entry: Entry, root: Root, num_nodes: int) -> list[Split]:
    urls = entry.files("geom-gcn")
    return [
        geom_gcn.read_split(
            root.read(path, urls[path], entry.no_download), str(root.folder / path), num_nodes
        )
        for path in entry.folds()
    ]
