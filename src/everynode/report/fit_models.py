"""The leaderboard of the portfolio on the page of a fit."""

from __future__ import annotations

from everynode.evaluation.baselines import KINDS
from everynode.evaluation.fit_summary import FitSummary
from everynode.report.html import Html, h, join, table
from everynode.report.text import count
from everynode.selection.leaderboard import Leaderboard

TITLE = "The candidates, with their inputs and 95% intervals"
NOTE = (
    "Accuracy and log-loss are out-of-fold: no network saw the labels that judge it. A model is"
    " dropped when its log-loss is clearly worse. The ensemble averages the probabilities of the"
    " others by weight."
)


def models(fit: FitSummary) -> Html | None:
    """Build the table of all candidates; None without a portfolio."""
    board, gain = fit.model.leaderboard_, str(fit.model.graph_gain_ or "")
    if board is None:
        return None
    rows = []
    for row in board:
        name, accuracy, between, *cells = Leaderboard.cells(row)
        rows.append(
            [
                h("th", name, h("span", KINDS[row.uses], class_="between"), scope="row"),
                h("td", accuracy, h("span", between, class_="between")),
                *(h("td", cell) for cell in cells),
                h("td", row.outcome, class_="outcome"),
            ]
        )
    members = sum(row.weight > 0 for row in board)
    lead = f"{count(len(board), 'candidate')} were tried, and {members} form the ensemble. {NOTE}"
    heads = ["candidate", "accuracy", "log-loss", "seconds", "folds", "weight", "outcome"]
    sentence = h("p", gain) if gain else None
    return join(sentence, h("p", lead), table(heads, rows, TITLE, look="plain candidates"))
