"""What a graph hides: measured facts, and findings about everything that makes a score on it mean less than it seems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from everynode.graph import Graph, Split
from everynode.sparse import SparseMatrix

#: A class with fewer nodes than this is named.
FEW = 5
#: Twins across the split are worth a warning from this share of the test nodes on.
MANY_TWINS = 0.1
#: One test node may be worth this many points of accuracy before it is worth a warning.
POINT = 1.0

Ints = npt.NDArray[np.int64]


class Finding(NamedTuple):
    """One clear sentence about a graph."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True)
class Report:
    """What :func:`check` measured and found."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings that a user should not overlook."""
        return tuple(finding.text for finding in self.findings if finding.level == "warning")

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, for JSON."""
        return {
            "name": self.name,
            "facts": self.facts,
            "findings": [finding._asdict() for finding in self.findings],
        }


class _Fold(NamedTuple):
    """A split, in arrays."""

    train: Ints
    val: Ints
    test: Ints


class _Subject:
    """The graph in arrays, computed once for all the checks."""

    def __init__(
        self,
        graph: Graph,
        directed: Graph | None,
        others: Sequence[Graph],
        drawn: bool,
        held_out: int,
        folds: int,
    ) -> None:
        self.graph, self.others, self.drawn = graph, others, drawn
        self.held_out, self.folds = held_out, folds
        self.directed = graph if graph.directed else directed
        self.n = graph.num_nodes
        self.labels: Ints = graph.labels.cpu().numpy()
        self.splits = [_Fold(*(part.cpu().numpy() for part in split)) for split in graph.splits]
        a, b = graph.undirected_edges[0].cpu().numpy()
        ones = np.ones(2 * len(a), np.int8)
        self.adjacency = scipy.sparse.csr_array(
            (ones, (np.r_[a, b], np.r_[b, a])), shape=(self.n, self.n)
        )
        self.adjacency.sort_indices()
        self.degree: Ints = np.diff(self.adjacency.indptr)
        self.features = _rows(graph)
        #: Equal for nodes with the same neighbours; different for all nodes that have none.
        self.neighbourhood = _group(self.adjacency)
        alone = self.degree == 0
        self.neighbourhood[alone] = -1 - np.flatnonzero(alone)


def check(
    graph: Graph,
    directed: Graph | None = None,
    *,
    others: Sequence[Graph] = (),
    drawn: bool = False,
    held_out: int = 0,
    folds: int = 0,
) -> Report:
    """Measure a graph and look for defects.

    ``directed``: the same graph with its direction kept, to see what keeping it would do. ``others``: graphs that it might be a
    copy of. ``drawn``: the split did not come with the graph but was drawn from its labels, so what it covers is no defect.
    ``held_out``, ``folds``: how many of the training nodes were held out, each once, in how many folds, instead of validation nodes.
    (Parts of one split that overlap are not looked for: a :class:`Graph` refuses those when it is built.)

    >>> path = Graph.from_arrays([[1.0], [1.0], [1.0]], [[0, 1, 1], [1, 0, 1]], [0, 0, 1])
    >>> check(path).findings[-1].text
    '1 self-loop in the input was dropped.'
    """
    subject = _Subject(graph, directed, others, drawn, held_out, folds)
    facts: dict[str, Any] = {}
    findings: list[Finding] = []
    for look in _CHECKS:
        findings += look(subject, facts)
    return Report(graph.name, facts, tuple(findings))


def _rows(graph: Graph) -> scipy.sparse.csr_array:
    features = graph.features
    rows = (
        features.to_scipy()
        if isinstance(features, SparseMatrix)
        else scipy.sparse.csr_array(features.cpu().numpy())
    )
    rows.sort_indices()
    return rows


def _group(matrix: scipy.sparse.csr_array) -> Ints:
    """A number for each row, equal for equal rows."""
    seen: dict[tuple[bytes, bytes], int] = {}
    keys = (
        (matrix.indices[a:b].tobytes(), matrix.data[a:b].tobytes())
        for a, b in pairwise(matrix.indptr)
    )
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _folds(folds: Sequence[int], total: int) -> str:
    if total == 1:
        return "the split"
    return (
        "every fold"
        if len(folds) == total
        else f"{'fold' if len(folds) == 1 else 'folds'} {', '.join(map(str, folds))}"
    )


def _sizes(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    g = s.graph
    density = s.features.nnz / max(1, s.n * g.num_features)
    homophily = {
        key: None if value != value else value
        for key, value in (("edge", g.edge_homophily), ("node", g.node_homophily))
    }
    facts |= {
        "nodes": s.n, "edges": g.num_edges, "features": g.num_features, "classes": g.num_classes, "folds": len(s.splits),
        "feature_density": density, "edge_homophily": homophily["edge"], "node_homophily": homophily["node"],
    }  # fmt: skip
    edge = homophily["edge"]
    if edge is not None and edge < 0.5:
        yield Finding(
            "info",
            f"Only {_percent(edge)} of the edges join nodes of one class: averaging over neighbours may hurt.",
        )


def _classes(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    counts = np.bincount(s.labels[s.labels >= 0], minlength=s.graph.num_classes)
    facts["class_counts"] = {
        str(name): int(count) for name, count in zip(s.graph.classes, counts, strict=True)
    }
    facts["largest_class_share"] = float(counts.max() / counts.sum()) if counts.sum() else None
    few = [
        (name, int(count))
        for name, count in zip(s.graph.classes, counts, strict=True)
        if count < FEW
    ]
    for name, count in few:
        yield Finding(
            "warning",
            f"Class {name} has only {_count(count, 'node')}: it cannot be learned and tested.",
        )


def _unlabelled(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    none = s.labels < 0
    empty = np.diff(s.features.indptr) == 0
    facts |= {"nodes_without_label": int(none.sum()), "nodes_without_features": int(empty.sum())}
    if none.any():
        yield Finding("info", f"{_count(int(none.sum()), 'node')} of {s.n} without a label.")
    if empty.any():
        both = (
            f", {int((none & empty).sum())} of them without a label either"
            if (none & empty).any()
            else ""
        )
        yield Finding("info", f"{_count(int(empty.sum()), 'node')} without any feature{both}.")
    inside = [sum(int(none[part].sum()) for part in split) for split in s.splits]
    facts["split_nodes_without_label"] = inside
    folds = [fold for fold, count in enumerate(inside) if count]
    if folds:
        low, high = min(inside[fold] for fold in folds), max(inside)
        many = _count(high, "node") if low == high else f"{low} to {high} nodes"
        where = _folds(folds, len(inside))
        yield Finding(
            "warning",
            f"{many} in {where} without a label: not counted here, but other loaders take them for class 0.",
        )


def _components(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    number, component = connected_components(s.adjacency, directed=False)
    sizes = np.bincount(component, minlength=1)
    isolated = int((s.degree == 0).sum())
    facts |= {
        "components": int(number),
        "largest_component": int(sizes.max()),
        "isolated_nodes": isolated,
    }
    if isolated:
        yield Finding(
            "info",
            f"{_count(isolated, 'node')} without any edge: for these only the features speak.",
        )
    inside = component == sizes.argmax()
    share = [
        float(inside[np.concatenate(split)].mean()) if any(map(len, split)) else 0.0
        for split in s.splits
    ]
    facts["split_share_in_largest_component"] = share
    within = [fold for fold, value in enumerate(share) if value == 1.0]
    if number > 1 and within and not s.drawn:
        text = (
            f"{_folds(within, len(share))} covers"
            if len(within) in (1, len(share))
            else f"{_folds(within, len(share))} cover"
        )
        rest = s.n - int(sizes.max())
        yield Finding(
            "warning",
            f"{text[0].upper()}{text[1:]} only the largest component ({sizes.max()} of {s.n} nodes): "
            f"the {rest} others are never trained or tested on.",
        )


def _repairs(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    dropped, joined = "dropped", "given its other direction"
    for key, done in {
        "self_loops": dropped,
        "repeated_edges": dropped,
        "one_way_edges": joined,
    }.items():
        what = {
            "self_loops": "self-loop",
            "repeated_edges": "repeated edge",
            "one_way_edges": "one-way edge",
        }[key]
        count = int(s.graph.repairs.get(key, 0))
        facts[key] = count
        if count:
            done = done if count == 1 else done.replace("its", "their")
            yield Finding(
                "info",
                f"{_count(count, what)} in the input {'was' if count == 1 else 'were'} {done}.",
            )


def _direction(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    if s.directed is None:
        return
    entered = np.zeros(s.n, dtype=bool)
    entered[s.directed.edges[1].cpu().numpy()] = True
    lonely = int((~entered & (s.degree > 0)).sum())
    facts["nodes_without_in_edges"] = int((~entered).sum())
    if lonely:
        would = "With the direction kept" if s.graph.directed else "Were the direction kept"
        yield Finding(
            "warning" if s.graph.directed else "info",
            f"{would}, {facts['nodes_without_in_edges']} of {s.n} nodes have no in-edge and hear from no other node.",
        )


def _twins(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    key = s.neighbourhood * (s.graph.num_classes + 1) + s.labels
    shares, several = [], []
    for split in s.splits:
        test, train = (part[s.labels[part] >= 0] for part in (split.test, split.train))
        twin = np.isin(key[test], key[train])
        shares.append(float(twin.mean()) if len(test) else 0.0)
        several.append(float((twin & (s.degree[test] > 1)).mean()) if len(test) else 0.0)
    facts |= {"twins_across_split": shares, "twins_across_split_with_several_neighbours": several}
    share, serious = (float(np.mean(values)) if values else 0.0 for values in (shares, several))
    what = f"{_percent(share)} of the test nodes have a twin in train (same neighbours, same class)"
    if serious >= MANY_TWINS:
        yield Finding(
            "warning",
            f"{what}, {_percent(serious)} even with more than one neighbour: scores are inflated.",
        )
    elif share >= MANY_TWINS:  # leaves of one hub are twins by chance
        yield Finding(
            "info",
            f"{what}, but only {_percent(serious)} with more than one neighbour: most hang on the same single node.",
        )


def _duplicates(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    pairs = np.stack([_group(s.features), s.neighbourhood])
    _, counts = np.unique(pairs, axis=1, return_counts=True)
    facts["duplicate_nodes"] = int((counts - 1).sum())
    if facts["duplicate_nodes"]:
        yield Finding(
            "info",
            f"{_count(facts['duplicate_nodes'], 'node')} with the features and the neighbours of another node.",
        )


def _proportions(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    if not s.splits:
        yield Finding("info", "The graph has no split.")
        return
    sizes = np.array([[len(part) for part in split] for split in s.splits])
    facts["split_sizes"] = dict(zip(Split._fields, sizes.mean(0).tolist(), strict=True))
    facts["split_shares"] = dict(
        zip(
            Split._fields,
            (sizes / np.maximum(sizes.sum(1, keepdims=True), 1)).mean(0).tolist(),
            strict=True,
        )
    )
    words = dict(zip(Split._fields, ("train", "validation", "test"), strict=True))
    if s.folds:
        del words["val"]
    shares = " / ".join(f"{100 * facts['split_shares'][part]:.0f}" for part in words)
    average = " / ".join(f"{facts['split_sizes'][part]:.0f}" for part in words)
    each = (
        f"; for validation each of {s.held_out} training nodes was held out once, in {s.folds} folds"
        if s.folds
        else ""
    )
    mean = " on average" if len(s.splits) > 1 else ""
    used = _percent(float(sizes.sum(1).mean()) / s.n)
    yield Finding(
        "info",
        f"{' / '.join(words.values()).capitalize()} are {average} nodes{mean} ({shares} percent of the nodes in them, {used} of the "
        f"graph){each}.",
    )
    tested = [int((s.labels[split.test] >= 0).sum()) for split in s.splits]
    facts["points_per_test_node"] = worth = 100 / min(tested) if min(tested) else None
    if worth is None:
        yield Finding("warning", "There is no labelled node to test on.")
    elif worth > POINT:
        yield Finding(
            "warning",
            f"The test set has {_count(min(tested), 'labelled node')}: one node is worth {worth:.1f} points.",
        )
    for c, name in enumerate(s.graph.classes):
        unseen = [
            f
            for f, split in enumerate(s.splits)
            if c in s.labels[split.test] and c not in s.labels[split.train]
        ]
        if unseen:
            yield Finding(
                "warning",
                f"Class {name} is tested but never trained on in {_folds(unseen, len(s.splits))}.",
            )


def _overlap(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    if len(s.splits) < 2:
        return
    member = np.zeros((len(s.splits), s.n))
    for fold, split in enumerate(s.splits):
        member[fold, split.test] = 1
    shared = member @ member.T / np.maximum(member.sum(1), 1)
    mean = float(shared[~np.eye(len(s.splits), dtype=bool)].mean())
    facts |= {
        "test_overlap_between_folds": mean,
        "nodes_never_tested": int((member.sum(0) == 0).sum()),
    }
    if mean > 0:
        yield Finding(
            "info",
            f"Any two folds share {_percent(mean)} of their test nodes on average ({facts['nodes_never_tested']} nodes are never tested): "
            "the folds are not independent samples.",
        )


def _copies(s: _Subject, facts: dict[str, Any]) -> Iterator[Finding]:
    facts["copies_of"] = {}
    for other in s.others:
        same = []
        if (s.n, s.graph.num_features) == (other.num_nodes, other.num_features) and (
            s.features != _rows(other)
        ).nnz == 0:
            same.append("features")
        if np.array_equal(s.labels, other.labels.cpu().numpy()):
            same.append("labels")
        if same:
            facts["copies_of"][other.name] = same
            yield Finding(
                "warning",
                f"It has the very {' and '.join(same)} of {other.name}: one of the two is not what its name says.",
            )


_CHECKS: tuple[Callable[[_Subject, dict[str, Any]], Iterator[Finding]], ...] = (
    _sizes, _classes, _unlabelled, _components, _direction, _twins, _duplicates, _proportions, _overlap, _copies, _repairs,
)  # fmt: skip
