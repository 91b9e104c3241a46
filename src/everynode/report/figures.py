"""The figures of the page from the cells of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everynode.experiments.analysis import CellResult
from everynode.experiments.experiment import NAMES, Experiment
from everynode.report import svg
from everynode.report.cell import Source, digits_of, limits, printed
from everynode.report.html import Html, h
from everynode.report.text import ENTRANTS, count, interval, number

#: From this ratio of the largest to the smallest value on, an x axis is logarithmic.
LOG_FROM = 16


def line_plots(
    experiment: Experiment,
    panels: Mapping[str, Sequence[CellResult]],
    ids: Mapping[CellResult, str],
) -> Html | None:
    """A plot for every panel; the same line has the same sign in all of them, and all have one y axis, so that they can be compared."""
    apart = any(len({cell.cell.backbone for cell in cells}) > 1 for cells in panels.values())
    plotted = _by_network(panels) if apart else panels
    everything = [cell for cells in panels.values() for cell in cells]
    names = {
        cell: ENTRANTS.get(cell.cell.objective, cell.cell.objective) if apart else cell.cell.row
        for cell in everything
    }
    rows = list(dict.fromkeys(names.values()))
    points = {
        panel: {
            row: _points(experiment, [c for c in cells if names[c] == row], ids) for row in rows
        }
        for panel, cells in plotted.items()
    }
    ys = [
        value
        for series in points.values()
        for made in series.values()
        for point in made
        for value in (point.y, point.low, point.high)
    ]
    ys += [cell.cell.published for cell in everything if cell.cell.published is not None]
    plots = []
    for panel, cells in plotted.items():
        if not any(points[panel].values()):
            continue
        xs = [
            float(cell.cell.column) for cell in cells
        ]  # of all cells, so that the axis is whole while runs are missing
        title = f"{experiment.title}{f', {panel}' if panel else ''}"
        papers = {
            row: [
                (float(c.cell.column), c.cell.published)
                for c in cells
                if names[c] == row and c.cell.published is not None
            ]
            for row in rows
        }
        plot = svg.lines(points[panel], label=f"{title}: {', '.join(rows)}", x_label=experiment.x, y_label="test accuracy, %",
                         log_x=min(xs) > 0 and max(xs) / min(xs) >= LOG_FROM, xs=xs, ys=ys, beside=papers)  # fmt: skip
        plots.append(_figure(plot, panel))
    if not plots:
        return None
    signs = {
        "Dotted: the paper's numbers.": any(cell.cell.published is not None for cell in everything),
        "Hollow: runs are missing.": any(cell.keys and not cell.complete for cell in everything),
    }
    said = " ".join(text for text, true in signs.items() if true)
    note = h("p", said, class_="small") if said else None
    return h("div", legend(rows, "line"), note, _grid(plots), class_="figure")


def _by_network(panels: Mapping[str, Sequence[CellResult]]) -> dict[str, list[CellResult]]:
    """Panels of several networks, each network by itself: all their lines, and the paper's, lie on each other in one plot."""
    found: dict[str, list[CellResult]] = {}
    for panel, cells in panels.items():
        for cell in cells:
            found.setdefault(f"{panel}, {NAMES[cell.cell.backbone]}", []).append(cell)
    return found


def _grid(figures: Sequence[Html]) -> Html:
    """Figures beside each other; by threes where that leaves none alone."""
    return h(
        "div",
        figures,
        class_="plots few"
        if len(figures) == 1
        else "plots three"
        if len(figures) % 3 == 0
        else "plots",
    )


def bar_plot(
    experiment: Experiment, cells: Sequence[CellResult], ids: Mapping[CellResult, str]
) -> Html | None:
    """Grouped bars: a group for every column, a bar for every row."""
    rows, columns = (
        list(dict.fromkeys(getattr(cell.cell, name) for cell in cells))
        for name in ("row", "column")
    )
    series = {
        row: _points(experiment, [c for c in cells if c.cell.row == row], ids, columns)
        for row in rows
    }
    if not any(series.values()):
        return None
    plot = svg.bars(
        series,
        columns,
        label=f"{experiment.title}: {', '.join(rows)}",
        x_label=experiment.x,
        y_label="test accuracy, %",
    )
    return h("div", legend(rows, "bar"), _grid([_figure(plot, "")]), class_="figure")


def maps(cells: Sequence[CellResult], ids: Mapping[CellResult, str], source: Source) -> Html | None:
    """The nodes in the plane, coloured by class."""
    figures, classes = [], 0
    for cell in cells:
        record = next(
            (found for key in cell.keys if "positions" in (found := source.records[key])), None
        )
        if record is None:
            continue
        labels = record["labels"]
        classes = max(classes, max(labels, default=0) + 1)
        names = [f"class {i}" for i in range(max(labels, default=0) + 1)]
        plot = svg.scatter(
            record["positions"],
            labels,
            names,
            label=f"{count(len(labels), 'node')} in the plane: {cell.cell.row}",
        )
        score = record.get("test_accuracy")
        note = "" if score is None else f", test accuracy {number(100 * score, 1)}%"
        button = h("button", f"{cell.cell.row}{note}", popovertarget=ids[cell], class_="open")
        figures.append(h("figure", plot, h("figcaption", button)))
    if not figures:
        return None
    return h(
        "div",
        legend([f"class {i}" for i in range(classes)], "dot"),
        _grid(figures),
        class_="figure",
    )


def _points(
    experiment: Experiment,
    cells: Sequence[CellResult],
    ids: Mapping[CellResult, str],
    columns: Sequence[str] | None = None,
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
            tip += f", paper {printed(experiment, cell)}"
        x = float(cell.cell.column) if columns is None else float(columns.index(cell.cell.column))
        made.append(svg.Point(x, found.mean, low, high, tip, ids[cell], hollow=not cell.complete))
    return made


def _figure(plot: Html, name: str) -> Html:
    return h("figure", h("figcaption", name) if name else None, plot)


def legend(names: Sequence[str], kind: str) -> Html:
    """What the signs mean; the script makes the entries buttons that pick one series out."""
    return h(
        "ul",
        [h("li", svg.swatch(i, kind), name, data_series=i) for i, name in enumerate(names)],
        class_="legend",
    )
