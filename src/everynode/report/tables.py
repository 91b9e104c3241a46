"""The tables of the page: rows by columns as the paper has them, and every number as a list that can be sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from everynode.experiments.analysis import CellResult
from everynode.experiments.experiment import Experiment
from everynode.experiments.statistics import Paired, Summary
from everynode.report.cell import digits_of, limits, printed
from everynode.report.cell_text import gain_text, mean_text, notes
from everynode.report.html import Html, h, listed, scroll
from everynode.report.text import DASH, interval, number, p_value

#: Cells of a column that says nothing.
EMPTY = (h("td"), h("td", data_v=""))
#: What the rows of an experiment are, where they are no methods.
ROWS = {
    "datasets": "graph",
    "labels-per-class": "objective",
    "mi-vs-tv": "objective",
    "halves": "halves",
    "weights": "symbol",
    "readings": "reading",
}
#: With at most so many columns there is room for long names of rows.
FEW_COLUMNS = 3
#: A sign before each verdict, so that colour is not all that tells them apart.
SIGNS = {"reproduced": "✓", "same": "✓", "better": "▲", "short": "▼", "differs": "≠"}


def kind(verdict: str) -> str:
    """A verdict without its amount.

    >>> kind("better by 1.2"), kind("reproduced")
    ('better', 'reproduced')
    """
    return verdict.partition(" ")[0]


def badge(verdict: str) -> Html | None:
    """A verdict with its sign."""
    return (
        h(
            "span",
            f"{SIGNS[kind(verdict)]} {verdict.replace('-', '−')}",
            class_=f"verdict {kind(verdict)}",
        )
        if verdict
        else None
    )


def _difference(cell: CellResult) -> float | None:
    """Our number less the paper's."""
    return (
        None
        if cell.summary is None or cell.cell.published is None
        else cell.summary.mean - cell.cell.published
    )


def matrix(
    experiment: Experiment,
    cells: Sequence[CellResult],
    ids: Mapping[CellResult, str],
    caption: str,
) -> Html:
    """Rows by columns; every number is a button that opens what stands behind it."""
    columns = list(dict.fromkeys(cell.cell.column for cell in cells))
    places = {(cell.cell.row, cell.cell.column): cell for cell in cells}
    rows = []
    for row in dict.fromkeys(cell.cell.row for cell in cells):
        found = (places.get((row, column)) for column in columns)
        rows.append(
            h("tr", h("th", row, scope="row"), [_entry(experiment, cell, ids) for cell in found])
        )
    first = h("th", h("span", corner(experiment), class_="quiet"), scope="col")
    unit = f" {experiment.x}" if experiment.x else ""
    heads = [h("th", f"{column}{unit}", scope="col") for column in columns]
    look = f"matrix sortable{' roomy' if len(columns) <= FEW_COLUMNS else ''}"
    table = h(
        "table",
        h("caption", caption),
        h("thead", h("tr", first, heads)),
        h("tbody", rows),
        class_=look,
    )
    return scroll(table, caption)


def means(experiment: Experiment, cells: Sequence[CellResult], caption: str) -> Html:
    """Rows by columns with no more than means and standard deviations, for paper; a star where the gain is significant."""
    rows, columns = (
        list(dict.fromkeys(getattr(cell.cell, name) for cell in cells))
        for name in ("row", "column")
    )
    places = {(cell.cell.row, cell.cell.column): cell for cell in cells}
    heads = (
        corner(experiment),
        *(f"{experiment.x} {column}" if column == columns[0] else column for column in columns),
    )
    body = [
        [
            h("th", row, scope="row"),
            *(h("td", _mean(experiment, places.get((row, column)))) for column in columns),
        ]
        for row in rows
    ]
    return h("div", listed(heads, body, caption), class_="on-paper")


def _mean(experiment: Experiment, cell: CellResult | None) -> str:
    if cell is None or cell.summary is None:
        return DASH
    return f"{mean_text(experiment, cell)}{'*' if cell.significant else ''}"


def corner(experiment: Experiment) -> str:
    """What the rows are."""
    return ROWS.get(experiment.id, "method")


def _entry(experiment: Experiment, cell: CellResult | None, ids: Mapping[CellResult, str]) -> Html:
    if cell is None:  # such as a choice of halves without the term that has them
        return h(
            "td",
            h("span", DASH, class_="mean"),
            h("span", "does not apply", class_="flag"),
            class_="none",
            data_v="",
        )
    digits, found, gain = digits_of(experiment, cell), cell.on_these, cell.gain
    off = (
        f" ({number(_difference(cell), digits, sign=True)})" if cell.verdict == "reproduced" else ""
    )  # other verdicts say by how much
    paper = (
        None
        if cell.cell.published is None
        else h("span", f"paper {printed(experiment, cell)}{off}", class_="paper")
    )
    if not cell.keys:
        why = "not timed here" if cell.cell.task == "time" else "not run"
        return h(
            "td",
            h("span", DASH, class_="mean"),
            paper,
            h("span", why, class_="flag"),
            class_="none",
            data_v="",
        )
    lines: list[Html | None] = []
    if found is None:
        lines.append(h("span", "diverged", class_="mean"))
    else:
        spread = (
            h("span", f" ± {number(found.std, digits)}", class_="std") if found.count > 1 else None
        )
        lines.append(h("span", number(found.mean, digits), spread, class_="mean"))
        if found.count > 1:
            lines.append(h("span", interval(*limits(found, cell), digits), class_="ci"))
    lines += [paper, badge(cell.verdict)]
    if gain is not None and gain.count > 1:
        text = gain_text(experiment, cell)
        theirs = (
            ""
            if cell.published_gain is None
            else f" ({number(cell.published_gain, digits, sign=True)})"
        )
        way = ("up" if gain.mean > 0 else "down") if cell.significant else None
        lines.append(h("span", h("b", text, class_=way), theirs, class_="gain"))
    for note in notes(cell):
        bad = " bad" if note.endswith("diverged") else ""
        lines.append(h("span", note, class_=f"flag{bad}"))
    return h(
        "td",
        h("button", lines, popovertarget=ids[cell], class_="cell"),
        data_v="" if found is None else _raw(found.mean),
    )


