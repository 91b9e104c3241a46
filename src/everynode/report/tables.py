"""The tables of an experiment: rows by columns as in the paper, and every number as a list."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from everynode.experiments.analysis import CellResult
from everynode.experiments.experiment import Experiment
from everynode.experiments.statistics import Paired, Summary
from everynode.report.cell import digits_of, limits, printed
from everynode.report.cell_text import gain_text, mean_text, notes
from everynode.report.html import Html, h, table
from everynode.report.text import DASH, interval, number, p_value

#: The cells of an empty column.
EMPTY = (h("td"), h("td", data_v=""))
#: The rows of an experiment in a word, where they are not methods.
ROWS = {
    "datasets": "graph",
    "labels-per-class": "objective",
    "mi-vs-tv": "objective",
    "halves": "halves",
    "weights": "symbol",
    "readings": "reading",
}
#: Maximum number of columns of a table that leaves room for long row names.
FEW_COLUMNS = 3
#: A sign before each verdict, so that color is not the only sign.
SIGNS = {"reproduced": "✓", "same": "✓", "better": "▲", "short": "▼", "differs": "≠"}


def kind(verdict: str) -> str:
    """Return a verdict without its amount.

    >>> kind("better by 1.2"), kind("reproduced")
    ('better', 'reproduced')
    """
    return verdict.partition(" ")[0]


def badge(verdict: str) -> Html | None:
    """Build a verdict with its sign."""
    if not verdict:
        return None
    text = f"{SIGNS[kind(verdict)]} {verdict.replace('-', '−')}"
    return h("span", text, class_=f"verdict {kind(verdict)}")


def matrix(
    experiment: Experiment,
    cells: Sequence[CellResult],
    ids: Mapping[CellResult, str],
    caption: str,
) -> Html:
    """Build a table of rows by columns; every number is a button that opens its panel."""
    columns = list(dict.fromkeys(cell.cell.column for cell in cells))
    places = {(cell.cell.row, cell.cell.column): cell for cell in cells}
    rows = []
    for row in dict.fromkeys(cell.cell.row for cell in cells):
        own = (places.get((row, column)) for column in columns)
        rows.append([h("th", row, scope="row"), *(_entry(experiment, cell, ids) for cell in own)])
    unit = f" {experiment.x}" if experiment.x else ""
    heads = [
        h("th", h("span", _corner(experiment), class_="quiet"), scope="col"),
        *(f"{column}{unit}" for column in columns),
    ]
    look = f"matrix sortable{' roomy' if len(columns) <= FEW_COLUMNS else ''}"
    return table(heads, rows, caption, look=look)


def means(experiment: Experiment, cells: Sequence[CellResult], caption: str) -> Html:
    """Build a table of means and standard deviations for print; a star marks a significant gain."""
    rows, columns = (
        list(dict.fromkeys(getattr(cell.cell, name) for cell in cells))
        for name in ("row", "column")
    )
    places = {(cell.cell.row, cell.cell.column): cell for cell in cells}
    heads = [
        _corner(experiment),
        *(f"{experiment.x} {column}" if column == columns[0] else column for column in columns),
    ]
    body = [
        [
            h("th", row, scope="row"),
            *(h("td", _mean(experiment, places.get((row, column)))) for column in columns),
        ]
        for row in rows
    ]
    return h("div", table(heads, body, caption), class_="on-paper")


def _mean(experiment: Experiment, cell: CellResult | None) -> str:
    if cell is None or cell.summary is None:
        return DASH
    return f"{mean_text(experiment, cell)}{'*' if cell.significant else ''}"


def _corner(experiment: Experiment) -> str:
    return ROWS.get(experiment.id, "method")


def _difference(cell: CellResult) -> float | None:
    """Return our number minus the paper's."""
    if cell.summary is None or cell.cell.published is None:
        return None
    return cell.summary.mean - cell.cell.published


def _entry(experiment: Experiment, cell: CellResult | None, ids: Mapping[CellResult, str]) -> Html:
    """Build an entry of the matrix."""
    if cell is None:  # such as a choice of halves without the term that has them
        return _no_number(None, "does not apply")
    digits, summary = digits_of(experiment, cell), cell.on_these
    paper = None
    if cell.cell.published is not None:
        off = number(_difference(cell), digits, sign=True)
        amount = f" ({off})" if cell.verdict == "reproduced" else ""  # other verdicts have it
        paper = h("span", f"paper {printed(experiment, cell)}{amount}", class_="paper")
    if not cell.keys:
        return _no_number(paper, "not timed here" if cell.cell.task == "time" else "not run")
    lines: list[Html | None] = []
    if summary is None:
        lines.append(h("span", "diverged", class_="mean"))
    else:
        std = f" ± {number(summary.std, digits)}"
        spread = h("span", std, class_="std") if summary.count > 1 else None
        lines.append(h("span", number(summary.mean, digits), spread, class_="mean"))
        if summary.count > 1:
            lines.append(h("span", interval(*limits(summary, cell), digits), class_="ci"))
    lines += [paper, badge(cell.verdict), _gain(experiment, cell)]
    for note in notes(cell):
        lines.append(h("span", note, class_=f"flag{' bad' * note.endswith('diverged')}"))
    button = h("button", lines, popovertarget=ids[cell], class_="cell")
    return h("td", button, data_v="" if summary is None else _raw(summary.mean))


