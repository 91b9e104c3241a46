"""A store as `everynode reproduce all` leaves it, made up in a second: seeded numbers, no training, none of the public files.

And a real browser to show pages in.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everynode as en
from everynode.datasets.files import Root
from everynode.estimator import NodeClassifier
from everynode.evaluation.fit_summary import FitSummary
from everynode.experiments.experiment import Cell, Experiment, experiments_for
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Store
from everynode.graph import Graph
from everynode.io.assign_splits import assign_splits
from everynode.report.page import page

Plans = dict[Experiment, dict[Cell, list[Run]]]
EPOCHS, CLASSES, NODES = 300, 7, 300
#: The settings of a quick fit.
SMALL = {"epochs": 30, "hidden_channels": 8}
QUICK: dict[str, Any] = {"objective": "mi+tv", "settings": SMALL, "verbose": False}
#: A name that must be escaped.
ODD = "<b>x</b>&\"'</script><!--"


def made_record(run: Run, *, diverged: bool = False) -> tuple[dict[str, Any], dict[str, float]]:
    """Record and cost of a run, as its task would leave them."""
    draw = random.Random(run.key)
    made: dict[str, Any] = {
        **run.describe(),
        "key": run.key,
        "graph_digest": run.graph_digest,
        "directed": run.directed,
        "version": "0.2.0",
        "versions": run.versions,
    }
    made |= {"python": "3.11.7", "system": "linux", "settings": dataclasses.asdict(run.settings)}
    if diverged:
        return made | {"error": f"The loss became nan at epoch 3. {ODD}"}, {}
    if run.task == "describe":
        counts = {
            "nodes": 2708,
            "edges": 5278,
            "features": 1433,
            "classes": 7,
            "isolated": 0,
            "unlabeled": 0,
        }
        return made | {"statistics": counts | {"edge_homophily": 0.81, "node_homophily": 0.825}}, {}
    if run.task == "time":
        return made, {"training_ms": draw.uniform(3, 30), "inference_ms": draw.uniform(1, 5)}
    if run.task.startswith("tsne"):
        made |= {
            "positions": [
                [round(draw.gauss(0, 30), 2), round(draw.gauss(0, 30), 2)] for _ in range(NODES)
            ]
        }
        made |= {"labels": [i % CLASSES for i in range(NODES)]}
    if run.task == "tsne-input":
        return made, {}
    score = draw.gauss(0.8, 0.01) + 0.02 * (run.objective == "enc")
    for part in ("val", "test"):
        made |= {
            f"{part}_accuracy": score,
            f"{part}_macro_f1": score - 0.01,
            f"{part}_nll": 0.6,
            f"{part}_ece": 0.04,
        }
    made |= {
        "nodes": {"train": 140, "val": 500, "test": 1000},
        "epochs": EPOCHS,
        "best_epoch": draw.randrange(50, 200),
        "val_loss": 0.6,
    }
    made |= {
        "test_oracle_accuracy": score + 0.01,
        "terms": {name: draw.random() for name in (*terms(run), "total")},
    }
    made |= {
        "confusion": [
            [draw.randrange(9) + 90 * (i == j) for j in range(CLASSES)] for i in range(CLASSES)
        ]
    }
    return made | {"interrupted": False}, {
        "seconds": 2.5 * 500 ** (run.seed % 2),
        "seconds_per_epoch": 0.01,
        "peak_mb": 380.0,
    }


def made_curve(run: Run, *, diverged: bool = False) -> dict[str, list[float]]:
    """Every epoch's terms and metrics of a run."""
    if diverged or run.task not in ("train", "tsne"):
        return {}
    draw = random.Random(run.key)
    falling = [2 * 0.98**epoch + draw.gauss(0, 0.02) for epoch in range(EPOCHS)]
    curve = {
        name: [value - i for value in falling]
        for i, name in enumerate((*terms(run), "total", "val_loss"))
    }
    return curve | {
        name: [0.8 * (1 - 0.95**epoch) for epoch in range(EPOCHS)]
        for name in ("val_accuracy", "test_accuracy")
    }


def terms(run: Run) -> list[str]:
    return [
        "ce",
        *(
            term
            for term in ("mi", "tv", "cvg", "consistency", "prior", "preg")
            if getattr(run.settings, term)
        ),
    ]


def never(run: Run) -> bool:
    return False


@dataclasses.dataclass(frozen=True)
class MadeUp:
    """What stores hold for runs, without a store."""

    runs: dict[str, Run]
    diverged: Callable[[Run], bool] = never

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        both = (
            (key, made_record(run, diverged=self.diverged(run)))
            for key, run in sorted(self.runs.items())
        )
        return {key: record | cost for key, (record, cost) in both}

    def curve(self, key: str) -> dict[str, list[float]]:
        return made_curve(self.runs[key], diverged=self.diverged(self.runs[key]))

    def put_into(self, path: Path) -> Path:
        store = Store(path)
        for run in self.runs.values():
            diverged = self.diverged(run)
            store.put(
                run.specification,
                *made_record(run, diverged=diverged),
                made_curve(run, diverged=diverged),
            )
        return path


