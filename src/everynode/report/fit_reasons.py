"""The nodes to look at and the labels that look wrong, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable

from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.suspicious_labels import SuspiciousLabel
from everynode.explanations.explanation import Explanation, explain
from everynode.explanations.occlusion import Occlusion
from everynode.report.html import Html, h, join, prose, small, table
from everynode.report.text import count, percent, significant

#: Rows of the two tables; the first ones have reasons.
UNCERTAIN, WRONG, EXPLAINED = 20, 20, 10
#: Parts of each kind that are tried for a node.
PARTS = 16
#: Larger graphs have no reasons on the page; ``everynode explain`` gives them.
MOST_NODES = 50_000
#: Fewer nodes are explained on a graph with more nodes than this.
LARGE = 5_000
HOW = (
    "Reasons: the change of the probability of the predicted class, in points, if a column, a word "
    "or a node were missing. `everynode explain` gives all of them."
)


def uncertain_nodes(fit: FitSummary) -> Html:
    """Build the table of the nodes with the lowest confidence, with what speaks for and against."""
    found, degree = fit.predictions, fit.graph.degree
    names = [str(name) for name in found.classes]
    nodes = fit.uncertain(UNCERTAIN).tolist()
    reasons = _reasons(fit, ((node, None) for node in nodes))
    rows = []
    for i in nodes:
        first, second = found.probabilities[i].argsort()[::-1][:2]
        rows.append(
            [
                h("th", found.name(i), scope="row"),
                h("td", names[first]),
                _probability(found.probabilities[i][first]),
                h("td", names[second]),
                _probability(found.probabilities[i][second]),
                h("td", significant(float(degree[i]))),
                _cell(reasons.get(i)),
            ]
        )
    unlabeled = "unlabeled " if any(name is None for name in found.label_names) else ""
    note = f"The {unlabeled}nodes with the lowest confidence: check these predictions first."
    edges = "edges" if fit.graph.edge_weight is None else "total edge weight"
    heads = ["node", "predicted", "probability", "second choice", "probability", edges, "reason"]
    return join(
        h("p", note),
        table(heads, rows, "Most uncertain nodes", look="plain sortable"),
        small(prose(HOW)) if reasons else None,
    )


def suspicious(fit: FitSummary) -> Html | None:
    """Build the table of the labels that look wrong; None if there are none to judge."""
    model = fit.delivered or fit.model
    kept = model.held_out_labels_
    if kept is None or not len(kept.nodes):
        return None
    rows = model.suspicious_labels()
    if not rows:
        return h("p", f"None of {count(len(kept.nodes), 'held-out label')} looks wrong.")
    codes = {name: code for code, name in enumerate(fit.predictions.classes)}
    reasons = _reasons(fit, ((row.node, codes[row.suggested]) for row in rows[:WRONG]))
    note = (
        f"{len(rows):,} of {count(len(kept.nodes), 'held-out label')} look wrong: networks that did"
        " not learn from them confidently expect another class. Check the labels before you change"
        " them."
    )
    if len(rows) > WRONG:
        note += f" This table shows {WRONG}; `everynode suspicious` lists all."
    heads = ["node", "label", "its probability", "looks like", "probability", "reason"]
    cells = [_wrong(fit, row, reasons.get(row.node)) for row in rows[:WRONG]]
    return join(
        h("p", prose(note)), table(heads, cells, "Labels that look wrong", look="plain sortable")
    )


def _wrong(fit: FitSummary, row: SuspiciousLabel, reason: Explanation | None) -> list[Html]:
    return [
        h("th", fit.predictions.name(row.node), scope="row"),
        h("td", str(row.label)),
        _probability(row.probability),
        h("td", str(row.suggested)),
        _probability(row.suggested_probability),
        _cell(reason),
    ]


def _reasons(fit: FitSummary, nodes: Iterable[tuple[int, int | None]]) -> dict[int, Explanation]:
    """Explain the first nodes, each by the model that predicted it: a class or the prediction."""
    if fit.graph.num_nodes > MOST_NODES:
        return {}
    classes, part = fit.predictions.classes, fit.predictions.part
    measured = Occlusion(fit.model, fit.graph)
    delivered = Occlusion(fit.delivered, fit.graph) if fit.delivered else measured
    models = {True: measured, False: delivered}
    return {
        node: explain(
            models[part[node] in ("val", "test")], node, classes, label=label, most_parts=PARTS
        )
        for node, label in list(nodes)[: _num_explained(fit.graph.num_nodes)]
    }


def _num_explained(num_nodes: int) -> int:
    """Return how many nodes are explained: a few seconds on a large graph.

    >>> _num_explained(400), _num_explained(10_000), _num_explained(40_000)
    (10, 5, 2)
    """
    return max(2, min(EXPLAINED, EXPLAINED * LARGE // max(num_nodes, 1)))


def _cell(reason: Explanation | None) -> Html:
    return h("td", "" if reason is None else reason.brief, class_="words")


def _probability(p: float) -> Html:
    return h("td", percent(float(p)), data_v=f"{p:.6g}")
