"""The model folder of NodeClassifier: safetensors and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from everynode.batches import Batches, batches_from
from everynode.estimator_settings import Choices, settings_as_dict
from everynode.evaluation.held_out_labels import HeldOutLabels
from everynode.graph.label_encoding import in_order
from everynode.machine import usable_device
from everynode.selection.graph_gain import GraphGain
from everynode.selection.leaderboard import Leaderboard
from everynode.selection.portfolio_ensemble import PortfolioEnsemble
from everynode.selection.successive_halving import Standing
from everynode.training import load_model, save_model
from everynode.training.checkpoint import model_folder
from everynode.training.model_card import check_together
from everynode.training.result import TrainingResult

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier


def save_classifier(model: NodeClassifier, folder: Path) -> None:
    """Write the model folder of a fitted classifier."""
    parameters = model.get_params(deep=False)
    if isinstance(model.backbone, type):
        parameters["backbone"] = model.fitted_.settings.backbone
    choices, settings = Choices.of(model), settings_as_dict(model.settings)
    if model.device is not None:
        parameters["device"] = str(model.device)
    parameters["objective"] = choices.objective
    if choices.weights:  # by name: another fit needs their plugin
        settings |= {"weights": choices.changes["weights"]}
        if choices.objective != "auto":
            parameters["objective"] = next(iter(model.standings_), choices.objective)
    parameters["settings"] = settings or None
    if isinstance(model.batch_size, Batches):
        parameters["batch_size"] = dataclasses.asdict(model.batch_size)
    if isinstance(model.class_weight, Mapping):
        pairs = model.class_weight.items()
        parameters["class_weight"] = [
            [getattr(key, "item", lambda key=key: key)(), float(value)] for key, value in pairs
        ]
    parameters["random_state"] = model.fitted_.seed
    extra: dict[str, Any] = {
        "estimator": parameters,
        "candidates": {name: one.to_dict() for name, one in model.standings_.items()},
        "temperature": model.temperature_,
        "num_labels": model.num_labels_,
        "num_folds": model.num_folds_,
        "networks": len(model.networks_),
        "fold_of_graph": model._fold,
        "had_edges": model._had_edges,
        "directed": model.directed_,
        "edge_types": model.edge_types_,
    }
    if hasattr(model, "feature_names_in_"):
        extra["feature_names"] = model.feature_names_in_.tolist()
    if model.feature_encoder_ is not None:
        extra["feature_encoder"] = model.feature_encoder_.to_dict()
    if model.held_out_labels_ is not None:
        extra["held_out_sha256"] = model.held_out_labels_.save(Path(folder))
    # The first network is written last, because its card counts the others.
    if model.ensemble_ is not None:
        model.ensemble_.save(Path(folder))
        extra |= _portfolio_card(model)
    else:
        for number, other in enumerate(model._more, start=2):
            save_model(Path(folder) / str(number), other)
    save_model(folder, model.fitted_, extra)


def _portfolio_card(model: NodeClassifier) -> dict[str, Any]:
    """Return the entries that :func:`load_classifier` needs to rebuild a portfolio."""
    assert model.ensemble_ is not None
    assert model.leaderboard_ is not None
    assert model.graph_gain_ is not None
    return {
        "networks": 1,
        "members": len(model.ensemble_.members),
        "num_nodes": model.ensemble_.num_nodes,
        "inputs": model.ensemble_.num_features,
        "class_shift": list(model.ensemble_.shift),
        "contrast": model.ensemble_.contrast,
        "leaderboard": model.leaderboard_.to_list(),
        "graph_gain": model.graph_gain_.to_dict(),
    }


def load_classifier(
    cls: type[NodeClassifier], folder: str | Path, device: str | torch.device | None
) -> NodeClassifier:
    """Build a classifier from a model folder, on a device (None: the CPU)."""
    from everynode.io.feature_encoder import FeatureEncoder  # imports pyarrow

    folder = model_folder(folder)
    network, card = load_model(folder)
    if "estimator" in card:
        parameters = card["estimator"]
        if isinstance(parameters.get("class_weight"), list):
            parameters["class_weight"] = dict(map(tuple, parameters["class_weight"]))
        if isinstance(parameters.get("batch_size"), dict):
            parameters["batch_size"] = batches_from(parameters["batch_size"])
        model = cls(**parameters)
    else:  # of `everynode train`
        objective = card.get("run", {}).get("objective", "auto")
        model = cls(card["settings"]["backbone"], objective, settings=card["settings"])
    model.set_params(device=device)
    model.fitted_ = TrainingResult.from_card(network, card)
    model._more = [
        TrainingResult.from_card(*load_model(folder / str(number)))
        for number in range(2, card.get("networks", 1) + 1)
    ]
    model.ensemble_ = model.leaderboard_ = model.graph_gain_ = None
    if "members" in card:
        model.ensemble_ = PortfolioEnsemble.load(
            folder,
            card["members"],
            card["num_nodes"],
            card["inputs"],
            card["class_shift"],
            card["contrast"],
        )
        check_together([model.fitted_, *model.ensemble_.results], folder)
        model.leaderboard_ = Leaderboard.from_list(card["leaderboard"])
        model.graph_gain_ = GraphGain.from_dict(card["graph_gain"])
        model.fitted_ = dataclasses.replace(
            model.fitted_, network=model.ensemble_.results[0].network
        )
        model._more = model.ensemble_.results[1:]
    check_together([model.fitted_, *model._more], folder)
    model.classes_ = in_order(card["classes"])
    model.n_features_in_ = card["num_features"]
    model._fold = card.get("fold_of_graph", card["fold"])
    model.temperature_ = float(card.get("temperature", 1.0))
    model.num_labels_ = int(card.get("num_labels", 0))  # unknown for `everynode train`
    model.num_folds_ = int(card.get("num_folds", 1))
    digest = card.get("held_out_sha256")
    model.held_out_labels_ = None if digest is None else HeldOutLabels.load(folder, digest)
    encoder = card.get("feature_encoder")
    model.feature_encoder_ = None if encoder is None else FeatureEncoder.from_dict(encoder)
    model.directed_ = bool(card.get("directed", card.get("run", {}).get("directed", False)))
    model._had_edges = bool(card.get("had_edges", False))
    weights = card.get("edge_types")
    model.edge_types_ = None if weights is None else {str(k): float(v) for k, v in weights.items()}
    if "feature_names" in card:
        model.feature_names_in_ = np.asarray(card["feature_names"], dtype=object)
    model.standings_ = {
        name: Standing.from_dict(standing) for name, standing in card.get("candidates", {}).items()
    }
    model._set_attributes()
    if device is not None:
        for one in model.networks_:
            one.to(usable_device(device))
    return model
