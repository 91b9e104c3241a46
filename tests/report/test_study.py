"""The picture of a study: every trial is in it, and the best so far never falls."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from optuna.trial import TrialState

from everynode.report.study import figure
from everynode.selection.study import Study
from everynode.selection.study_storage import Journal
from everynode.settings import Settings


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(
        tmp_path / "a.journal", Study("a&b", "", "public", "gcn", "ce", "seeds", 3, Settings(), {})
    )


def add(journal: Journal, *values: float, state: TrialState | None = None) -> None:
    for value in values:
        trial = journal.optuna.ask()
        trial.set_user_attr("losses", [1.0])
        trial.report(value, 0)
        journal.optuna.tell(trial, None if state else value, state=state)


def test_every_trial_is_drawn_and_the_best_so_far_never_falls(journal):
    add(journal, 0.6, 0.7, 0.65, 0.8, 0.75)
    add(journal, 0.5, 0.9, state=TrialState.PRUNED)
    text = figure(journal, {"lr": 0.7, "normalize_features": 0.3})
    ElementTree.fromstring(text)
    assert (text.count('class="complete"'), text.count('class="pruned"')) == (5, 2)
    assert [float(value) for value in re.findall(r"<title>trial \d+: ([\d.]+) %", text)] == [
        60,
        70,
        65,
        80,
        75,
        50,
        90,
    ]
    heights = [
        float(y)
        for y in re.findall(r"[ V]([\d.]+)", re.search(r'd="([^"]+)" class="best"', text)[1])
    ]
    assert len(heights) == 3, "60, 70 and 80: one that was given up is never the best"
    assert heights == sorted(heights, reverse=True), "up is less"
    places = {float(y) for y in re.findall(r'cy="([\d.]+)"', text)}
    assert set(heights) <= places


@pytest.mark.parametrize(
    ("monitor", "quantity"),
    [("accuracy", "validation accuracy, %"), ("macro_f1", "validation macro f1, %"),
     ("loss", "exp(-validation loss), %")],
)  # fmt: skip
def test_the_plot_names_the_monitored_metric(tmp_path, monitor, quantity):
    base = Settings(monitor=monitor)
    study = Study("a", "", "public", "gcn", "ce", "seeds", 3, base, {})
    journal = Journal(tmp_path / "a.journal", study)
    add(journal, 0.6, 0.7)
    assert f"mean {quantity}: complete trials" in figure(journal, {})


def test_the_longest_bar_is_the_most_important(journal):
    add(journal, 0.6, 0.7)
    text = figure(journal, {"normalize_features": 0.25, "lr": 0.75, "dropout": 0.0})
    widths = [
        float(width) for width in re.findall(r'width="([\d.]+)" height="\d+" class="bar"', text)
    ]
    assert widths[1] == pytest.approx(widths[0] / 3, abs=0.1)
    assert widths[2] == 0
    assert text.index("lr") < text.index(">normalize_features") < text.index(">dropout")


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [0.0] * 3 + [0.8] * 20])
def test_flat_short_and_failed_studies_can_be_drawn(journal, values):
    add(journal, *values)
    text = figure(journal, {})
    root = ElementTree.fromstring(text)
    assert "nan" not in text
    assert root.get("aria-label").startswith("a&b, gcn, ce"), "escaped"
    floor = max(float(y) for y in re.findall(r'cy="([\d.]+)"', text))
    assert floor <= float(root.get("height"))