@pytest.fixture(scope="session")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """A data folder without any file: the page needs none."""
    return Root(tmp_path_factory.mktemp("no-data"), downloads=False)


@pytest.fixture(scope="session")
def plans(nowhere: Root) -> Plans:
    """What every experiment would run, and one more with names that look like markup."""
    made = {
        experiment: experiment.plan("paper", None, nowhere)[0]
        for experiment in experiments_for("paper")
    }
    cells = [Cell(ODD, ODD, "citeseer", "public", panel=ODD)]
    odd = Experiment("odd", ODD, ODD, ODD, "seeds", "table", lambda: cells)
    return made | {odd: odd.plan("paper", 2, nowhere)[0]}


@pytest.fixture(scope="session")
def make_up() -> Callable[..., MadeUp]:
    """Makes up records and curves of runs."""

    def make(runs: Iterable[Run], diverged: Callable[[Run], bool] = never) -> MadeUp:
        return MadeUp({run.key: run for run in runs}, diverged)

    return make


@pytest.fixture(scope="session")
def two_each(plans: Plans, make_up: Callable[..., MadeUp]) -> MadeUp:
    """Two runs of every cell; a few diverged, and most cells are incomplete."""
    runs = [run for plan in plans.values() for runs in plan.values() for run in runs[:2]]
    return make_up(runs, lambda run: run.task == "train" and run.key[0] == "7")


@pytest.fixture(scope="session")
def text(plans: Plans, two_each: MadeUp) -> str:
    """The page of two runs of every cell."""
    return page(plans, "paper", two_each.records, two_each.curve)[0]


@pytest.fixture(scope="session")
def sections() -> Callable[[str], dict[str, str]]:
    """Splits a page into its sections by id."""

    def split(text: str) -> dict[str, str]:
        parts = re.split(r"<section", text)[1:]
        return {m.group(1): part for part in parts if (m := re.search(r'^[^>]*id="([^"]+)"', part))}

    return split


# ---------------------------------------------------------------------- a fit


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
    shared, said = assign_splits(graph)
    model = NodeClassifier(**QUICK | options).fit(shared)
    return FitSummary.of(model, shared, said)


@pytest.fixture(scope="session")
def fit() -> FitSummary:
    """A fit of the graph with odd names."""
    return fit_of(graph_of())


@pytest.fixture(scope="session")
def raced() -> FitSummary:
    """A fit in which several candidates competed by macro-F1."""
    return fit_of(
        graph_of(90), backbone="gcn", objective="auto",
        settings=SMALL | {"epochs": 5, "monitor": "macro_f1"},
    )  # fmt: skip


@pytest.fixture(scope="session")
def portfolio() -> FitSummary:
    """A fit of the portfolio."""
    return fit_of(graph_of(90), objective="auto", effort="quick", settings=SMALL | {"epochs": 5})


@pytest.fixture(scope="session")
def uncalibrated() -> FitSummary:
    """A fit without a test part and without a temperature."""
    shared, notes = assign_splits(graph_of(90), test_share=0)
    model = NodeClassifier(**QUICK).fit(shared)
    model.temperature_ = 1.0  # as with --no-calibrate
    return FitSummary.of(model, shared, notes)


# ---------------------------------------------------------------------- a browser


class Browser:
    """Chromium with the page in it."""

    def __init__(self, driver: Any, url: str):
        self.driver, self.url = driver, url

    def open(self, width: int = 1280, *, dark: bool = False, fragment: str = "") -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wishes = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",
        }
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.get("about:blank")  # so that a fragment loads the page too
        self.driver.get(self.url + fragment)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def click_middle(self, element: Any) -> None:
        """Click where an element is; the driver's own way scrolls a small SVG mark out of place first."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        middle = "const r = arguments[0].getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]"
        actions = ActionBuilder(self.driver)
        actions.pointer_action.move_to_location(*map(round, self.run(middle, element))).click()
        actions.perform()

    def show(self, element: Any) -> None:
        """Bring an element to the middle, and wait until scrolling has ended: it hides hover boxes."""
        script = "arguments[0].scrollIntoView({block: 'center'}); requestAnimationFrame(() => requestAnimationFrame(arguments[1]))"
        self.driver.execute_async_script(script, element)


@pytest.fixture
def browser(driver: Any, url: str) -> Iterator[Browser]:
    """The browser with the page at the module's ``url``; whatever a test does, it must not complain and not load anything."""
    browser = Browser(driver, url)
    yield browser
    assert driver.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {address.partition("#")[0] for address in asked} <= {url, "about:blank", "data:,"}
    assert url in {address.partition("#")[0] for address in asked}
