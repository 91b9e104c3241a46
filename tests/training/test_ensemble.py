"""Ensembles: one network of every fold, then the next one, and what they say together."""

from __future__ import annotations

import math

import torch

from everynode.data import generate
from everynode.graph import Split
from everynode.settings import Settings
from everynode.training import fit
from everynode.training.ensemble import held_out, mean_log_probabilities, train_more

QUICK = Settings(channels=4, epochs=3).for_objective("ce")


def test_folds_take_turns_with_a_seed_for_each_network():
    graph = generate(60, 120, features=8, classes=3)
    graph = graph.with_splits(
        [Split(torch.arange(20 * i, 20 * i + 20), (torch.arange(20) + 20 * i + 20) % 60, torch.arange(0)) for i in (0, 1)]
    )
    heard: list[tuple[int, int]] = []
    first = fit(graph, QUICK, seed=7)
    made = train_more(
        [first], graph, (0, 1), 4, checkpoint=None, report=lambda number, epoch, row: heard.append((number, epoch))
    )  # fmt: skip
    assert [(one.fold, one.seed) for one in made] == [(0, 7), (1, 8), (0, 9), (1, 10)]
    assert heard == [(number, epoch) for number in (2, 3, 4) for epoch in range(3)]
    assert math.isclose(made[0].seconds, first.seconds + sum(one.seconds for one in made[1:]))
    of_fold_1 = [one.network for one in made if one.fold == 1]
    found = held_out(made, graph)
    assert torch.equal(found.nodes, torch.cat([graph.nodes("val", 0), graph.nodes("val", 1)]))
    assert torch.equal(found.log_probabilities[20:], mean_log_probabilities(of_fold_1, graph, graph.nodes("val", 1)))
    with torch.no_grad():
        mean = torch.stack([torch.softmax(network(graph).double(), dim=1) for network in of_fold_1]).mean(0)
    torch.testing.assert_close(mean_log_probabilities(of_fold_1, graph, None).exp(), mean)
