"""Tables of experiments and comparisons for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rich.markup import escape
from rich.table import Table

from everynode.experiments.analysis import ExperimentResult
from everynode.experiments.compare import BASELINE, Comparison
from everynode.experiments.run_spec import short
from everynode.objective_names import remark
from everynode.report.cell_text import cell_lines
from everynode.report.text import count, number
from everynode.settings import Settings


def experiment_tables(result: ExperimentResult) -> Iterator[Table]:
    """Yield a table for every panel of an experiment, with the published numbers."""
    experiment = result.experiment
    for panel, cells in result.panels().items():
        origin = f"{experiment.reference}, preset {result.preset}, over {experiment.over}"
        title = f"{experiment.title}{f', {panel}' if panel else ''} ({origin})"
        table = Table(title=escape(title), title_justify="left")
        columns = list(dict.fromkeys(cell.cell.column for cell in cells))
        table.add_column("")
        for column in columns:
            table.add_column(column, justify="right")
        by_place = {(cell.cell.row, cell.cell.column): cell for cell in cells}
        for row in dict.fromkeys(cell.cell.row for cell in cells):
            texts = (cell_lines(experiment, by_place.get((row, column))) for column in columns)
            table.add_row(row, *("\n".join(lines) for lines in texts))
        yield table


def comparison_table(result: Comparison, settings: Mapping[str, Settings], where: str) -> Table:
    """Return the summary of a comparison.

    Parameters
    ----------
    result : Comparison
        The comparison.
    settings : mapping of str to Settings
        The settings of each objective.
    where : str
        Graph, model and split, for the title.
    """
    pairs = count(result.gain.count + result.diverged, result.unit)
    pairs = f"{result.gain.count} of {pairs}" if result.diverged else pairs
    table = Table(title=escape(f"{where}, {pairs}: accuracy in %"), title_justify="left")
    table.add_column("objective")
    for heading in ("test mean", "std", "95% interval", "validation mean", "s per run"):
        table.add_column(heading, justify="right")
    depths_differ = len({one.num_layers for one in settings.values()}) > 1
    for objective, test in result.test.items():
        note = remark(settings[objective], objective)
        depth = f", {settings[objective].num_layers} layers" if depths_differ else ""
        name = "cross-entropy" if objective == BASELINE else objective
        table.add_row(
            f"{name}{f' ({note})' if note else ''}{depth}",
            short(test.mean),
            short(test.std),
            "-" if math.isnan(test.low) else f"{short(test.low)} to {short(test.high)}",
            short(result.val[objective].mean),
            number(result.seconds(objective), 1),
        )
    return table


def gain_sentence(result: Comparison, objective: str) -> str:
    """Return the paired gain of a comparison as a sentence."""
    gain = result.gain
    text = f"{objective} minus cross-entropy, paired: {100 * gain.mean:+.2f} points"
    if gain.count < 2:
        return f"{text}; one {result.unit} gives no interval: use more"
    p_value = "" if math.isnan(gain.p_value) else f" (p = {gain.p_value:.2g})"
    return f"{text}, 95% interval {100 * gain.low:+.2f} to {100 * gain.high:+.2f}{p_value}"
