"""The fit of one model; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import dataclasses

from everynode import Settings
from everynode.datasets import generate
from everynode.selection.single_fit import fit_candidates

SETTINGS = Settings(epochs=3, hidden_channels=4).for_objective("ce")


def test_every_fold_has_its_networks():
    graph = generate(40, 80, 4, 2).with_splits([])
    fitted = fit_candidates(graph, {"ce": SETTINGS}, cv=2, networks=2)
    assert [one.fold for one in fitted.results] == [0, 1, 0, 1]
    assert (fitted.total, list(fitted.folds), fitted.interruption) == (4, [0, 1], "")
    assert fitted.standings["ce"].outcome == "won"


def test_an_interruption_is_located():
    fitted = fit_candidates(generate(40, 80, 4, 2), {"ce": SETTINGS}, networks=3)
    first = dataclasses.replace(fitted.results[0], interrupted=True)
    assert fitted._replace(results=[first]).interruption == "after 3 epochs"
    later = fitted._replace(results=[first, fitted.results[1]])
    assert later.interruption == "in network 2 of 3"
