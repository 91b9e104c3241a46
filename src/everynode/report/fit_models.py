"""The leaderboard of the portfolio on the page of a fit."""

from __future__ import annotations

from everynode.evaluation.fit_summary import FitSummary
from everynode.report.html import Html, h, join, table
from everynode.report.text import count
from everynode.selection.leaderboard import Leaderboard

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
        name, *cells = Leaderboard.cells(row)
        rows.append(
            [
                h("th", name, scope="row"),
                *(h("td", cell) for cell in cells),
                h("td", row.uses, class_="words"),
                h("td", row.outcome, class_="words"),
            ]
        )
    members = sum(row.weight > 0 for row in board)
    lead = f"{count(len(board), 'candidate')} were tried, and {members} form the ensemble. {NOTE}"
    heads = [
        "candidate", "accuracy", "95% interval", "log-loss", "seconds", "folds", "weight", "uses",
        "outcome",
    ]  # fmt: skip
    sentence = h("p", gain) if gain else None
    return join(sentence, h("p", lead), table(heads, rows, "The candidates"))
