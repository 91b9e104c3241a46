"""The nodes on the page of a fit: doubtful labels, and a map."""

from __future__ import annotations

from collections import Counter

from everynode.evaluation.fit_summary import FitSummary
from everynode.report.figures import figure
from everynode.report.html import Html, h, join, table
from everynode.report.scatter import scatter
from everynode.report.text import count, percent

#: Number of rows of the table of nodes.
DISAGREEMENTS = 30
#: The map colors this many classes.
SIGNS = 50
#: The parts of ``predictions.csv`` in words.
PARTS = {"train": "training", "val": "validation", "test": "test", "": "no part"}


def _names(fit: FitSummary) -> list[str]:
    return [str(name) for name in fit.predictions.classes]


def _probability(p: float) -> Html:
    return h("td", percent(float(p)), data_v=f"{p:.6g}")


def disagreements(fit: FitSummary) -> Html:
    """Build the table of labels that differ from the prediction, most confident first."""
    predictions, names, nodes = fit.predictions, _names(fit), fit.disagreements()
    if not len(nodes):
        return h("p", "Nowhere: every label equals its prediction.")
    rows = []
    for i in nodes[:DISAGREEMENTS].tolist():
        rows.append(
            [
                h("th", predictions.name(i), scope="row"),
                h("td", str(predictions.label_names[i])),
                _probability(predictions.probabilities[i][predictions.labels[i]]),
                h("td", names[predictions.predicted[i]]),
                _probability(predictions.probability[i]),
                h("td", PARTS[predictions.part[i]]),
            ]
        )
    shown = (
        f" This table shows the {DISAGREEMENTS} most confident; predictions.csv has all."
        if len(nodes) > DISAGREEMENTS
        else ""
    )
    differ = "differs" if len(nodes) == 1 else "differ"
    note = (
        f"The label and the prediction of {count(len(nodes), 'node')} {differ}. Where the model is"
        " confident, check the label. Check training nodes first: the model has seen their labels"
        f" and still disagrees.{shown}"
    )
    heads = ["node", "label", "its probability", "predicted", "probability", "part"]
    title = "Where prediction and label disagree"
    return join(h("p", note), table(heads, rows, title, look="plain sortable"))


def node_map(fit: FitSummary) -> Html:
    """Draw the nodes in the plane, by prediction and by label."""
    predictions = fit.predictions
    nodes, places = fit.map()
    names = [f"{i} {name}" for i, name in enumerate(_names(fit))]
    positions = [[round(float(v), 2) for v in place] for place in places]
    predicted, labels = predictions.predicted[nodes].tolist(), predictions.labels[nodes].tolist()
    others = ""
    if len(names) > SIGNS:
        others = f" The {SIGNS} largest of {len(names):,} predicted classes have a color."
        names, predicted, labels = _with_largest(names, predicted, labels)
    labeled = sum(label >= 0 for label in labels)
    by_class = f"{count(len(nodes), 'node')} by predicted class"
    by_label = f"{count(labeled, 'node')} by label"
    plots = [_plot("Predicted", scatter(positions, predicted, names, label=by_class))]
    if labeled:
        plot = scatter(positions, labels, names, label=by_label)
        plots.append(_plot("Labels, with unlabeled nodes in gray", plot))
    sample = (
        f" The map shows a sample of {len(nodes):,} of the {fit.graph.num_nodes:,} nodes."
        if len(nodes) < fit.graph.num_nodes
        else ""
    )
    note = (
        "Nodes that look alike to the network lie close together (t-SNE of the input of the last"
        " layer). Distances between clouds mean little. A node inside the cloud of another class"
        f" is worth a look.{others}{sample}"
    )
    return join(h("p", note), figure(names, "dot", plots))


def _with_largest(
    names: list[str], predicted: list[int], labels: list[int]
) -> tuple[list[str], list[int], list[int]]:
    """Keep the names of the most frequent predictions; the other classes become -1."""
    kept = [code for code, _ in Counter(predicted).most_common(SIGNS)]
    place = {code: i for i, code in enumerate(kept)}
    first, second = ([place.get(code, -1) for code in codes] for codes in (predicted, labels))
    return [names[code] for code in kept], first, second


def _plot(caption: str, plot: Html) -> Html:
    return h("figure", h("figcaption", caption), plot)
