"""The page of a fit: what it says is what was measured, and in a real browser it is silent, alone and readable."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest

from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.graph import Graph
from everynode.io.assign_splits import assign_splits
from everynode.report.fit_page import page

#: A name that must be escaped.
ODD = "<b>x</b>&\"'</script><!--"
SECTIONS = (
    "uncertain",
    "label-next",
    "suspicious",
    "quality",
    "classes",
    "slices",
    "probabilities",
    "disagreements",
    "map",
    "data",
    "training",
    "again",
)
QUICK = {
    "objective": "ce",
    "settings": {"epochs": 5, "hidden_channels": 8},
    "verbose": False,
}


def page_of(fit: FitSummary) -> str:
    return page(fit, command=f"everynode fit --nodes {ODD}")


@pytest.fixture(scope="module")
def text(fit: FitSummary) -> str:
    return page_of(fit)


def test_the_same_fit_gives_the_same_text(fit, text):
    assert page_of(fit) == text
    assert len(text) < 200_000
    assert ODD not in text


def test_a_graph_from_anywhere_has_a_page(tmp_path):
    """No files, no ids, integer classes, one hidden value everywhere: nothing to draw a map of."""
    graph = Graph.from_arrays(np.ones((12, 2)), [[0, 1], [1, 2]], [0, 1] * 6)
    shared, said = assign_splits(graph)
    made = FitSummary.of(NodeClassifier(**QUICK).fit(shared), shared, said)
    assert "12 nodes" in page(made) or "12" in page(made)


def test_it_says_what_the_scores_are_worth(uncalibrated):
    text = page(uncalibrated)
    assert "too good for new nodes" in text
    assert "held out once, in 3 folds" in text


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def url(text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text)
    return path.as_uri()


@pytest.mark.long
def test_every_part_is_shown(browser, fit):
    browser.open()
    assert browser.one("h1").text == ODD
    for name in SECTIONS:
        assert browser.one(f"#{name} h2").is_displayed()
    assert len(browser.all("#map .plot")) == 2
    assert len(browser.all("#training .plot")) == 3  # the terms, validation's loss and accuracy
    assert all(plot.size["height"] > 80 for plot in browser.all(".plot"))
    test = fit.quality["test"]["accuracy"]
    row = browser.one("#quality tbody tr").text
    assert f"{100 * test.value:.1f}" in row
    assert f"{100 * test.low:.1f} to {100 * test.high:.1f}" in row
    table = [int(cell.text) for cell in browser.all("#classes .confusion td")]
    assert sum(table) == len(fit.predictions.nodes("test"))
    assert len(browser.all("#uncertain tbody tr")) == 20
    reasons = [cell.text for cell in browser.all("#uncertain tbody td.words")]
    assert all(reasons[:10])
    assert not any(reasons[10:])
    slices = [row.text for row in browser.all("#slices tbody th")]
    assert len(slices) == len(fit.slices)
    places = [browser.one(f"#{name}").location["y"] for name in SECTIONS]
    assert places == sorted(places)  # what to look at comes before how it was made
    assert len(browser.all("#disagreements tbody tr")) == min(30, len(fit.disagreements()))
    assert "everynode fit --nodes" in browser.one("#again .command").text
    assert len(browser.all("nav a")) == len(SECTIONS)


@pytest.mark.long
@pytest.mark.parametrize(("width", "dark"), [(380, True), (1280, False)])
def test_it_never_scrolls_sideways(browser, width, dark):
    browser.open(width, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") == width
    colour = [
        float(v)
        for v in re.findall(
            r"\d+", browser.run("return getComputedStyle(document.body).backgroundColor")
        )
    ]
    assert (max(colour) < 60) is dark
    if width > 1000:  # tables of sentences wrap instead of scrolling inside their box
        for box in browser.all("#quality .scroll, #data .scroll, #training .scroll"):
            assert browser.run(
                "return arguments[0].scrollWidth <= arguments[0].clientWidth + 1", box
            )


@pytest.mark.long
def test_names_with_markup_are_shown_as_text(browser):
    browser.open()
    assert ODD in [cell.text for cell in browser.all("#classes tbody th")]
    assert (
        f"2 {ODD}" in " ".join(entry.text for entry in browser.all("#map .legend li"))
        or ODD in browser.one("#map .legend").text
    )
    assert ODD in browser.one("#data table").text
    assert not browser.run(
        "return [...document.querySelectorAll('b')].some(b => b.textContent === 'x')"
    )


@pytest.mark.long
def test_tables_sort_and_the_diagram_tells_its_values(browser):
    browser.open()
    head = browser.one("#uncertain thead th:nth-child(3) button")
    browser.show(head)
    for _ in range(2):
        head.click()
    values = [
        float(cell.get_attribute("data-v"))
        for cell in browser.all("#uncertain tbody td:nth-child(3)")
    ]
    assert values == sorted(values, reverse=True)
    plot = browser.one("#probabilities .plot")
    browser.show(plot)
    plot.send_keys("\ue014")  # the arrow to the right
    assert re.match(r"[\d.]+% sure\n.* of \d+ nodes? are right", browser.one("#tip").text)


@pytest.mark.long
def test_it_prints_and_needs_no_script(browser):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(dark=True)
        assert browser.one("#classes .confusion").is_displayed()
        assert browser.one("#map .plot").size["height"] > 80
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
