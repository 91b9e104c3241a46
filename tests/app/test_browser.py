"""The application in real browsers: from two files to labels, retraining and export."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.conftest import ODD, App, entries, write_tables
from everynode.io import read

pytest.importorskip("selenium", reason="selenium is not installed: pip install '.[dev]'")
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.long
#: Pan and zoom for some seconds, and return the longest time between two frames, in milliseconds.
LONGEST_FRAME = """
const done = arguments[arguments.length - 1], map = document.querySelector('.node-map');
const box = map.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
const fire = (type, kind, more) => map.dispatchEvent(new kind(type, {bubbles: true, cancelable: true, clientX: x, clientY: y, pointerId: 1, ...more}));
map.setPointerCapture = () => {};
let last = performance.now(), longest = 0, frames = 0;
fire('pointerdown', PointerEvent, {});
const step = (now) => {
  if (frames > 2) longest = Math.max(longest, now - last);
  last = now; frames++;
  if (frames > 90) { fire('pointerup', PointerEvent, {}); done([longest, frames]); return; }
  if (frames % 3) fire('pointermove', PointerEvent, {clientX: x + 40 * Math.sin(frames / 9), clientY: y + 30 * Math.cos(frames / 7)});
  else fire('wheel', WheelEvent, {deltaY: frames % 2 ? -60 : 60});
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


class Tab:
    """A browser with the application in it."""

    def __init__(self, driver: Any):
        self.driver = driver

    def open(self, app: App, width: int = 1280, *, dark: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get(app.url)
        self.wait(lambda: "everynode" in self.driver.find_element(By.CSS_SELECTOR, ".brand").text)

    def do(self, name: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, f'[data-do="{name}"]')

    def wait(self, condition: Callable[[], Any], seconds: float = 30) -> Any:
        end = time.monotonic() + seconds
        problem: Any = "it stayed false"
        while time.monotonic() < end:
            try:
                if result := condition():
                    return result
            except WebDriverException as error:
                problem = error.msg
            time.sleep(0.05)
        raise AssertionError(f"waited {seconds} s: {problem}")

    def click(self, name: str) -> None:
        def clicked() -> bool:
            button = self.do(name)
            assert button.is_enabled()
            button.click()
            return True

        self.wait(clicked)

    def text(self, name: str) -> str:
        return self.wait(lambda: self.do(name).text)

    def press(self, keys: str) -> None:
        ActionChains(self.driver).send_keys(keys).perform()

    def label(self, key: str) -> str:
        """Press a key of the queue and return the message that confirms it."""
        before, verb = self.text("name"), "Skipped" if key == "s" else "Saved"
        self.press(key)
        self.wait(lambda: self.text("saved").startswith(f"{verb}: {before}"))
        return str(self.text("saved"))

    def trained(self, seconds: float = 180) -> None:
        """Wait until a training has ended."""
        self.wait(lambda: self.driver.find_elements(By.CSS_SELECTOR, ".node-map canvas"), seconds)
        self.wait(
            lambda: not self.driver.find_elements(By.CSS_SELECTOR, '[data-do="stop"]'), seconds
        )

    def download(self, app: App, path: str) -> bytes:
        """Get a file of the application with the cookies of the browser."""
        cookie = "; ".join(f"{c['name']}={c['value']}" for c in self.driver.get_cookies())
        request = urllib.request.Request(
            f"http://127.0.0.1:{app.port}{path}", headers={"Cookie": cookie}
        )
        with urllib.request.urlopen(request) as answer:
            content: bytes = answer.read()
        return content


@pytest.fixture
def tab(driver: Any) -> Iterator[Tab]:
    """The shared browser. At the end it has asked nobody but this computer, and did not complain."""
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    yield Tab(driver)
    driver.get("about:blank")
    complaints = [
        entry
        for entry in driver.get_log("browser")
        if "_nicegui_ws" not in entry["message"]  # a server was killed
    ]
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    addresses = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    } | {
        event["params"]["url"] for event in events if event["method"] == "Network.webSocketCreated"
    }
    assert any(address.startswith("ws://127.0.0.1:") for address in addresses)
    for address in addresses:
        assert re.match(r"(http|ws)://127\.0\.0\.1:|about:|data:|blob:http://127", address), address
    assert [entry for entry in complaints if entry["level"] == "SEVERE"] == []


def test_from_two_files_to_labels_retraining_and_export(
    tab: Tab, start: Callable[..., App], tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    nodes, edges = write_tables(tmp_path / "files")
    app = start("--project", "mine")
    tab.open(app)
    chooser = tab.wait(lambda: tab.driver.find_element(By.CSS_SELECTOR, "input[type=file]"))
    chooser.send_keys(f"{nodes}\n{edges}")
    tab.wait(lambda: (tmp_path / "mine" / "files" / "edges.csv").exists())
    tab.wait(lambda: "edges.csv" in tab.driver.find_element(By.CSS_SELECTOR, ".screen").text)
    tab.click("read")

    # No column is called label: the page proposes some, and one click repairs it.
    tab.wait(lambda: [b for b in tab.driver.find_elements(By.CSS_SELECTOR, '[data-do="repair"]')
                      if b.text == "team is the label"])[0].click()  # fmt: skip
    tab.wait(lambda: tab.do("train").is_enabled())
    tab.click("train")
    tab.trained()

    said = [tab.label("1"), tab.label("2"), tab.label("s"), tab.label("3")]
    assert [message.partition(":")[0] for message in said] == ["Saved", "Saved", "Skipped", "Saved"]
    tab.press("u")
    tab.wait(lambda: "Undone" in tab.text("saved"))
    assert "Saved" in tab.label("1")
    written = entries(tmp_path / "mine" / "labels.jsonl")
    assert [entry["action"] for entry in written] == [
        "label",
        "label",
        "skip",
        "label",
        "undo",
        "label",
    ]

    tab.click("retrain")
    tab.wait(lambda: (tmp_path / "mine" / "rounds" / "0002" / "report.html").exists(), 120)
    tab.trained()
    tab.click("tab-quality")
    assert " before, " in tab.text("compare")
    addresses = {
        name: tab.do(f"export-{name}").get_attribute("href")
        for name in ("labels", "predictions", "model")
    }
    assert addresses["model"].endswith("/round/2/model.zip")
    labels = tab.download(app, "/labels.csv").decode()
    (tmp_path / "labels.csv").write_text(labels)
    graph = read(str(nodes), str(edges), label="team", labels=str(tmp_path / "labels.csv"))
    given = list(csv.DictReader(io.StringIO(labels)))
    assert len(given) == 3
    for row in given:
        assert graph.node_ids is not None
        assert graph.classes[graph.labels[graph.node_ids.index(row["id"])]] == row["team"]
    rows = list(csv.DictReader(io.StringIO(tab.download(app, "/round/2/predictions.csv").decode())))
    assert {row["id"]: row["final"] for row in rows}[given[0]["id"]] == given[0]["team"]
    assert (
        "model/model.json"
        in zipfile.ZipFile(io.BytesIO(tab.download(app, "/round/2/model.zip"))).namelist()
    )
    tab.driver.get(f"http://127.0.0.1:{app.port}/round/2/report.html")
    assert "nodes" in tab.driver.find_element(
        By.CSS_SELECTOR, "h1"
    ).text or tab.driver.title.startswith("everynode")


def test_the_mouse_answers_filters_and_searches(
    tab: Tab, start: Callable[..., App], tables: tuple[Path, Path]
) -> None:
    app = start("--nodes", tables[0], "--edges", tables[1], "--label", "team", "--project", "mine")
    tab.open(app)
    tab.click("train")
    tab.trained()
    tab.click("why")
    assert "is predicted" in tab.wait(lambda: tab.text("reason"), 60)
    before = tab.text("name")
    tab.click("answer-2")
    tab.wait(lambda: f"Saved: {before} is team1" in tab.text("saved"))
    tab.do("search").send_keys("Person 77")
    tab.wait(lambda: tab.do("name").text == "Person 77")
    tab.wait(lambda: tab.do("hits").text == "1 nodes")
    tab.press("3")  # a digit in the search is no answer
    assert len(entries(app_folder(tables) / "labels.jsonl")) == 1
    # A name with markup is text, in the panel and on the map.
    search = tab.do("search")
    search.send_keys(Keys.CONTROL, "a")
    search.send_keys("<b>x")
    tab.wait(lambda: tab.do("name").text == ODD)
    assert not tab.driver.execute_script(
        "return [...document.querySelectorAll('b')].some(b => b.textContent === 'x')"
    )
    shown = "return document.querySelector('.node-map canvas').width > 300"
    assert tab.driver.execute_script(shown)


def app_folder(tables: tuple[Path, Path]) -> Path:
    return tables[0].parent / "mine"


def test_kill_9_while_labeling_loses_nothing(
    tab: Tab, start: Callable[..., App], tables: tuple[Path, Path]
) -> None:
    words = ("--nodes", tables[0], "--edges", tables[1], "--label", "team", "--project", "mine")
    app = start(*words)
    tab.open(app)
    tab.click("tab-label")
    tab.wait(lambda: tab.do("name").text)
    confirmed = [tab.label(key) for key in "123123"]
    app.kill()
    again = start(*words)
    tab.open(again)
    tab.click("tab-answers")
    tab.wait(
        lambda: "6 nodes have an answer" in tab.driver.find_element(By.CSS_SELECTOR, ".screen").text
    )
    saved = entries(app_folder(tables) / "labels.jsonl")
    assert [entry["label"] for entry in saved] == ["team0", "team1", "team2"] * 2
    assert [message.rpartition(" is ")[2] for message in confirmed] == [
        entry["label"] for entry in saved
    ]


def test_two_people_see_each_other_and_settle_a_conflict(
    tab: Tab, another_driver: Any, start: Callable[..., App], tables: tuple[Path, Path]
) -> None:
    app = start("--nodes", tables[0], "--edges", tables[1], "--label", "team", "--project", "mine")
    other = Tab(another_driver)
    for one in (tab, other):
        one.open(app)
        one.click("tab-label")
        one.wait(lambda one=one: one.do("name").text)
    name = tab.text("name")
    assert other.text("name") == name  # the same node comes first for both
    tab.label("1")
    other.label("2")  # it stayed in sight of the other one, who disagrees
    for one in (tab, other):
        one.click("tab-answers")
        one.wait(
            lambda one=one: (
                f"People differ about {name}"
                in one.driver.find_element(By.CSS_SELECTOR, ".screen").text
            )
        )
    tab.click("settle")
    other.wait(
        lambda: "on 0 people differ" in other.driver.find_element(By.CSS_SELECTOR, ".screen").text
    )
    kept = entries(app_folder(tables) / "labels.jsonl")
    assert [entry["action"] for entry in kept] == ["label", "label", "settle"]
    assert len({entry["person"] for entry in kept}) == 2


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [380, 1280])
def test_no_screen_scrolls_sideways(
    tab: Tab, start: Callable[..., App], tables: tuple[Path, Path], width: int, dark: bool
) -> None:
    app = start("--nodes", tables[0], "--edges", tables[1], "--label", "team")
    tab.open(app, width, dark=dark)
    for name in ("data", "label", "answers", "quality"):
        tab.click(f"tab-{name}")
        tab.wait(lambda: tab.driver.find_elements(By.CSS_SELECTOR, ".screen, .workbench"))
        time.sleep(0.3)
        assert tab.driver.execute_script("return document.documentElement.scrollWidth") == width
    color = tab.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", color))) < 60) is dark


def test_twenty_thousand_nodes_stay_smooth(
    tab: Tab, start: Callable[..., App], tmp_path: Path
) -> None:
    nodes, edges = write_tables(tmp_path, 20_000, classes=6, known=0.02)
    app = start("--nodes", nodes, "--edges", edges, "--label", "team", "--project", "mine")
    tab.open(app)
    tab.wait(lambda: tab.do("train").is_enabled(), 60)
    tab.click("train")
    tab.wait(
        lambda: tab.driver.execute_script(
            "return document.querySelector('.node-map')?.dataset.drawn"
        ),
        300,
    )
    drawn = (
        int(tab.driver.execute_script("return document.querySelector('.node-map').dataset.drawn"))
        / 1000
    )
    facts = json.loads((tmp_path / "mine" / "rounds" / "0001" / "round.json").read_text())
    waited = drawn - facts["finished"]
    tab.trained()
    tab.driver.set_script_timeout(60)
    longest, frames = tab.driver.execute_async_script(LONGEST_FRAME)
    print(f"first picture after {waited:.2f} s; longest of {frames} frames {longest:.0f} ms")
    assert 0 < waited < 3
    assert longest < 100
