"""The scripts of ``benchmarks/`` can be imported, and the defaults are what they chose."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path

import pytest

import everynode.selection.successive_halving as racing
from everynode.datasets import generate
from everynode.settings import Settings

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Import a script."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def read(name):
        spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), FOLDER / name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return read


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.py")))
def test_a_script_can_be_imported(name, script):
    module = script(name)
    if name == "common.py":
        return
    assert callable(module.main)
    assert module.__doc__.splitlines()[0].endswith("?"), "the first line is the question"


def test_the_default_race_is_the_one_that_its_rule_chooses(script):
    designs, found = (
        script("halving_rounds.py"),
        json.loads((FOLDER.parent / "results/race-designs.json").read_text()),
    )
    assert (found["limit"], found["chosen"]) == (designs.LIMIT, designs.chosen(found["rows"]))
    assert found["chosen"] == designs.called(racing.ROUNDS)


@pytest.mark.parametrize("seed", range(3))
def test_a_replayed_race_is_the_race(script, monkeypatch, seed):
    designs = script("halving_rounds.py")
    graph = generate(200, 600, 8, 4, noise=1.0, seed=seed)
    quick = Settings(hidden_channels=8, epochs=30, patience=30)
    candidates = {
        str(tv): dataclasses.replace(quick, tv=tv, mi=0.0, cvg=0.0) for tv in (0.0, 1.0, 20.0, 0.5)
    }
    curves = {
        name: designs.curve(graph, settings, 0, seed) for name, settings in candidates.items()
    }
    for rounds in (((3, 3), (6, 2), (9, 1)), ((5, 1),), ((10, 2), (11, 1))):
        monkeypatch.setattr(racing, "ROUNDS", rounds)
        (fitted,), standings = racing.successive_halving(graph, candidates, seed=seed)
        winner, accuracy, cost = designs.replay(curves, rounds)
        assert standings[winner].outcome == "won"
        assert accuracy == fitted.metrics["val_accuracy"]
        assert cost == pytest.approx(
            sum(curves[name].cost(standing.epochs) for name, standing in standings.items())
        )
