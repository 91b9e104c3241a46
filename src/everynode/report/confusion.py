"""The confusion matrix as a table."""

from __future__ import annotations

from collections.abc import Sequence

from everynode.report.html import Html, h, join, small, table


def confusion_table(counts: Sequence[Sequence[int]], names: Sequence[str], note: str) -> Html:
    """Build a confusion matrix with its heading and a note on its nodes.

    Rows are true classes, columns predicted ones. A shade is the share of its row.
    """
    rows = []
    for name, row in zip(names, counts, strict=True):
        total = sum(row) or 1
        shades = [round(100 * n / total) for n in row]
        cells = [
            h("td", str(n), style=f"--s:{shade}%" if shade else None)
            for n, shade in zip(row, shades, strict=True)
        ]
        rows.append([h("th", name, scope="row"), *cells])
    heads = ["true \\ predicted", *names]
    return join(
        h("h4", "Confusion matrix"),
        small(f"{note} Rows are true classes, columns predicted ones; shades are shares of a row."),
        table(heads, rows, "Confusion matrix", look="confusion", caption=False),
    )
