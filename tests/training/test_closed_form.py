"""Closed-form models in the training loop: epochs, checkpoints, saved models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from everynode.batches import Batches
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models.closed_form import ClosedFormModel
from everynode.models.names import MODELS, model_class
from everynode.objectives.cross_entropy import class_weights
from everynode.settings import Settings
from everynode.training import load_model, save_model, train
from everynode.training.closed_form import is_closed_form
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training

CLOSED = [name for name in MODELS if issubclass(model_class(name), ClosedFormModel)]
GRAPH = generate(80, 200, 8, 3)


def test_the_names() -> None:
    assert is_closed_form(Settings(backbone="logistic"))
    assert not is_closed_form(Settings())


@pytest.mark.parametrize("name", CLOSED)
def test_each_stage_is_an_epoch_and_validation_chooses(name: str) -> None:
    settings = Settings(backbone=name, monitor="loss", class_weight="balanced")
    rows = []
    fitted = train(GRAPH, settings, report=lambda epoch, row: rows.append(row))
    assert fitted.epochs == len(rows) == model_class(name).num_stages
    losses = fitted.history["val_loss"]
    assert losses[fitted.best_epoch] == min(losses) == fitted.metrics["val_loss"]
    with torch.no_grad():
        val = GRAPH.nodes("val")
        logits = fitted.network(GRAPH)[val]
    weight = class_weights(GRAPH, 0, "balanced").to(logits)
    loss = torch.nn.functional.cross_entropy(logits, GRAPH.labels[val], weight).item()
    assert loss == pytest.approx(min(losses), rel=1e-5)
    assert train(GRAPH, settings.replace(epochs=1)).epochs == 1


@pytest.mark.parametrize("name", CLOSED)
def test_a_training_continues_from_its_checkpoint(name: str, tmp_path: Path) -> None:
    settings, state = Settings(backbone=name), tmp_path / "state.safetensors"
    whole = train(GRAPH, settings)
    first = Training(GRAPH, settings, checkpoint=state)
    with deferred_interrupt() as interrupt:
        first.advance(interrupt, until=2)
    again = train(GRAPH, settings, checkpoint=state)
    assert again.history["val_loss"] == pytest.approx(whole.history["val_loss"], rel=1e-6)
    assert again.best_epoch == whole.best_epoch
    for name, value in whole.network.state_dict().items():
        torch.testing.assert_close(again.network.state_dict()[name], value)


@pytest.mark.parametrize("name", CLOSED)
def test_a_saved_model_predicts_the_same(name: str, tmp_path: Path) -> None:
    fitted = train(GRAPH, Settings(backbone=name))
    save_model(tmp_path, fitted)
    model, _ = load_model(tmp_path)
    assert torch.equal(model(GRAPH), fitted.network(GRAPH))


def test_mini_batches_are_refused() -> None:
    with pytest.raises(UsageError, match="'logistic' trains on the full graph only"):
        train(GRAPH, Settings(backbone="logistic"), batches=Batches(16))