def _no_number(paper: Html | None, reason: str) -> Html:
    """Build an entry of the matrix without a number."""
    dash, flag = h("span", DASH, class_="mean"), h("span", reason, class_="flag")
    return h("td", dash, paper, flag, class_="none", data_v="")


def _gain(experiment: Experiment, cell: CellResult) -> Html | None:
    """Build the gain of a cell, with the paper's gain in brackets."""
    text = gain_text(experiment, cell)
    if not text or cell.gain is None:
        return None
    published = number(cell.published_gain, digits_of(experiment, cell), sign=True)
    brackets = "" if cell.published_gain is None else f" ({published})"
    way = ("up" if cell.gain.mean > 0 else "down") if cell.significant else None
    return h("span", h("b", text, class_=way), brackets, class_="gain")


def listing(
    experiment: Experiment, cells: Sequence[CellResult], ids: Mapping[CellResult, str]
) -> Html:
    """Build a sortable list of every number of an experiment; empty columns are left out."""
    shown = [cell for cell in cells if cell.keys]
    built = {
        name: [column(cell) for cell in shown]
        for name, column in _columns(experiment, cells, ids).items()
    }
    used = {
        name: column
        for name, column in built.items()
        if any(entry not in EMPTY for entry in column)
    }
    heads = [
        h("th", name, scope="col", class_=_head_class(name, column))
        for name, column in used.items()
    ]
    rows = zip(*used.values(), strict=True)
    title = f"{experiment.title}: every number"
    return h(
        "details",
        h("summary", f"Every number as a list ({len(shown)})"),
        table(heads, rows, title, look="plain listing sortable"),
        class_="numbers",
    )


def _columns(
    experiment: Experiment, cells: Sequence[CellResult], ids: Mapping[CellResult, str]
) -> dict[str, Callable[[CellResult], Html]]:
    """Return the columns of the list, by head."""
    by_graph = all(c.cell.column == c.cell.dataset for c in cells)
    across = experiment.x or ("graph" if by_graph else "column")

    def score(cell: CellResult, value: float | None, *, sign: bool = False) -> Html:
        if value is None or not math.isfinite(value):
            return h("td", data_v="")
        return h("td", number(value, digits_of(experiment, cell), sign=sign), data_v=_raw(value))

    def mean(cell: CellResult) -> Html:
        if cell.summary is None or not math.isfinite(cell.summary.mean):
            return h("td", "diverged" if cell.diverged else "", data_v="")
        text = number(cell.summary.mean, digits_of(experiment, cell))
        button = h("button", text, popovertarget=ids[cell], class_="open")
        return h("td", button, data_v=_raw(cell.summary.mean))

    def between(cell: CellResult, summary: Summary | None) -> Html:
        if summary is None or summary.count < 2:
            return h("td", data_v="")
        paired = isinstance(summary, Paired)
        low, high = (summary.low, summary.high) if paired else limits(summary, cell)
        text = interval(low, high, digits_of(experiment, cell))
        return h("td", text, data_v=_raw(low) if math.isfinite(low) else "")

    def in_paper(cell: CellResult) -> Html:
        if cell.cell.published is None:
            return h("td", data_v="")
        return h("td", printed(experiment, cell), data_v=_raw(cell.cell.published))

    def p_holm(cell: CellResult) -> Html:
        if cell.p_holm is None:
            return h("td", data_v="")
        return h("td", p_value(cell.p_holm), data_v=_raw(cell.p_holm))

    def verdict(cell: CellResult) -> Html:
        order = _raw(_difference(cell) or 0.0) if cell.verdict else ""
        return h("td", badge(cell.verdict), data_v=order)

    def column(cell: CellResult) -> Html:
        text = cell.cell.column
        return h("td", text, data_v=text if text.replace(".", "", 1).isdecimal() else None)

    def gain(cell: CellResult) -> Html:
        has_pairs = cell.gain is not None and cell.gain.count > 1
        return score(cell, cell.gain.mean if cell.gain and has_pairs else None, sign=True)

    folds = experiment.over == "folds"
    return {
        "panel": lambda c: h("td", c.cell.panel),
        _corner(experiment): lambda c: h("td", c.cell.row),
        across: column,
        "mean": mean,
        "std": lambda c: score(c, None if c.summary is None else c.summary.std),
        "95% interval": lambda c: between(c, c.on_these),
        "95% interval for other folds": lambda c: between(c, c.summary if folds else None),
        "paper": in_paper,
        "verdict": verdict,
        "gain": gain,
        "gain's 95% interval": lambda c: between(c, c.gain),
        "gain in the paper": lambda c: score(c, c.published_gain if c.gain else None, sign=True),
        "p (Holm)": p_holm,
        "runs": lambda c: h("td", f"{len(c.keys)} of {c.planned}", data_v=len(c.keys)),
        "diverged": lambda c: h("td", str(c.diverged) if c.diverged else ""),
        "best test epoch (diagnostic)": lambda c: score(
            c, None if c.oracle is None else c.oracle.mean
        ),
    }


def _head_class(name: str, column: Sequence[Html]) -> str | None:
    """Return the class of a head: over numbers it is right-aligned too."""
    numbers = name != "verdict" and column[0].startswith("<td data-v")
    words = ("number" if numbers else "", "diagnostic" if "diagnostic" in name else "")
    return " ".join(filter(None, words)) or None


def _raw(value: float) -> str:
    """Format a number for sorting."""
    return f"{value:.6g}"
