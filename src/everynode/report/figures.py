"""The figures of an experiment: line plots, bars and maps of its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everynode.experiments.analysis import CellResult
from everynode.experiments.experiment import NAMES, Experiment
from everynode.report import svg
from everynode.report.cell import digits_of, limits, printed
from everynode.report.cell_text import mean_text
from everynode.report.html import Child, Html, h, small
from everynode.report.scatter import scatter
from everynode.report.source import Source
from everynode.report.text import CANDIDATES, count, interval, percent

#: From this ratio of the largest to the smallest x on, an axis is logarithmic.
LOG_FROM = 16


def figure(names: Sequence[str], sign: str, plots: Sequence[Html], note: Child = None) -> Html:
    """Build plots side by side under one legend: three a row, unless one would stand alone."""
    size = "few" if len(plots) == 1 else "three" if len(plots) % 3 == 0 else ""
    grid = h("div", plots, class_=f"plots {size}".strip())
    return h("div", svg.legend(names, sign), note, grid, class_="figure")


def line_plots(
    experiment: Experiment,
    panels: Mapping[str, Sequence[CellResult]],
    ids: Mapping[CellResult, str],
) -> Html | None:
    """Draw one plot per panel; all of them share their signs and their y axis."""
    several = any(len({cell.cell.backbone for cell in cells}) > 1 for cells in panels.values())
    plotted = _by_network(panels) if several else panels
    everything = [cell for cells in panels.values() for cell in cells]
    names = {
        cell: CANDIDATES.get(cell.cell.objective, cell.cell.objective) if several else cell.cell.row
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
        for own in series.values()
        for point in own
        for value in (point.y, point.low, point.high)
    ]
    ys += [cell.cell.published for cell in everything if cell.cell.published is not None]
    plots = []
    for panel, cells in plotted.items():
        if not any(points[panel].values()):
            continue
        xs = [float(cell.cell.column) for cell in cells]  # also of cells without runs
        title = f"{experiment.title}{f', {panel}' if panel else ''}"
        plot = svg.lines(
            points[panel],
            label=f"{title}: {', '.join(rows)}",
            x_label=experiment.x,
            y_label="test accuracy, %",
            log_x=min(xs) > 0 and max(xs) / min(xs) >= LOG_FROM,
            xs=xs,
            ys=ys,
            beside={row: _published([c for c in cells if names[c] == row]) for row in rows},
        )
        plots.append(_captioned(plot, panel))
    return figure(rows, "line", plots, _signs(everything)) if plots else None


def _signs(cells: Sequence[CellResult]) -> Html | None:
    """Explain the signs of a line plot that occur."""
    used = {
        "Dotted: the paper's numbers.": any(cell.cell.published is not None for cell in cells),
        "Hollow: runs are missing.": any(cell.keys and not cell.complete for cell in cells),
    }
    note = " ".join(text for text, occurs in used.items() if occurs)
    return small(note) if note else None


def _published(cells: Sequence[CellResult]) -> list[tuple[float, float]]:
    """Return the paper's line: x and y."""
    return [
        (float(cell.cell.column), cell.cell.published)
        for cell in cells
        if cell.cell.published is not None
    ]


def _by_network(panels: Mapping[str, Sequence[CellResult]]) -> dict[str, list[CellResult]]:
    """Split panels by network: in one plot, their lines would overlap."""
    split: dict[str, list[CellResult]] = {}
    for panel, cells in panels.items():
        for cell in cells:
            split.setdefault(f"{panel}, {NAMES[cell.cell.backbone]}", []).append(cell)
    return split


def bar_plot(
    experiment: Experiment, cells: Sequence[CellResult], ids: Mapping[CellResult, str]
) -> Html | None:
    """Draw grouped bars: a group per column, a bar per row."""
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
    return figure(rows, "bar", [_captioned(plot, "")])


def maps(cells: Sequence[CellResult], ids: Mapping[CellResult, str], source: Source) -> Html | None:
    """Draw the nodes in the plane, colored by class."""
    figures, classes = [], 0
    for cell in cells:
        records = [source.records[key] for key in cell.keys]
        record = next((record for record in records if "positions" in record), None)
        if record is None:
            continue
        labels = record["labels"]
        own = max(labels, default=0) + 1
        classes = max(classes, own)
        plot = scatter(
            record["positions"],
            labels,
            [f"class {i}" for i in range(own)],
            label=f"{count(len(labels), 'node')} in the plane: {cell.cell.row}",
        )
        accuracy = record.get("test_accuracy")
        note = "" if accuracy is None else f", test accuracy {percent(accuracy)}"
        button = h("button", f"{cell.cell.row}{note}", popovertarget=ids[cell], class_="open")
        figures.append(h("figure", plot, h("figcaption", button)))
    return figure([f"class {i}" for i in range(classes)], "dot", figures) if figures else None


def _points(
    experiment: Experiment,
    cells: Sequence[CellResult],
    ids: Mapping[CellResult, str],
    columns: Sequence[str] | None = None,
) -> list[svg.Point]:
    """Return the marks of some cells; x is the column as a number, or its index in ``columns``."""
    points = []
    for cell in cells:
        summary = cell.summary
        if summary is None:
            continue
        digits = digits_of(experiment, cell)
        low, high = limits(summary, cell)
        tip = mean_text(experiment, cell)
        if summary.count > 1:
            tip += f" ({interval(low, high, digits)})"
        if not cell.complete:
            tip += f", {len(cell.keys)} of {cell.planned} runs"
        if cell.cell.published is not None:
            tip += f", paper {printed(experiment, cell)}"
        x = float(cell.cell.column) if columns is None else float(columns.index(cell.cell.column))
        points.append(
            svg.Point(x, summary.mean, low, high, tip, ids[cell], hollow=not cell.complete)
        )
    return points


def _captioned(plot: Html, caption: str) -> Html:
    return h("figure", h("figcaption", caption) if caption else None, plot)
