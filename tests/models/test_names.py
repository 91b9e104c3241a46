"""Names of models resolve in one place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from everynode import NodeClassifier, plugins
from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.models import Model
from everynode.models.names import MODELS, model_class, model_names
from everynode.settings import Settings
from everynode.training import load_model, save_model, train

PLUGIN = """
from torch import nn

class Tiny(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x, edge_index):
        return self.linear(x)
"""

#: The models of other papers that no file of tests trains.
OTHERS = [
    "plain_gcn", "gcnii_star", "h2gcn", "fagcn", "pta", "grand", "chebnet", "pairnorm", "gatv2",
    "supergat", "egnn", "ggcn", "graphcon", "graphmix", "pdegcn", "grand_diffusion", "magnet",
]  # fmt: skip


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


@pytest.mark.parametrize("name", OTHERS)
def test_a_model_trains_under_enc_and_comes_back_from_a_folder(name: str, tmp_path: Path) -> None:
    graph = generate(120, 400, 8, 3)
    settings = Settings.preset(backbone=name, epochs=8, drop_edge=0.2).for_objective("enc")
    result = train(graph, settings)
    assert {"mi", "tv", "cvg"} <= {*result.history}
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))


@pytest.mark.parametrize("name", ["supergat", "egnn"])
def test_a_model_with_a_loss_trains_on_it_beside_enc(name: str, tmp_path: Path) -> None:
    graph = generate(120, 400, 8, 3)
    settings = Settings.preset(backbone=name, epochs=8, model_loss=2.0)
    result = train(graph, settings.for_objective("enc+model_loss"))
    assert {"mi", "tv", "cvg", "model_loss"} <= {*result.history}
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ("plain_gcn", "grand")])
def test_a_model_works_in_the_estimator(name: str) -> None:
    graph = generate(120, 400, 8, 3)
    classifier = NodeClassifier(backbone=name, objective="tv", settings={"epochs": 5})
    assert classifier.fit(graph).predict_proba(graph).shape == (120, 3)
