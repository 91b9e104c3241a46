"""The page of a fit: what it says is what was measured, and in a real browser it is silent, alone and readable."""

from __future__ import annotations

import base64
import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import everynode as en
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary, ScoredPart
from everynode.evaluation.quality import quality
from everynode.graph import Graph
from everynode.io.assign_splits import share_out
from everynode.report.fit_page import page

#: A name that must be shown as it is.
ODD = "<b>x</b>&\"'</script><!--"
SECTIONS = (
    "quality",
    "classes",
    "probabilities",
    "uncertain",
    "disagreements",
    "map",
    "data",
    "training",
    "again",
)
QUICK = {"objective": "mi+tv", "epochs": 30, "hidden_channels": 8, "verbose": False}


def graph_of(n: int = 200, seed: int = 0) -> Graph:
    """Three teams, one with an odd name, half of the labels missing; one node has an odd name too."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    names = np.array(["red", "blue", ODD])[labels]
    known = rng.random(n) < 0.5
    people = {
        "id": [ODD if i == 7 else f"p{i}" for i in range(n)],
        "x": (labels + rng.normal(size=n)).tolist(),
        ODD: [str(rng.choice(["a", "b"])) for _ in range(n)],
        "team": [str(name) if k else None for name, k in zip(names, known, strict=True)],
    }
    ends = [
        (a, int(rng.choice(np.flatnonzero(labels == labels[a]))))
        for a in range(n)
        for _ in range(2)
    ]
    links = {
        "source": [people["id"][a] for a, _ in ends],
        "target": [people["id"][b] for _, b in ends],
    }
    return en.read(people, links, label="team", name=ODD)


def fit_of(graph: Graph, **options: object) -> FitSummary:
    shared, said = share_out(graph)
    model = NodeClassifier(**QUICK | {"calibrate": True, **options}).fit(shared)
    return FitSummary.of(model, shared, said)


def page_of(fit: FitSummary) -> str:
    return page(fit, command=f"everynode fit --nodes {ODD}")


@pytest.fixture(scope="module")
def fit() -> FitSummary:
    return fit_of(graph_of())


@pytest.fixture(scope="module")
def text(fit: FitSummary) -> str:
    return page_of(fit)


def test_the_same_fit_gives_the_same_text(fit, text):
    assert page_of(fit) == text
    assert len(text) < 200_000
    assert ODD not in text


def test_uncertain_nodes_and_disagreements_are_those_of_the_predictions(fit):
    found = fit.predictions
    uncertain = fit.uncertain(10)
    unlabelled = [i for i, name in enumerate(found.given) if name is None]
    assert all(i in unlabelled for i in uncertain)
    assert found.probability[uncertain].max() <= np.sort(found.probability[unlabelled])[10]
    wrong = [
        i
        for i in range(200)
        if found.given[i] is not None and found.classes[found.predicted[i]] != found.given[i]
    ]
    assert sorted(fit.disagreements().tolist()) == wrong
    assert (np.diff(found.probability[fit.disagreements()]) <= 0).all()


def test_the_map_is_deterministic_and_of_a_sample(fit, monkeypatch):
    nodes, places = fit.map()
    assert nodes.tolist() == list(range(200))
    assert np.isfinite(places).all()
    assert (fit.map()[1] == places).all()
    monkeypatch.setattr("everynode.evaluation.fit_summary.MAP_NODES", 50)
    some = fit.map()[0]
    assert len(some) == len(set(some.tolist())) == 50
    assert (fit.map()[0] == some).all()


def test_without_a_temperature_and_without_a_test_it_says_so(fit):
    shared, said = share_out(graph_of(90), test_share=0)
    model = NodeClassifier(**QUICK, calibrate=False).fit(shared)
    made = FitSummary.of(model, shared, said)
    text = page(made)
    assert "too good for new nodes" in text
    assert "--no-calibrate" in text
    assert list(made.quality) == ["validation"]
    assert list(made.reliability()) == [""]


def test_with_few_labels_validation_is_what_networks_say_that_did_not_learn_them(fit):
    shared, said = share_out(graph_of(90), test_share=0)
    model = NodeClassifier(**QUICK).fit(shared)
    made = FitSummary.of(model, shared, said)
    truth = shared.labels[model.held_out_.nodes]
    right = (model.held_out_.log_probabilities.argmax(1) == truth).double().mean().item()
    assert made.quality["validation"]["accuracy"].value == pytest.approx(right)
    assert len(made.parts["validation"].nodes) == len(shared.nodes("train"))
    assert "held out once, in 3 folds" in page(made)


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
    assert [value for value, _ in shown] == ["100.0", "100.0", "100.0", "100.0", "0.069", "6.7"]
    assert [between for _, between in shown[-2:]] == ["–", "–"]
    assert all(re.fullmatch(r"[5-8]\d\.\d to 100\.0", between) for _, between in shown[:4])


def test_a_race_is_shown_by_what_decided_it():
    made = fit_of(graph_of(90), objective="auto", monitor="macro_f1", epochs=5)
    raced = page(made).split("Several settings started")[1].split("</table>")[0]
    assert re.search(r"<th[^>]*>validation macro_f1\b", raced)
    assert "accuracy" not in raced
    for standing in made.model.standings_.values():
        assert f"<td>{100 * standing.val_score:.1f}%<" in raced


def test_a_graph_from_anywhere_has_a_page(tmp_path):
    """No files, no ids, integer classes, one hidden value everywhere: nothing to draw a map of."""
    graph = Graph.from_arrays(np.ones((12, 2)), [[0, 1], [1, 2]], [0, 1] * 6)
    shared, said = share_out(graph)
    made = FitSummary.of(NodeClassifier(**QUICK).fit(shared), shared, said)
    assert "12 nodes" in page(made) or "12" in page(made)


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def url(text: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text)
    return path.as_uri()


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
    assert len(browser.all("#disagreements tbody tr")) == min(30, len(fit.disagreements()))
    assert "everynode fit --nodes" in browser.one("#again .command").text
    assert len(browser.all("nav a")) == len(SECTIONS)


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
