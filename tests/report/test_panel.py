"""The panel behind a number: curves, confusion, settings, versions."""

from __future__ import annotations

import re

from everynode.experiments.experiment import experiments
from everynode.report.page import page


def test_runs_from_an_export_say_that_they_have_no_curves(plans, make_up):
    semi = experiments()["semi-supervised"]
    (cell, runs), *_ = plans[semi].items()
    made = page({semi: {cell: runs}}, "paper", make_up(runs).records, lambda key: {})[0]
    assert "No training curves: these runs come from an export" in made


def test_the_best_test_epoch_is_called_a_diagnostic(text):
    assert text.count("Diagnostic, not a result:") > 100
    assert text.count("best test epoch (diagnostic)") >= 8
    assert "oracle" not in text.lower()


def test_curves_confusion_terms_settings_and_versions_stand_behind_a_number(text):
    panel = text.split('id="depth-6"')[1].split("<div popover")[0]
    for title in (
        "Training curves",
        "At the selected epoch",
        "Confusion matrix",
        "Runs",
        "Settings",
        "Versions",
        "Run it again",
    ):
        assert f"<h4>{title}</h4>" in panel
    assert re.findall(r'data-name="([^"]+)"', panel) == [
        "CE",
        "MI",
        "TV",
        "CVG",
        "total",
        "validation loss",
        "validation accuracy",
    ]
    assert all(d.count(" ") <= 300 for d in re.findall(r' d="([^"]+)"', panel))
    assert "tv_gate = raw" in panel
    assert "torch 2." in panel
