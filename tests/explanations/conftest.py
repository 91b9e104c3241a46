"""A small portfolio on people with a column, a text and friends."""

from __future__ import annotations

import numpy as np
import pytest

import everynode as en
from everynode.io.assign_splits import assign_splits

WORDS = {"red": "fire rose", "blue": "sea sky"}


def tables(n: int = 160) -> tuple[dict, dict]:
    """Two teams; the words say which, the links join mostly the same team, the height says nothing."""
    random = np.random.default_rng(0)
    team = np.array(["red", "blue"])[np.arange(n) % 2]
    words = [" ".join(random.choice([*WORDS[t].split(), "day", "road", "house"], 4)) for t in team]
    ends = [
        (i, int(random.choice(np.flatnonzero((team == team[i]) == (random.random() < 0.9)))))
        for i in range(n)
        for _ in range(2)
    ]
    people = {
        "id": [f"p{i}" for i in range(n)],
        "name": [f"Name {i}" for i in range(n)],
        "height": random.normal(170, 9, n).round(1).tolist(),
        "city": [str(random.choice(["Oslo", "Rome"])) for _ in range(n)],
        "about": words,
        "team": [t if random.random() < 0.6 else None for t in team],
    }
    links = {
        "source": [f"p{a}" for a, b in ends if a != b],
        "target": [f"p{b}" for a, b in ends if a != b],
    }
    return people, links


@pytest.fixture(scope="session")
def graph() -> en.Graph:
    """The graph of the tables."""
    people, links = tables()
    read = en.read(people, links, label="team", features="height,city,about:text")
    return assign_splits(read)[0]


@pytest.fixture(scope="session")
def model(graph: en.Graph) -> en.NodeClassifier:
    """A quick portfolio."""
    return en.NodeClassifier(
        effort="quick", settings={"epochs": 20, "hidden_channels": 8}, n_jobs=1, verbose=False
    ).fit(graph)
