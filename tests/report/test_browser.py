"""The page in a real browser: silent, alone, readable narrow and wide, light and dark, on paper, and with the keyboard."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from everynode.experiments.experiment import experiments
from everynode.report.page import page

pytest.importorskip("selenium", reason="selenium is not installed: pip install '.[dev]'")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.long
ODD = "<b>x</b>&\"'</script><!--"
WIDTHS = (380, 1280)


@pytest.fixture(scope="module")
def url(plans, two_each, tmp_path_factory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(plans, "paper", two_each.records, two_each.curve)[0])
    return path.as_uri()


def test_every_table_and_figure_is_shown(browser, plans):
    browser.open()
    assert browser.one("h1").text == "Every Node Counts, run again"
    for experiment, plan in plans.items():
        tables, plots = (
            browser.all(f'[id="{experiment.id}"] > {part}')
            for part in (".scroll > .matrix", ".figure .plot")
        )
        panels, networks = (
            len({cell.panel for cell in plan}),
            len({(cell.panel, cell.backbone) for cell in plan}),
        )
        assert len(tables) == (panels if experiment.view == "table" else 0)
        assert (
            len(plots)
            == {
                "table": networks if experiment.x else 0,
                "lines": panels,
                "bars": 1,
                "maps": len(plan),
            }[experiment.view]
        )
        for element in (*tables, *plots):
            assert element.size["height"] > 80
    assert len(browser.all("nav a")) == len(plans) + 1  # and how to read it


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways(browser, width):
    browser.open(width)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.run("return document.documentElement.scrollWidth") == width
    for cell in ("odd-0", "depth-6", "datasets-0", "run-times-0", "tsne-1"):
        panel = browser.one(f"#{cell}")
        browser.run("arguments[0].showPopover()", panel)
        assert browser.run("return arguments[0].scrollWidth <= arguments[0].clientWidth + 1", panel)
        assert browser.run("return document.documentElement.scrollWidth") == width
    if width < 500:  # wide tables scroll inside their box, with the row's name in sight
        box = browser.one("#depth > .scroll")
        browser.run(
            "document.querySelectorAll('[popover]').forEach(p => p.matches(':popover-open') && p.hidePopover())"
        )
        browser.run("arguments[0].scrollLeft = 300", box)
        assert browser.run("return arguments[0].scrollLeft", box) == 300
        name = box.find_element(By.CSS_SELECTOR, "tbody th")
        assert browser.run("return arguments[0].getBoundingClientRect().left", name) < 30


def test_a_number_opens_its_runs_without_a_mouse_and_closes_again(browser, plans):
    browser.open()
    experiment = next(experiment for experiment in plans if experiment.id == "semi-supervised")
    button, panel = (
        browser.one('[popovertarget="semi-supervised-3"].cell'),
        browser.one("#semi-supervised-3"),
    )
    assert not panel.is_displayed()
    browser.show(button)
    button.send_keys(Keys.ENTER)
    assert panel.is_displayed()
    keys = [code.text for code in panel.find_elements(By.CSS_SELECTOR, ".key")]
    assert keys == [run.key[:12] for run in list(plans[experiment].values())[3][:2]]
    assert panel.find_element(By.CSS_SELECTOR, "h3").text == "ENC-GCN · cora"
    assert "Diagnostic, not a result" in panel.text
    assert (
        len(panel.find_elements(By.CSS_SELECTOR, ".plot")) == 3
    )  # the terms, validation's loss and accuracy
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not panel.is_displayed()
    browser.open(fragment="#semi-supervised-3")
    assert browser.one("#semi-supervised-3").is_displayed()


def test_tables_sort(browser):
    browser.open()
    table = browser.one("#heterophilic .matrix")
    browser.show(table)

    def means(column: int) -> list[float]:
        cells = table.find_elements(By.CSS_SELECTOR, f"tbody tr > :nth-child({column})")
        return [float(value) for cell in cells if (value := cell.get_attribute("data-v"))]

    names = [name.text for name in table.find_elements(By.CSS_SELECTOR, "tbody th")]
    for order, sign in (("ascending", 1), ("descending", -1)):
        head = table.find_element(By.CSS_SELECTOR, "thead th:nth-child(3)")
        head.find_element(By.CSS_SELECTOR, "button").click()
        assert head.get_attribute("aria-sort") == order
        assert means(3) == sorted(means(3), key=lambda value, sign=sign: sign * value)
    head.find_element(By.CSS_SELECTOR, "button").click()  # a third time
    assert head.get_attribute("aria-sort") is None
    assert [name.text for name in table.find_elements(By.CSS_SELECTOR, "tbody th")] == names
    table.find_element(By.CSS_SELECTOR, "thead th button").click()
    assert [name.text for name in table.find_elements(By.CSS_SELECTOR, "tbody th")] == sorted(names)


def test_numbers_with_a_comma_for_thousands_sort_as_numbers(browser, plans, two_each):
    browser.open()
    cells = plans[experiments()["semi-supervised"]].values()
    both = [i for i, runs in enumerate(cells) if not any(map(two_each.diverged, runs[:2]))]
    panel = browser.one(f"#semi-supervised-{both[0]}")
    browser.run("arguments[0].showPopover()", panel)
    head = next(
        head for head in panel.find_elements(By.CSS_SELECTOR, "thead th") if head.text == "seconds"
    )
    for expected in (["2.5", "1,250.0"], ["1,250.0", "2.5"]):
        head.find_element(By.CSS_SELECTOR, "button").click()
        assert [
            row.text.split()[-1]
            for row in panel.find_elements(By.CSS_SELECTOR, ".sortable tbody tr")
        ] == expected


def test_the_list_of_every_number_opens_and_sorts(browser):
    browser.open()
    details = browser.one("#weights details")
    browser.show(details)
    details.find_element(By.CSS_SELECTOR, "summary").click()
    heads = details.find_elements(By.CSS_SELECTOR, "thead th")
    column = 1 + [head.text.strip() for head in heads].index("weight")
    heads[column - 1].find_element(By.CSS_SELECTOR, "button").click()
    found = [
        float(cell.text)
        for cell in details.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({column})")
    ]
    assert found == sorted(found)
    assert found[0] == 0.01
    assert any("diagnostic" in head.text for head in heads)


def test_names_with_markup_are_shown_as_text(browser):
    browser.open()
    assert browser.one("#odd h2").text == ODD
    assert browser.one("#odd tbody th").text == ODD
    assert browser.one("#odd .cell").text
    assert not browser.run(
        "return [...document.querySelectorAll('b')].some(b => b.textContent === 'x')"
    )


def test_plots_tell_their_values_to_mouse_and_keyboard(browser):
    browser.open()
    plot = browser.one("#mi-vs-tv .plot")
    browser.show(plot)
    ActionChains(browser.driver).move_to_element(plot).perform()
    tip = browser.one("#tip")
    assert tip.is_displayed()
    assert "layers 8" in tip.text
    assert all(name in tip.text for name in ("CE:", "CE + MI:", "CE + TV:"))
    plot.send_keys(Keys.ARROW_RIGHT)
    assert "layers 16" in tip.text
    plot.send_keys(Keys.ENTER)
    (opened,) = browser.all("[popover]:popover-open.panel")
    assert opened.find_element(By.CSS_SELECTOR, "h3").text == "GCN · CE · layers 16"
    browser.run("arguments[0].hidePopover()", opened)
    plot.send_keys(Keys.ARROW_UP)  # the last of the three
    assert browser.one("#tip .chosen").text.startswith("CE + TV: ")
    plot.send_keys(Keys.ENTER)
    (opened,) = browser.all("[popover]:popover-open.panel")
    assert opened.find_element(By.CSS_SELECTOR, "h3").text == "GCN · CE + TV · layers 16"
    browser.run("arguments[0].hidePopover()", opened)
    point = plot.find_elements(By.CSS_SELECTOR, ".pt[data-opens]")[
        -1
    ]  # drawn last: nothing lies over it
    browser.click_middle(point)
    panel = browser.one(f"#{point.get_attribute('data-opens')}")
    assert panel.is_displayed()
    curve = panel.find_element(By.CSS_SELECTOR, ".plot")
    browser.show(curve)
    curve.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("epoch 0\nCE: ")
    values = [line.partition(": ")[2] for line in tip.text.splitlines()[1:]]
    assert all(
        len(value.partition(".")[2]) == 2 for value in values
    )  # as many as a path of whole coordinates tells


def test_a_legend_picks_one_series_out(browser):
    browser.open()
    entry = browser.one("#tsne .legend li:nth-child(3) button")
    browser.show(entry)
    entry.click()
    assert entry.get_attribute("aria-pressed") == "true"
    shown = browser.run(
        "return [...document.querySelectorAll('#tsne .plot .cloud')].map(c => Number(getComputedStyle(c).opacity) > .5)"
    )
    assert shown == [False, False, True, False, False, False, False] * 3
    entry.click()
    assert not browser.all("#tsne .picked")


def brightness(browser) -> float:
    colour = browser.run("return getComputedStyle(document.body).backgroundColor")
    red, green, blue = (
        float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")
    )
    return (red + green + blue) / 3


def test_light_and_dark_follow_the_system_and_the_button(browser):
    browser.open(dark=True)
    assert brightness(browser) < 60
    browser.open(dark=False)
    assert brightness(browser) > 200
    button = browser.one("#theme")
    for theme, is_dark in (("light", False), ("dark", True)):
        button.click()
        assert button.text == f"Theme: {theme}"
        assert (brightness(browser) < 60) is is_dark
    browser.open(dark=False)  # it is remembered
    assert brightness(browser) < 60
    browser.one("#theme").click()
    assert browser.one("#theme").text == "Theme: system"


def test_it_prints_in_ink_on_white_paper(browser):
    browser.open(dark=True)
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert brightness(browser) == 255
    assert not browser.one("nav").is_displayed()
    assert browser.one("#depth .matrix").is_displayed()
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_tables_and_figures_are_there_without_a_script(browser):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open()
        assert browser.one("#depth .matrix .mean").text
        assert browser.one("#weights .plot").size["height"] > 80
        browser.one('[popovertarget="semi-supervised-3"].cell').click()
        assert browser.one("#semi-supervised-3").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