def listing(
    experiment: Experiment, cells: Sequence[CellResult], ids: Mapping[CellResult, str]
) -> Html:
    """Every number of an experiment as a row, with what the short tables leave out; columns that would be empty are left out."""
    across = experiment.x or (
        "graph" if all(c.cell.column == c.cell.dataset for c in cells) else "column"
    )
    columns: dict[str, Callable[[CellResult], Html]] = {
        "panel": lambda c: h("td", c.cell.panel),
        corner(experiment): lambda c: h("td", c.cell.row),
        across: lambda c: h(
            "td", c.cell.column, data_v=c.cell.column if _is_number(c.cell.column) else None
        ),
        "mean": lambda c: _number(
            c, None if c.summary is None else c.summary.mean, experiment, opens=ids[c]
        ),
        "std": lambda c: _number(c, None if c.summary is None else c.summary.std, experiment),
        "95% interval": lambda c: _range(c, c.on_these, experiment),
        "95% interval for other folds": lambda c: _range(
            c, c.summary if experiment.over == "folds" else None, experiment
        ),
        "paper": lambda c: _papers(c, experiment),
        "verdict": lambda c: h(
            "td", badge(c.verdict), data_v=_raw(_difference(c) or 0.0) if c.verdict else ""
        ),
        "gain": lambda c: _number(
            c, c.gain.mean if c.gain and c.gain.count > 1 else None, experiment, sign=True
        ),
        "gain's 95% interval": lambda c: _range(c, c.gain, experiment),
        "gain in the paper": lambda c: _number(
            c, c.published_gain if c.gain else None, experiment, sign=True
        ),
        "p (Holm)": lambda c: (
            h("td", "", data_v="")
            if c.p_holm is None
            else h("td", p_value(c.p_holm), data_v=_raw(c.p_holm))
        ),
        "runs": lambda c: h("td", f"{len(c.keys)} of {c.planned}", data_v=len(c.keys)),
        "diverged": lambda c: h("td", str(c.diverged) if c.diverged else ""),
        "best test epoch (diagnostic)": lambda c: _number(
            c, None if c.oracle is None else c.oracle.mean, experiment
        ),
    }
    there = [cell for cell in cells if cell.keys]
    made = {name: [column(cell) for cell in there] for name, column in columns.items()}
    shown = {
        name: column for name, column in made.items() if any(entry not in EMPTY for entry in column)
    }
    heads = [
        h("th", name, scope="col", class_=_look(name, column)) for name, column in shown.items()
    ]
    rows = [h("tr", entries) for entries in zip(*shown.values(), strict=True)]
    caption = h("caption", f"{experiment.title}: every number")
    table = h(
        "table",
        caption,
        h("thead", h("tr", heads)),
        h("tbody", rows),
        class_="plain listing sortable",
    )
    inside = scroll(table, f"{experiment.title}: every number")
    return h(
        "details", h("summary", f"Every number as a list ({len(there)})"), inside, class_="numbers"
    )


def _look(name: str, column: Sequence[Html]) -> str | None:
    """How a head of the list looks: over numbers, which are aligned at their ends, it is too."""
    numbers = name != "verdict" and column[0].startswith("<td data-v")
    return (
        " ".join(
            filter(
                None, ("number" if numbers else "", "diagnostic" if "diagnostic" in name else "")
            )
        )
        or None
    )


def _number(
    cell: CellResult,
    found: float | None,
    experiment: Experiment,
    *,
    sign: bool = False,
    opens: str | None = None,
) -> Html:
    if found is None or not math.isfinite(found):
        return h("td", "diverged" if opens and cell.diverged else "", data_v="")
    text = number(found, digits_of(experiment, cell), sign=sign)
    return h(
        "td",
        h("button", text, popovertarget=opens, class_="open") if opens else text,
        data_v=_raw(found),
    )


def _papers(cell: CellResult, experiment: Experiment) -> Html:
    found = cell.cell.published
    return (
        h("td", data_v="")
        if found is None
        else h("td", printed(experiment, cell), data_v=_raw(found))
    )


def _range(cell: CellResult, found: Summary | None, experiment: Experiment) -> Html:
    if found is None or found.count < 2:
        return h("td", data_v="")
    low, high = (found.low, found.high) if isinstance(found, Paired) else limits(found, cell)
    return h(
        "td",
        interval(low, high, digits_of(experiment, cell)),
        data_v=_raw(low) if math.isfinite(low) else "",
    )


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal()


def _raw(found: float) -> str:
    """A number for sorting."""
    return f"{found:.6g}"
