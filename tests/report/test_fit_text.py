"""The result of a fit as text for the terminal."""

from __future__ import annotations

from pathlib import Path

from everynode.report.fit_text import fit_lines


def test_the_scores_the_caution_and_the_files_are_there(fit):
    summary = fit.to_dict()
    lines = list(fit_lines(summary, Path("out")))
    accuracy, low, high = (f"{100 * x:.1f}" for x in fit.quality["test"]["accuracy"])
    assert any(f"{accuracy}% right, 95% interval {low} to {high}" in line for line in lines)
    assert f"  {summary['caution']}" in lines
    assert str(Path("out/predictions.csv")) in lines[-3]


def test_candidates_are_listed_by_the_metric_that_decided(raced):
    text = "\n".join(fit_lines(raced.to_dict(), Path("out")))
    assert "validation macro_f1 of the candidates: " in text
    assert all(name in text for name in raced.model.standings_)
