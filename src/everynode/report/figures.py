"""The figures of the page from the cells of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everynode.experiments.declare import Experiment
from everynode.experiments.outcome import CellOutcome
from everynode.report import svg
from everynode.report.cell import Source, digits_of, limits
from everynode.report.html import Html, h
from everynode.report.text import as_printed, count, interval, number

#: From this ratio of the largest to the smallest value on, an x axis is logarithmic.
LOG_FROM = 16


def line_plots(experiment: Experiment, panels: Mapping[str, Sequence[CellOutcome]], ids: Mapping[CellOutcome, str]) -> Html | None:
    """A plot for every panel; the same row has the same sign in all of them."""
    rows = list(dict.fromkeys(cell.cell.row for cells in panels.values() for cell in cells))
    plots = []
    for panel, cells in panels.items():
        series = {row: _points(experiment, [c for c in cells if c.cell.row == row], ids) for row in rows}
        if not any(series.values()):
            continue
        xs = [float(cell.cell.column) for cell in cells]  # of all cells, so that the axis is whole while runs are missing
        title = f"{experiment.title}{f', {panel}' if panel else ''}"
        papers = {
            row: [(float(c.cell.column), c.cell.published) for c in cells if c.cell.row == row and c.cell.published is not None]
            for row in rows
        }
        plot = svg.lines(series, label=f"{title}: {', '.join(rows)}", x_label=experiment.x, y_label="test accuracy, %",
                         log_x=min(xs) > 0 and max(xs) / min(xs) >= LOG_FROM, xs=xs, beside=papers)  # fmt: skip
        plots.append(_figure(plot, panel))
    if not plots:
        return None
    everything = [cell for cells in panels.values() for cell in cells]
    signs = {
        "Dotted: the paper's numbers.": any(cell.cell.published is not None for cell in everything),
        "Hollow: runs are missing.": any(cell.keys and not cell.complete for cell in everything),
    }
    said = " ".join(text for text, true in signs.items() if true)
    note = h("p", said, class_="small") if said else None
    return h("div", legend(rows, "line"), note, h("div", plots, class_="plots few" if len(plots) == 1 else "plots"), class_="figure")


def bar_plot(experiment: Experiment, cells: Sequence[CellOutcome], ids: Mapping[CellOutcome, str]) -> Html | None:
    """Grouped bars: a group for every column, a bar for every row."""
    rows, columns = (list(dict.fromkeys(getattr(cell.cell, name) for cell in cells)) for name in ("row", "column"))
    series = {row: _points(experiment, [c for c in cells if c.cell.row == row], ids, columns) for row in rows}
    if not any(series.values()):
        return None
    plot = svg.bars(series, columns, label=f"{experiment.title}: {', '.join(rows)}", x_label=experiment.x, y_label="test accuracy, %")
    return h("div", legend(rows, "bar"), h("div", _figure(plot, ""), class_="plots few"), class_="figure")


def maps(cells: Sequence[CellOutcome], ids: Mapping[CellOutcome, str], source: Source) -> Html | None:
    """The nodes in the plane, coloured by class."""
    figures, classes = [], 0
    for cell in cells:
        record = next((found for key in cell.keys if "positions" in (found := source.records[key])), None)
        if record is None:
            continue
        labels = record["labels"]
        classes = max(classes, max(labels, default=0) + 1)
        names = [f"class {i}" for i in range(max(labels, default=0) + 1)]
        plot = svg.scatter(record["positions"], labels, names, label=f"{count(len(labels), 'node')} in the plane: {cell.cell.row}")
        score = record.get("test_accuracy")
        note = "" if score is None else f", test accuracy {number(100 * score, 1)}%"
        button = h("button", f"{cell.cell.row}{note}", popovertarget=ids[cell], class_="open")
        figures.append(h("figure", plot, h("figcaption", button)))
    if not figures:
        return None
    return h("div", legend([f"class {i}" for i in range(classes)], "dot"), h("div", figures, class_="plots"), class_="figure")


def _points(
    experiment: Experiment, cells: Sequence[CellOutcome], ids: Mapping[CellOutcome, str], columns: Sequence[str] | None = None
) -> list[svg.Point]:
    made = []
    for cell in cells:
        found = cell.summary
        if found is None:
            continue
        digits = digits_of(experiment, cell)
        low, high = limits(found, cell)
        tip = f"{number(found.mean, digits)}"
        if found.count > 1:
            tip += f" ± {number(found.std, digits)} ({interval(low, high, digits)})"
        if not cell.complete:
            tip += f", {len(cell.keys)} of {cell.planned} runs"
        if cell.cell.published is not None:
            tip += f", paper {as_printed(cell.cell.published, digits)}"
        x = float(cell.cell.column) if columns is None else float(columns.index(cell.cell.column))
        made.append(svg.Point(x, found.mean, low, high, tip, ids[cell], hollow=not cell.complete))
    return made


def _figure(plot: Html, name: str) -> Html:
    return h("figure", h("figcaption", name) if name else None, plot)


def legend(names: Sequence[str], kind: str) -> Html:
    """What the signs mean; the script makes the entries buttons that pick one series out."""
    return h("ul", [h("li", svg.swatch(i, kind), name, data_series=i) for i, name in enumerate(names)], class_="legend")
