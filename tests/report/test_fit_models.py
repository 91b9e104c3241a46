"""The leaderboard on the page of a fit."""

from __future__ import annotations

import pytest

from everynode.report.fit_models import models
from everynode.report.fit_page import page


def test_every_candidate_has_a_row(portfolio):
    drawn = models(portfolio)
    for row in portfolio.model.leaderboard_:
        assert f'<th scope="row">{row.candidate}<' in drawn
    assert "form the ensemble" in drawn
    assert str(portfolio.model.graph_gain_) in drawn


@pytest.fixture
def url(portfolio, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page(portfolio))
    return path.as_uri()


@pytest.mark.long
def test_the_table_of_candidates_fits_the_page(browser):
    browser.open(1280, dark=False)
    box = browser.one("#models .scroll")
    assert browser.run("return arguments[0].scrollWidth <= arguments[0].clientWidth + 1", box)


def test_a_single_model_has_no_leaderboard(fit):
    assert models(fit) is None
    assert "What was tried" not in page(fit)


def test_the_page_has_the_table_and_the_sentence(portfolio):
    drawn = page(portfolio)
    assert "What was tried" in drawn
    assert drawn.count(str(portfolio.model.graph_gain_)) == 2
