"""The first screen: the headline, the alerts and the baselines of the fit."""

from __future__ import annotations

import dataclasses
import html
import re

from everynode.evaluation.alerts import Alert
from everynode.evaluation.headline import weakest_class
from everynode.evaluation.intervals import Score
from everynode.io.summary import Leak
from everynode.report.fit_head import first_screen


def test_it_shows_the_headline_the_majority_and_the_weakest_class(fit):
    text = re.sub("</?code>", "", html.unescape(first_screen(fit)))
    assert fit.learned in text
    assert all(sentence in text for sentence in fit.headline)
    assert fit.baselines[0].name in text
    assert ("weakest class" in text) is (weakest_class(fit).right < weakest_class(fit).true)
    assert "temperature" not in text
    assert all(alert.text in text for alert in fit.alerts)


def test_a_leak_is_the_lead(fit):
    summary = dataclasses.replace(fit.graph.summary, leaks=(Leak("stage", "determines"),))
    leaking = dataclasses.replace(fit, graph=dataclasses.replace(fit.graph, summary=summary))
    leaking.__dict__["without_leaks"] = Score(0.847, 0.8, 0.9)
    text = html.unescape(first_screen(leaking))
    assert "<p class=\"lead distrust\">Not to be trusted: label leakage in 'stage'." in text
    assert "84.7%" in text
    assert text.index("Not to be trusted") < text.index("The baseline, always")
    assert '<li class="error">' in text
    assert "<code>--features 'all,-stage'</code>." in text


def test_hints_stand_below_the_warnings_as_plain_text(fit):
    hint = Alert("hint", "unused_weight", "Column 'w' is not used.", "--weight w uses it.")
    warned = Alert("warning", "drift", "The labeled nodes differ.", "Test at random (--split).")
    hinted = dataclasses.replace(fit)
    hinted.__dict__["alerts"] = (warned, hint)
    text = html.unescape(first_screen(hinted))
    boxes = text[text.index('<ul class="alerts"') : text.index("</ul>")]
    assert warned.text in boxes
    assert hint.text not in boxes
    assert "<p>Hint: Column 'w' is not used. <code>--weight w</code> uses it.</p>" in text
