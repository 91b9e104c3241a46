"""Ensembles: one network of every fold, then the next one, and what they say together."""

from __future__ import annotations

import math

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import Diverged
from everynode.graph import Graph, Split
from everynode.selection import ensemble
from everynode.selection.ensemble import held_out, mean_log_probabilities, train_more
from everynode.settings import Settings
from everynode.training import train

QUICK = Settings(hidden_channels=4, epochs=3).for_objective("ce")


@pytest.fixture(scope="module")
def graph() -> Graph:
    """With two folds."""
    parts = [
        Split(
            torch.arange(20 * i, 20 * i + 20),
            (torch.arange(20) + 20 * i + 20) % 60,
            torch.arange(0),
        )
        for i in (0, 1)
    ]
    return generate(60, 120, features=8, classes=3).with_splits(parts)


def test_folds_take_turns_with_a_seed_for_each_network(graph):
    heard: list[tuple[int, int]] = []
    first = train(graph, QUICK, seed=7)
    made = train_more(
        [first], graph, (0, 1), 4, checkpoint=None, report=lambda number, epoch, row: heard.append((number, epoch))
    )  # fmt: skip
    assert [(one.fold, one.seed) for one in made] == [(0, 7), (1, 8), (0, 9), (1, 10)]
    assert heard == [(number, epoch) for number in (2, 3, 4) for epoch in range(3)]
    assert math.isclose(made[0].seconds, first.seconds + sum(one.seconds for one in made[1:]))
    of_fold_1 = [one.network for one in made if one.fold == 1]
    found = held_out(made, graph)
    assert torch.equal(found.nodes, torch.cat([graph.nodes("val", 0), graph.nodes("val", 1)]))
    assert torch.equal(
        found.log_probabilities[20:],
        mean_log_probabilities(of_fold_1, graph, graph.nodes("val", 1)),
    )
    with torch.no_grad():
        mean = torch.stack(
            [torch.softmax(network(graph).double(), dim=1) for network in of_fold_1]
        ).mean(0)
    torch.testing.assert_close(mean_log_probabilities(of_fold_1, graph, None).exp(), mean)


def test_the_first_has_the_seconds_of_all_that_were_handed_over(graph):
    trained = [train(graph, QUICK, fold=fold, seed=fold) for fold in (0, 1)]
    made = train_more(trained, graph, (0, 1), 3, checkpoint=None, report=lambda *_: None)
    assert [(one.fold, one.seed) for one in made] == [(0, 0), (1, 1), (0, 2)]
    assert math.isclose(made[0].seconds, trained[0].seconds + trained[1].seconds + made[2].seconds)


def diverging(seeds: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings with these seeds diverge."""

    def maybe(*args, seed: int, **options):
        if seed in seeds:
            raise Diverged("The loss became nan.")
        return train(*args, seed=seed, **options)

    monkeypatch.setattr(ensemble, "train", maybe)


def test_a_network_that_diverges_is_left_out(graph, monkeypatch):
    trained = [train(graph, QUICK, fold=fold, seed=fold) for fold in (0, 1)]
    diverging({2, 5}, monkeypatch)
    with pytest.warns(
        UserWarning, match=r"^Network \d of 6 is left out: The loss became nan\.$"
    ) as told:
        made = train_more(trained, graph, (0, 1), 6, checkpoint=None, report=lambda *_: None)
    assert [str(one.message)[:14] for one in told] == ["Network 3 of 6", "Network 6 of 6"]
    assert [(one.fold, one.seed) for one in made] == [(0, 0), (1, 1), (1, 3), (0, 4)]
    assert not made[0].interrupted


def test_a_fold_without_a_network_is_no_ensemble(graph, monkeypatch):
    first = train(graph, QUICK, seed=0)
    diverging({1}, monkeypatch)
    with pytest.raises(Diverged):
        train_more([first], graph, (0, 1), 4, checkpoint=None, report=lambda *_: None)
