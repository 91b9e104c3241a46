"""What to label next, on the page of a fit."""

from __future__ import annotations

import shlex

from everynode.evaluation.fit_summary import FitSummary
from everynode.report.html import Html, command, h, join, table
from everynode.report.text import percent

#: The number of rows.
SUGGESTED = 10


def label_next(fit: FitSummary, model: str) -> Html | None:
    """Build the table of the nodes to label next; None if every node has a label."""
    if not len((fit.graph.labels < 0).nonzero()):
        return None
    predictions, rows = fit.predictions, []
    for row in fit.suggestions(SUGGESTED):
        cells = [
            h("th", predictions.name(row.node), scope="row"),
            h("td", row.reason, class_="words"),
            h("td", str(row.predicted)),
            h("td", percent(row.probability or 0.0), data_v=f"{row.probability:.6g}"),
        ]
        rows.append(cells)
    note = (
        "These nodes stand for the unlabeled ones that no label covers yet: similar columns, and"
        " similar neighbors. Those that the model likely predicts wrong count more. A batch, so no"
        " two of them are alike."
    )
    ask = (
        f"everynode suggest {shlex.quote(model)} --nodes NODES.csv --edges LINKS.csv --out ask.csv"
    )
    return join(
        h("p", note),
        table(["node", "why", "predicted", "probability"], rows, "What to label next"),
        h("p", "A list to fill in, for ", h("code", "fit --labels"), ": ", command(ask)),
    )
