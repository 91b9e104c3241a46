"""Loading the named graphs."""

from __future__ import annotations

import os

import torch

from everynode.datasets import bundled, geom_gcn, ogb, planetoid, synthetic
from everynode.datasets.diagnostics import Report, check
from everynode.datasets.entries import (
    CATALOGUE,
    OGB_FILES,
    PLANETOID_PARTS,
    UNPACK,
    Entry,
    choose,
    is_bundled,
    is_present,
    is_unpacked,
)
from everynode.datasets.files import Root, digests
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
    per_class: int = 20,
    seed: int = 0,
) -> Graph:
    """A public graph by name, checked byte for byte, with raw features; or a generated one, made anew.

    ``split``: ``public`` (20 training nodes a class, 500 validation, 1000 test), ``geom-gcn`` (ten folds of 48/32/20 percent),
    ``official`` (ogbn-arxiv's own), ``stratified`` (a generated graph's own) or ``random`` (``per_class`` training nodes a class by
    ``seed``, then as in ``public``; see :func:`random_split` for small graphs); by default the one that papers use for this graph.
    ``data_dir``: a folder in PyG's layout, never written to; else ``$EVERYNODE_DATA``; else a cache folder, into which missing files
    are downloaded. Citeseer comes with the package.

    >>> load("citeseer")
    Graph 'citeseer': 3327 nodes, 4552 edges, 3703 features (sparse), 6 classes, 3312 labelled, 1 splits
    """
    entry, split = choose(name, split)
    root = Root.find(data_dir)
    if entry.size is not None:
        if directed:
            raise UsageError(
                f"Graph {name!r} is made without directions: leave out --directed (directed=True)."
            )
        try:
            made = synthetic.generate(*entry.size)
        except MemoryError:
            raise UsageError(
                f"Graph {name!r} does not fit into memory: choose a smaller one."
            ) from None
        return (
            made.with_splits([random_split(made.labels, per_class, seed=seed)])
            if split == "random"
            else made
        )
    raw = _read(entry, root)
    if split == "random":
        splits = [random_split(torch.from_numpy(raw.labels), per_class, seed=seed)]
    elif split == "geom-gcn":
        splits = _read_folds(entry, root, len(raw.labels))
    else:
        assert raw.split is not None  # the catalogue says that these files bring one
        splits = [raw.split]
    classes = range(raw.num_classes)
    return Graph.from_arrays(
        raw.features,
        raw.arcs,
        raw.labels,
        splits=splits,
        classes=classes,
        directed=directed,
        name=name,
    )


def check_named(
    name: str, split: str | None = None, *, data_dir: str | os.PathLike[str] | None = None
) -> Report:
    """:func:`check` of a named graph, also of its direction, and against the other present graphs that share files with it."""
    entry, split = choose(name, split)
    own = _content(entry)
    twins = [
        other.name for other in CATALOGUE.values() if other is not entry and own & _content(other)
    ]
    twins = [other for other in twins if is_present(other, data_dir=data_dir)]
    graph = load(name, split, data_dir=data_dir)
    directed = (
        load(name, split, data_dir=data_dir, directed=True)
        if graph.repairs["one_way_edges"]
        else None
    )
    return check(
        graph, directed=directed, others=[load(other, data_dir=data_dir) for other in twins]
    )


def _content(entry: Entry) -> set[str]:
    """The digests of a graph's own files: equal ones give away a graph that was published under two names."""
    return {digests()[path] for path in entry.files("random") if path in digests()}


def _read(entry: Entry, root: Root) -> Raw:
    if is_bundled(entry, root):
        return bundled.read()
    where = str(root.folder / entry.folder)
    if is_unpacked(entry, root):
        return ogb.read(
            {
                part: root.read(path, None, UNPACK)
                for part, path in zip(OGB_FILES, entry.unpacked(), strict=True)
            },
            where,
        )
    files = {
        path: root.read(path, url, entry.no_download) for path, url in entry.files("random").items()
    }
    if entry.format == "planetoid":
        stem = f"ind.{entry.stem}"
        return planetoid.read(
            {part: files[f"{entry.folder}/{stem}.{part}"] for part in PLANETOID_PARTS},
            f"{where}/{stem}",
        )
    if entry.format == "ogb":
        (archive,) = files.values()
        return ogb.read(ogb.unpack(archive, f"{where}/{entry.stem}.zip"), where)
    paths = (str(root.folder / entry.nodes_file), str(root.folder / entry.edges_file))
    return geom_gcn.read(
        files[entry.nodes_file],
        files[entry.edges_file],
        *paths,
        listed=entry.format == "geom-gcn-listed",
    )


def _read_folds(entry: Entry, root: Root, n: int) -> list[Split]:
    address = entry.files("geom-gcn")
    return [
        geom_gcn.read_split(
            root.read(path, address[path], entry.no_download), str(root.folder / path), n
        )
        for path in entry.folds()
    ]
