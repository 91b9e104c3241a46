"""The text of a cell, for the terminal and the page."""

from __future__ import annotations

from everynode.experiments.analysis import CellResult
from everynode.experiments.experiment import Experiment
from everynode.report.cell import digits_of, printed
from everynode.report.text import number


def mean_text(experiment: Experiment, cell: CellResult) -> str:
    """Return mean and standard deviation, or the reason for a missing number."""
    if cell.summary is None:
        return "diverged" if cell.diverged else "there" if cell.keys else "-"
    digits = digits_of(experiment, cell)
    spread = f" ± {number(cell.summary.std, digits)}" if cell.summary.count > 1 else ""
    return f"{number(cell.summary.mean, digits)}{spread}"


def gain_text(experiment: Experiment, cell: CellResult, star: str = "*") -> str:
    """Return the gain with a star if it is significant; empty without several pairs."""
    if cell.gain is None or cell.gain.count < 2:
        return ""
    gain = number(cell.gain.mean, digits_of(experiment, cell), sign=True)
    pairs = f" on {cell.gain.count} pairs" if cell.gain.count < len(cell.keys) else ""
    return f"gain {gain}{star if cell.significant else ''}{pairs}"


def notes(cell: CellResult) -> list[str]:
    """Return remarks about the objective, missing runs and diverged runs."""
    lines = [cell.remark] if cell.remark else []
    if not cell.complete:
        lines.append(f"{len(cell.keys)} of {cell.planned} runs")
    if cell.diverged:
        lines.append(f"{cell.diverged} diverged")
    return lines


def cell_lines(experiment: Experiment, cell: CellResult | None) -> list[str]:
    """Return the lines of a cell for the terminal."""
    if cell is None:
        return ["-"]
    lines = [mean_text(experiment, cell)]
    if cell.summary is None and not cell.cell.reason:
        return lines
    if cell.cell.published is not None:
        verdict = f": {cell.verdict.replace('-', '−')}" if cell.verdict else ""
        lines.append(f"paper {printed(experiment, cell)}{verdict}")
    if cell.cell.reason:
        return [*lines, cell.cell.reason]
    if cell.cell.mark:
        lines.append(cell.cell.mark)
    lines += [gain] if (gain := gain_text(experiment, cell, star=" *")) else []
    return lines + notes(cell)
