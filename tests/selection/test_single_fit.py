"""The fit of one model; tests/test_estimator.py has the other cases."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from everynode import Settings
from everynode.batches import Batches
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


@pytest.mark.parametrize("backbone", ["gcn", "sage", "mlp"])
def test_a_batch_of_everything_gives_the_networks_of_the_full_graph(backbone):
    graph = generate(40, 80, 4, 2).to(torch.float64)
    exact = SETTINGS.replace(
        backbone=backbone, dropout=0.0, layer_dropout=0.0, class_weight="balanced"
    )
    batches = Batches(80, (-1,), tv_edges=-1)
    full, sampled = (
        fit_candidates(graph, {"ce": exact}, networks=2, batches=choice).results
        for choice in (None, batches)
    )
    for one, other in zip(full, sampled, strict=True):
        assert (one.batches, other.batches) == (None, batches)
        torch.testing.assert_close(one.history["val_loss"], other.history["val_loss"])
        torch.testing.assert_close(one.network(graph), other.network(graph))


def test_batches_have_a_state_of_their_own(tmp_path):
    """After a fit on the full graph, the same command may choose batches."""
    graph = generate(40, 80, 4, 2)
    for batches in (None, Batches(16)):
        fit_candidates(graph, {"ce": SETTINGS}, checkpoint=tmp_path, batches=batches)
    states = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert states == ["16-ce.safetensors", "ce.safetensors"]
