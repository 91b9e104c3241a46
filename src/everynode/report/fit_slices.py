"""Quality by slice, and the coverage of the prediction sets, on the page of a fit."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.evaluation.fit_summary import FitSummary
from everynode.evaluation.slices import Slice
from everynode.report.fit_scores import range_text
from everynode.report.html import Html, h, join, prose, small, table
from everynode.report.text import count, percent

#: The page lists this many slices of each kind.
LISTED = 20


def slices(fit: FitSummary) -> Html:
    """Build the table of the accuracy by slice, and name the slices below the average."""
    part = fit.judged.name
    low = [one for one in fit.slices if one.low]
    if low:
        names = ", ".join(f"{one.by} {one.name} ({percent(one.score.value)})" for one in low[:5])
        note = f"Below the accuracy of all {part} nodes by more than chance: {names}."
    else:
        note = f"No slice is below the accuracy of all {part} nodes by more than chance."
    caution = (
        f"Of {count(len(fit.slices), 'slice')}, one in forty is marked by chance alone. "
        "`--slice COLUMN` adds the values of a column."
    )
    return join(
        h("p", note), _table(fit.slices, "right", "Accuracy by slice"), small(prose(caution))
    )


def coverage(fit: FitSummary) -> Html | None:
    """Build the table of the coverage of the prediction sets by class and degree."""
    if not fit.coverage:
        return None
    note = (
        "The share of test nodes whose prediction set contains their class. The promise holds on "
        "average over all nodes, not within each class or degree."
    )
    return join(
        h("h3", "Coverage of the prediction sets"),
        h("p", note),
        _table(fit.coverage, "covered", "Coverage by class and degree"),
    )


def _table(rows: Sequence[Slice], verb: str, title: str) -> Html:
    listed: dict[str, list[Slice]] = {}
    for one in rows:
        listed.setdefault(one.by, []).append(one)
    cells = []
    for some in listed.values():
        for one in some[:LISTED]:
            between = h("span", range_text(one.score), class_="between")
            mark = " (below)" if one.low else ""
            cells.append(
                [
                    h("th", f"{one.by} {one.name}".strip(), mark, scope="row"),
                    h("td", percent(one.score.value), between, data_v=f"{one.score.value:.6g}"),
                    h("td", f"{one.nodes:,}"),
                ]
            )
    return table(["nodes", verb, "number"], cells, title, look="plain sortable")
