"""The result of a training, and the same from a model folder."""

from __future__ import annotations

import dataclasses

from everynode.datasets import generate
from everynode.settings import Settings
from everynode.training import TrainingResult, load_model, save_model, train


def test_a_model_folder_gives_back_the_result(tmp_path):
    settings = Settings(hidden_channels=4, epochs=3, class_weight="balanced")
    result = train(generate(60, 120, 4, 2), settings, seed=3)
    save_model(tmp_path, result)
    again = TrainingResult.from_card(*load_model(tmp_path))
    for field in dataclasses.fields(TrainingResult):
        if field.name != "network":
            assert getattr(again, field.name) == getattr(result, field.name), field.name
    assert again.epochs == result.epochs == 3
    assert "history" not in repr(result), "it is long"
