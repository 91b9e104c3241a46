"""The text of a cell for the terminal: mean, gain, notes."""

from __future__ import annotations

from everynode.experiments.analysis import analyze
from everynode.experiments.experiment import experiments
from everynode.report.cell_text import cell_lines, gain_text, mean_text, notes


def test_a_complete_cell_has_a_mean_a_verdict_and_a_gain(plans, make_up):
    semi = experiments()["semi-supervised"]
    runs = make_up(run for own in plans[semi].values() for run in own)
    result = analyze(semi, "paper", plans[semi], runs.records)
    enc = next(cell for cell in result.cells if cell.cell.row == "ENC-GCN")
    assert mean_text(semi, enc) == f"{enc.summary.mean:.1f} ± {enc.summary.std:.1f}"
    assert gain_text(semi, enc).startswith("gain ")
    assert notes(enc) == ([enc.remark] if enc.remark else [])
    assert any(line.startswith("paper ") for line in cell_lines(semi, enc))


def test_missing_and_diverged_runs_are_noted(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, own), *_ = plans[semi].items()
    result = analyze(semi, "paper", {cell: own}, make_up(own[:3], lambda run: True).records)
    assert notes(result.cells[0])[-2:] == ["3 of 10 runs", "3 diverged"]
    assert cell_lines(semi, result.cells[0])[0] == "diverged"
    assert cell_lines(semi, None) == ["-"]
