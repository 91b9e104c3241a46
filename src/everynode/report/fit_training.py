"""The training on the page of a fit: the candidates, the curves and the terms."""

from __future__ import annotations

from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.metrics import LOSSES
from everynode.report.curves import curve_plots, term_name, terms_of
from everynode.report.html import Html, h, join, prose, table
from everynode.report.text import (
    CANDIDATES,
    DASH,
    count,
    decided_by,
    number,
    percent,
    significant,
)

TERMS_NOTE = (
    "The dashed line is the epoch that validation selected. CE fits the labels. MI makes"
    " predictions confident and uses every class. TV makes neighbors with similar features agree."
    " CVG makes two halves of the labels pull in the same direction."
)


def training(fit: FitSummary) -> Html:
    """Build the candidates, the training curves, and the values of the terms."""
    fitted = fit.model.fitted_
    history, best, weights = fitted.history, fitted.best_epoch, fitted.settings.active_terms()
    rows = []
    for name in (name for name in terms_of(history) if name != "total"):
        weight = 1.0 if name == "ce" else weights.get(name, 0.0)
        first, selected = history[name][0], history[name][best]
        texts = (significant(v) for v in (weight, first, selected, weight * selected))
        rows.append([h("th", term_name(name), scope="row"), *(h("td", text) for text in texts)])
    networks = len(fit.model.networks_)
    several = f" for all {networks} networks; this is the first" if networks > 1 else ""
    seconds = f"{count(fitted.epochs, 'epoch')} in {number(fitted.seconds, 1)} s{several}."
    heads = ["term", "weight", "first epoch", f"epoch {best}", "times its weight"]
    return join(
        _candidates(fit),
        h("p", f"{seconds} {TERMS_NOTE}"),
        curve_plots(history, best, fit.graph.name),
        table(heads, rows, "The terms before weighting"),
    )


def _candidates(fit: FitSummary) -> Html | None:
    """Build the results of the candidates."""
    fitted, standings = fit.model.fitted_, fit.model.standings_
    monitor, winner = fitted.settings.monitor, fit.model.objective_
    if len(standings) < 2:
        return None
    metric = "accuracy" if monitor in LOSSES else monitor  # the loss has its own column
    rows = []
    for name, standing in standings.items():
        score = standing.val_accuracy if monitor in LOSSES else standing.val_score
        meaning = h("span", CANDIDATES[name], class_="between") if name in CANDIDATES else None
        rows.append(
            [
                h("th", name, meaning, scope="row"),
                h("td", percent(score) if standing.epochs else DASH),
                h("td", number(standing.val_loss, 3)),
                h("td", str(standing.epochs)),
                h("td", standing.outcome, class_="words"),
            ]
        )
    note = (
        "Several candidates trained side by side; the worse ones on the validation nodes stopped."
        f" `{winner}` won: it was chosen {decided_by(monitor)}."
    )
    if fitted.interrupted:
        note = f"Training was interrupted during successive halving. `{winner}` is the best so far."
    heads = ["candidate", f"validation {metric}", "loss", "epochs", "outcome"]
    return join(h("p", prose(note)), table(heads, rows, "The candidates"))
