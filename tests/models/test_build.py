"""Models from settings: arguments matched by name, weights from the seed."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT as PyGGAT
from torch_geometric.nn import GCN as PyGGCN

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.models import GCN, GCNII, Layer, Model, PyGModel
from everynode.models.build import build_model
from everynode.models.names import MODELS
from everynode.settings import Settings
from everynode.training import load_model, save_model, train

GRAPH = generate(60, 150, 8, 3)


class Mine(nn.Module):
    def __init__(self, in_channels: int, num_classes: int, hidden_channels: int, *, power: int = 2):
        super().__init__()
        self.first = nn.Linear(in_channels, hidden_channels)
        self.last = nn.Linear(hidden_channels, num_classes)
        self.power = power

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(self.power):
            x = x + torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.last(self.first(x).relu())


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a class the name "mine" for the length of a test."""

    def name(cls: type[nn.Module]) -> Settings:
        monkeypatch.setattr(sys.modules[__name__], "Named", cls, raising=False)
        monkeypatch.setitem(MODELS, "mine", f"{__name__}:Named")
        return Settings(
            backbone="mine", hidden_channels=16, num_layers=3, epochs=3, mi=0.0, tv=0.0, cvg=0.0
        )

    return name


def test_settings_reach_the_network() -> None:
    model = build_model(
        8, 3, Settings(backbone="gcnii", num_layers=4, gcnii_alpha=0.3, dropout=0.2), seed=1
    )
    assert isinstance(model, GCNII)
    assert (len(model.layers), model.layers[0].alpha, model.dropout) == (4, 0.3, 0.2)
    assert (model.num_features, model.num_classes, model.num_hops) == (8, 3, 4)
    assert not hasattr(build_model(8, 3, Settings(backbone="gcn")).layers[0], "alpha")


@pytest.mark.parametrize("backbone", list(MODELS))
def test_a_network_by_name_is_the_class_itself(backbone: str) -> None:
    s = Settings(backbone=backbone)
    model = build_model(8, 3, s, seed=5)
    if backbone == "gcn":
        twin = GCN(
            8, 3, num_layers=s.num_layers, hidden_channels=s.hidden_channels, dropout=s.dropout,
            layer_dropout=s.layer_dropout, normalize_features=s.normalize_features, seed=5,
        )  # fmt: skip
        assert all(map(torch.equal, model.parameters(), twin.parameters()))
    again = build_model(8, 3, s, seed=5)
    assert all(map(torch.equal, model.parameters(), again.parameters()))


def test_a_module_takes_what_it_names(named: Any) -> None:
    settings = named(Mine)
    model = build_model(8, 3, settings, seed=1)
    assert isinstance(model, PyGModel)
    assert model.module.first.weight.shape == (16, 8)
    assert model.module.power == 2
    assert (model.num_features, model.num_classes, model.num_hops) == (8, 3, None)


@pytest.mark.parametrize("cls", [PyGGCN, PyGGAT])
def test_a_model_of_pyg(cls: type[nn.Module], named: Any) -> None:
    model = build_model(8, 3, named(cls))
    assert isinstance(model, PyGModel)
    assert (model.module.num_layers, model.module.hidden_channels) == (3, 16)
    assert model(GRAPH).shape == (60, 3)


def test_options_that_a_subclass_passes_on_are_matched_too(named: Any) -> None:
    class Wider(Mine):
        def __init__(self, num_layers: int, **options: Any):
            super().__init__(**options)
            self.num_layers = num_layers

    model = build_model(8, 3, named(Wider))
    assert (model.module.num_layers, model.module.first.weight.shape) == (3, (16, 8))


def test_the_seed_decides_the_weights_and_nothing_else(named: Any) -> None:
    settings = named(Mine)
    state = torch.get_rng_state()
    one, same, other = (build_model(8, 3, settings, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(one.module.first.weight, same.module.first.weight)
    assert not torch.equal(one.module.first.weight, other.module.first.weight)


def test_an_argument_that_nothing_provides_is_refused(named: Any) -> None:
    class Greedy(nn.Module):
        def __init__(self, num_features: int, heads: int, edge_dim: int):
            super().__init__()

    with pytest.raises(UsageError) as refused:
        build_model(8, 3, named(Greedy))
    sentence = str(refused.value)
    assert sentence.startswith("Model 'mine' requires heads, edge_dim, which no setting provides.")
    assert "num_features, in_channels, num_classes, out_channels, seed, backbone" in sentence


def test_groups_that_lose_a_parameter_are_refused(named: Any) -> None:
    class Forgetful(Model):
        def __init__(self, num_features: int, num_classes: int):
            super().__init__()
            self.linear = nn.Linear(num_features, num_classes)

        def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
            return {"gnn": [self.linear.weight]}

    with pytest.raises(UsageError, match="must contain each of its 2 parameters once"):
        build_model(8, 3, named(Forgetful))


def test_lazy_parameters_are_refused(named: Any) -> None:
    class Lazy(nn.Module):
        def __init__(self, num_classes: int):
            super().__init__()
            self.linear = nn.LazyLinear(num_classes)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.linear(x)

    with pytest.raises(UsageError, match="Model 'mine' has parameters without a shape"):
        build_model(8, 3, named(Lazy))


@pytest.mark.parametrize("backbone", ["mine", *MODELS])
def test_a_saved_model_is_built_again_by_name(backbone: str, named: Any, tmp_path: Any) -> None:
    settings = named(Mine).replace(backbone=backbone)
    fitted = train(GRAPH, settings)
    save_model(tmp_path, fitted)
    model, card = load_model(tmp_path)
    assert card["settings"]["backbone"] == backbone
    with torch.no_grad():
        assert torch.equal(model(GRAPH), fitted.network.eval()(GRAPH))


def test_a_model_that_is_not_installed_is_named(named: Any, tmp_path: Any) -> None:
    save_model(tmp_path, train(GRAPH, named(Mine)))
    del MODELS["mine"]
    with pytest.raises(
        DataError, match=r"needs the model 'mine', which is not installed. Load its"
    ):
        load_model(tmp_path)
    MODELS["mine"] = ""  # for monkeypatch to remove


def test_a_layer_is_not_a_model() -> None:
    assert not issubclass(Layer, Model)
