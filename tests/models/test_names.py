"""Names of models resolve in one place."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from everynode import plugins
from everynode.errors import UsageError
from everynode.models import Model
from everynode.models.names import MODELS, model_class, model_names

PLUGIN = """
from torch import nn

class Tiny(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.linear(x)
"""


@pytest.mark.parametrize("name", list(MODELS))
def test_every_name_is_a_model(name: str) -> None:
    assert issubclass(model_class(name), Model)


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(UsageError) as refused:
        model_class("gcnn")
    choices = ", ".join(model_names())
    assert str(refused.value) == (
        f"Unknown backbone 'gcnn' (did you mean 'gcn'?). Choose from: {choices}."
    )


def test_a_plugin_adds_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.VARIABLE, "")
    file = tmp_path / "tiny_plugin.py"
    file.write_text(PLUGIN)
    plugins.add(file)
    assert "tiny" in model_names()
    assert issubclass(model_class("tiny"), nn.Module)
