"""Diagnostics: facts about a graph, and findings that limit the meaning of scores on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from everynode.datasets.findings import (
    Facts,
    Finding,
    Report,
    Subject,
    counted,
    feature_rows,
    group_rows,
    name_folds,
    percent,
)
from everynode.graph import Graph, Split

#: A class with fewer nodes than this is reported.
MIN_CLASS_SIZE = 5
#: The most classes that are named for the same problem.
NAMED_CLASSES = 5
#: Twins across the split are reported if they are at least this share of the test nodes.
TWIN_SHARE = 0.1
#: A warning is due if one test node is worth more than this many points of accuracy.
MAX_POINTS_PER_NODE = 1.0


def check(
    graph: Graph,
    directed: Graph | None = None,
    *,
    others: Sequence[Graph] = (),
    drawn: bool = False,
    held_out: int = 0,
    folds: int = 0,
) -> Report:
    """Measure a graph and search for defects.

    Overlapping parts of a split are not searched for: a :class:`Graph` refuses them.

    Parameters
    ----------
    graph : Graph
        The graph to check.
    directed : Graph, optional
        The same graph with its directions, to see the effect of keeping them.
    others : sequence of Graph
        Graphs that it may be a copy of.
    drawn : bool, default False
        Whether the split was drawn from the labels and did not come with the graph. Its coverage is
        then not reported as a defect.
    held_out, folds : int
        With cross-validation instead of validation nodes: the number of training nodes, and the
        number of folds.

    Returns
    -------
    Report
        Facts and findings.

    Examples
    --------
    >>> path = Graph.from_arrays([[1.0], [1.0], [1.0]], [[0, 1, 1], [1, 0, 1]], [0, 0, 1])
    >>> check(path).findings[-1].text
    '1 self-loop in the input was dropped.'
    """
    subject = Subject(graph, directed, others, drawn, held_out, folds)
    facts: Facts = {}
    findings: list[Finding] = []
    for run_check in _CHECKS:
        findings += run_check(subject, facts)
    return Report(graph.name, facts, tuple(findings))


def _check_sizes(s: Subject, facts: Facts) -> Iterator[Finding]:
    graph = s.graph
    # NaN without labeled edges, which JSON does not have.
    edge, node = (
        None if value != value else value for value in (graph.edge_homophily, graph.node_homophily)
    )
    facts |= {
        "nodes": s.n,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "folds": len(s.splits),
        "feature_density": s.features.nnz / max(1, s.n * graph.num_features),
        "edge_homophily": edge,
        "node_homophily": node,
    }
    if edge is not None and edge < 0.5:
        yield Finding(
            "info",
            f"Only {percent(edge)} of the edges join nodes of one class: averaging over "
            "neighbors may hurt.",
        )


def _check_classes(s: Subject, facts: Facts) -> Iterator[Finding]:
    counts = np.bincount(s.labels[s.labels >= 0], minlength=s.graph.num_classes).tolist()
    named = list(zip(s.graph.classes, counts, strict=True))
    facts["class_counts"] = {str(name): count for name, count in named}
    facts["largest_class_share"] = max(counts) / sum(counts) if sum(counts) else None
    small = [
        f"Class {name} has only {counted(n, 'node')}" for name, n in named if n < MIN_CLASS_SIZE
    ]
    yield from _some(small, ": it cannot be learned and tested.", "classes are as small")


def _some(texts: list[str], end: str, others: str) -> Iterator[Finding]:
    """Yield a warning for each text; of many, the first, and how many more there are."""
    for text in texts[:NAMED_CLASSES]:
        yield Finding("warning", text + end)
    if len(texts) > NAMED_CLASSES:
        yield Finding("warning", f"{len(texts) - NAMED_CLASSES:,} more {others}.")


def _check_unlabeled(s: Subject, facts: Facts) -> Iterator[Finding]:
    unlabeled = s.labels < 0
    empty = np.diff(s.features.indptr) == 0
    num_unlabeled, num_empty = int(unlabeled.sum()), int(empty.sum())
    facts |= {"nodes_without_label": num_unlabeled, "nodes_without_features": num_empty}
    if num_unlabeled:
        yield Finding("info", f"{counted(num_unlabeled, 'node')} of {s.n} without a label.")
    if num_empty:
        num_both = int((unlabeled & empty).sum())
        suffix = f", {num_both} of them without a label either" if num_both else ""
        yield Finding("info", f"{counted(num_empty, 'node')} without any feature{suffix}.")
    per_fold = [sum(int(unlabeled[part].sum()) for part in split) for split in s.splits]
    facts["split_nodes_without_label"] = per_fold
    folds = [fold for fold, count in enumerate(per_fold) if count]
    if folds:
        low, high = min(per_fold[fold] for fold in folds), max(per_fold)
        nodes = counted(high, "node") if low == high else f"{low} to {high} nodes"
        yield Finding(
            "warning",
            f"{nodes} in {name_folds(folds, len(per_fold))} without a label: not counted here, "
            "but other loaders treat them as class 0.",
        )


def _check_components(s: Subject, facts: Facts) -> Iterator[Finding]:
    from scipy.sparse.csgraph import connected_components

    num_components, component = connected_components(s.adjacency, directed=False)
    sizes = np.bincount(component, minlength=1)
    largest, num_isolated = int(sizes.max()), int((s.degree == 0).sum())
    facts |= {
        "components": int(num_components),
        "largest_component": largest,
        "isolated_nodes": num_isolated,
    }
    if num_isolated:
        yield Finding(
            "info",
            f"{counted(num_isolated, 'node')} without any edge, classified by features alone.",
        )
    in_largest = component == sizes.argmax()
    shares = [
        float(in_largest[np.concatenate(split)].mean()) if any(map(len, split)) else 0.0
        for split in s.splits
    ]
    facts["split_share_in_largest_component"] = shares
    folds = [fold for fold, share in enumerate(shares) if share == 1.0]
    if num_components > 1 and folds and not s.drawn:
        name = name_folds(folds, len(shares))
        verb = "covers" if len(folds) in (1, len(shares)) else "cover"
        yield Finding(
            "warning",
            f"{name[0].upper()}{name[1:]} {verb} only the largest component ({largest} of {s.n} "
            f"nodes): the {s.n - largest} others are never used for training or testing.",
        )


def _check_repairs(s: Subject, facts: Facts) -> Iterator[Finding]:
    repairs = {
        "self_loops": ("self-loop", "dropped", "dropped"),
        "repeated_edges": ("repeated edge", "dropped", "dropped"),
        "one_way_edges": ("one-way edge", "given its reverse", "given their reverse"),
    }
    for key, (noun, singular, plural) in repairs.items():
        facts[key] = count = int(s.graph.repairs.get(key, 0))
        if count:
            verb = f"was {singular}" if count == 1 else f"were {plural}"
            yield Finding("info", f"{counted(count, noun)} in the input {verb}.")


def _check_direction(s: Subject, facts: Facts) -> Iterator[Finding]:
    if s.directed is None:
        return
    has_in_edge = np.zeros(s.n, dtype=bool)
    has_in_edge[s.directed.edges[1].cpu().numpy()] = True
    num_without = int((~has_in_edge).sum())
    facts["nodes_without_in_edges"] = num_without
    if (~has_in_edge & (s.degree > 0)).any():
        nodes = f"{num_without} of {s.n} nodes"
        if s.graph.directed:
            text = f"{nodes} have no in-edge and receive no message (the graph is directed)."
            yield Finding("warning", text)
        else:
            text = f"In a directed graph, {nodes} would have no in-edge and receive no message."
            yield Finding("info", text)


def _check_twins(s: Subject, facts: Facts) -> Iterator[Finding]:
    key = s.neighborhood * (s.graph.num_classes + 1) + s.labels
    shares, shares_several = [], []
    for split in s.splits:
        test, train = (part[s.labels[part] >= 0] for part in (split.test, split.train))
        is_twin = np.isin(key[test], key[train])
        has_several = s.degree[test] > 1
        shares.append(float(is_twin.mean()) if len(test) else 0.0)
        shares_several.append(float((is_twin & has_several).mean()) if len(test) else 0.0)
    facts |= {
        "twins_across_split": shares,
        "twins_across_split_with_several_neighbors": shares_several,
    }
    share, several = (float(np.mean(v)) if v else 0.0 for v in (shares, shares_several))
    text = f"{percent(share)} of the test nodes have a training twin (same neighbors and class)"
    if several >= TWIN_SHARE:
        yield Finding(
            "warning",
            f"{text}, {percent(several)} even with more than one neighbor: scores are inflated.",
        )
    elif share >= TWIN_SHARE:  # leaves of one hub are twins by chance
        yield Finding(
            "info",
            f"{text}, but only {percent(several)} with more than one neighbor: most are leaves "
            "of the same node.",
        )


def _check_duplicates(s: Subject, facts: Facts) -> Iterator[Finding]:
    pairs = np.stack([group_rows(s.features), s.neighborhood])
    _, counts = np.unique(pairs, axis=1, return_counts=True)
    facts["duplicate_nodes"] = num_duplicates = int((counts - 1).sum())
    if num_duplicates:
        yield Finding(
            "info",
            f"{counted(num_duplicates, 'node')} with the same features and neighbors as another "
            "node.",
        )


def _check_sizes_of_parts(s: Subject, facts: Facts) -> Iterator[Finding]:
    if not s.splits:
        yield Finding("info", "The graph has no split.")
        return
    sizes = np.array([[len(part) for part in split] for split in s.splits])
    relative = sizes / np.maximum(sizes.sum(1, keepdims=True), 1)
    facts["split_sizes"] = dict(zip(Split._fields, sizes.mean(0).tolist(), strict=True))
    facts["split_shares"] = dict(zip(Split._fields, relative.mean(0).tolist(), strict=True))
    names = dict(zip(Split._fields, ("train", "validation", "test"), strict=True))
    suffix = ""
    if s.folds:
        del names["val"]
        suffix = (
            f"; for validation each of {s.held_out} training nodes was held out once, in "
            f"{s.folds} folds"
        )
    average = " on average" if len(s.splits) > 1 else ""
    counts = " / ".join(f"{facts['split_sizes'][part]:.0f}" for part in names)
    shares = " / ".join(f"{100 * facts['split_shares'][part]:.0f}" for part in names)
    covered = percent(float(sizes.sum(1).mean()) / s.n)
    yield Finding(
        "info",
        f"{' / '.join(names.values()).capitalize()}: {counts} nodes{average} ({shares} percent of "
        f"the split, which covers {covered} of the graph){suffix}.",
    )


def _check_test_sets(s: Subject, facts: Facts) -> Iterator[Finding]:
    if not s.splits:
        return
    num_tested = min(int((s.labels[split.test] >= 0).sum()) for split in s.splits)
    facts["points_per_test_node"] = points = 100 / num_tested if num_tested else None
    if points is None:
        yield Finding("warning", "There is no labeled test node.")
    elif points > MAX_POINTS_PER_NODE:
        yield Finding(
            "warning",
            f"The test set has {counted(num_tested, 'labeled node')}: one node is worth "
            f"{points:.1f} points.",
        )
    untrained: dict[int, list[int]] = {}
    for fold, split in enumerate(s.splits):
        tested, trained = s.labels[split.test], s.labels[split.train]
        for code in np.setdiff1d(tested[tested >= 0], trained).tolist():
            untrained.setdefault(code, []).append(fold)
    lost = [
        f"Class {s.graph.classes[code]} is tested but never trained on in "
        f"{name_folds(folds, len(s.splits))}"
        for code, folds in sorted(untrained.items())
    ]
    yield from _some(lost, ".", "classes are never trained on")


def _check_overlap(s: Subject, facts: Facts) -> Iterator[Finding]:
    if len(s.splits) < 2:
        return
    is_tested = np.zeros((len(s.splits), s.n))
    for fold, split in enumerate(s.splits):
        is_tested[fold, split.test] = 1
    shared = is_tested @ is_tested.T / np.maximum(is_tested.sum(1), 1)
    mean = float(shared[~np.eye(len(s.splits), dtype=bool)].mean())
    never = int((is_tested.sum(0) == 0).sum())
    facts |= {"test_overlap_between_folds": mean, "nodes_never_tested": never}
    if mean > 0:
        yield Finding(
            "info",
            f"Any two folds share {percent(mean)} of their test nodes on average ({never} nodes "
            "are never tested): the folds are not independent samples.",
        )


def _check_copies(s: Subject, facts: Facts) -> Iterator[Finding]:
    facts["copies_of"] = {}
    for other in s.others:
        same = []
        has_same_shape = (s.n, s.graph.num_features) == (other.num_nodes, other.num_features)
        if has_same_shape and (s.features != feature_rows(other)).nnz == 0:
            same.append("features")
        if np.array_equal(s.labels, other.labels.cpu().numpy()):
            same.append("labels")
        if same:
            facts["copies_of"][other.name] = same
            yield Finding(
                "warning",
                f"It has the same {' and '.join(same)} as {other.name}: one of the two files has "
                "the wrong name.",
            )


_CHECKS: tuple[Callable[[Subject, Facts], Iterator[Finding]], ...] = (
    _check_sizes,
    _check_classes,
    _check_unlabeled,
    _check_components,
    _check_direction,
    _check_twins,
    _check_duplicates,
    _check_sizes_of_parts,
    _check_test_sets,
    _check_overlap,
    _check_copies,
    _check_repairs,
)
