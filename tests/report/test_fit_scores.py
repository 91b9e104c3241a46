"""The scores on the page of a fit: no false certainty, a dash for no interval."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import torch

from everynode.evaluation.fit_summary import ScoredPart
from everynode.evaluation.metrics import METRICS
from everynode.evaluation.quality import quality
from everynode.report.fit_page import page
from everynode.report.fit_scores import classes, probabilities, scores


def test_answers_that_are_all_right_are_not_shown_as_certain_and_what_has_no_interval_has_a_dash(
    fit,
):
    nodes = np.arange(14)
    sure = ScoredPart(
        "test",
        nodes,
        nodes % 3,
        torch.log(torch.eye(3, dtype=torch.float64)[nodes % 3] * 0.9 + 0.1 / 3),
        1.0,
    )
    made = dataclasses.replace(
        fit, parts={"test": sure}, quality={"test": quality(sure.probabilities, sure.labels)}
    )
    scores = page(made).split('id="quality"')[1].split("</table>")[0]
    shown = re.findall(r"<b>([^<]*)</b><span class=\"between\">([^<]*)</span>", scores)
    rows = dict(zip(METRICS, shown, strict=True))
    for name, (value, between) in rows.items():
        if METRICS[name].percent and METRICS[name].higher_is_better:
            assert value == "100.0"
            assert re.fullmatch(r"[5-8]\d\.\d to 100\.0", between)
        else:
            assert between == "–"
    assert (rows["nll"][0], rows["ece"][0]) == ("0.069", "6.7")


def test_without_a_temperature_it_says_so(uncalibrated, fit):
    assert "as trained, without a temperature" in probabilities(uncalibrated)
    assert "with temperature" in probabilities(fit)


def test_out_of_fold_predictions_are_explained(uncalibrated):
    assert "networks that did not train on it" in scores(uncalibrated)


def test_the_page_of_many_classes_grows_with_the_classes_listed(fit):
    def classes_of(k):
        nodes = np.arange(2 * k)
        wrong = np.where(nodes < k, nodes % k, (nodes + 1) % k)
        part = ScoredPart("test", nodes, nodes % k, torch.log(torch.eye(k)[wrong] + 1e-3), 1.0)
        names = tuple(f"class {i}" for i in range(k))
        predictions = dataclasses.replace(fit.predictions, classes=names)
        return str(classes(dataclasses.replace(fit, parts={"test": part}, predictions=predictions)))

    one, two = classes_of(400), classes_of(800)
    assert len(two) < 1.1 * len(one)
    assert "The 100 largest of 800 classes on the test nodes" in two
    assert "The most frequent mistakes on the test nodes" in two
    assert "Confusion matrix" in classes_of(50)
