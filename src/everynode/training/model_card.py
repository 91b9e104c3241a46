"""The card of a model folder is input: its types, its limits, its digest, and its weights."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from everynode.batches import batch_declarations
from everynode.errors import DataError, EverynodeError
from everynode.models.build import build_model
from everynode.settings import Settings
from everynode.training.result import TrainingResult

REMEDY = "train again, or restore the folder"
#: The largest number of layers, steps, networks or members in a card.
MOST_PARTS = 10_000
#: Larger whole numbers do not fit into a float.
LARGEST = 2**1000
Schema = dict[str, tuple[Callable[[Any], bool], str]]
Load = TypeVar("Load", bound=Callable[..., Any])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and abs(value) > LARGEST:
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value) and value > 0


def _is_not_negative(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value) and value >= 0


def _is_some(value: Any) -> bool:
    return _is_count(value) and 1 <= value <= MOST_PARTS


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_batches(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != batch_declarations().keys():
        return False
    fan_out = value["fan_out"]
    whole = (isinstance(one, int) for one in (value["size"], value["tv_edges"]))
    return all(whole) and isinstance(fan_out, list) and all(isinstance(n, int) for n in fan_out)


def _are_classes(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    names = [tuple(one) if isinstance(one, list) else one for one in value]
    parts = [part for one in names for part in (one if isinstance(one, tuple) else (one,))]
    plain = all(isinstance(part, str | int | float) and part == part for part in parts)
    return plain and len(set(names)) == len(names)


def _is_history(value: Any) -> bool:
    columns = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(column, list) and all(map(_is_number, column)) for column in columns)


def _are_metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_graph(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in ("name", "digest")
    )


def _is_preparation(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("name"), str)
        and isinstance(value.get("num_features"), int)
    )


#: Each entry with its check and its description. The first must be there, the others may.
REQUIRED: Schema = {
    "num_features": (lambda value: _is_count(value) and value >= 1, "a whole number from 1"),
    "classes": (_are_classes, "a list of different words or numbers"),
    "settings": (_is_object, "an object"),
    "graph": (_is_graph, "an object with name and digest"),
    "fold": (_is_count, "a whole number from 0"),
    "seed": (_is_count, "a whole number from 0"),
    "best_epoch": (_is_count, "a whole number from 0"),
    "history": (_is_history, "an object with lists of numbers"),
    "metrics": (_are_metrics, "an object with numbers"),
    "seconds": (_is_number, "a number"),
    "interrupted": (lambda value: isinstance(value, bool), "true or false"),
}
OPTIONAL: Schema = {
    "temperature": (_is_positive, "a finite number above 0"),
    "contrast": (_is_not_negative, "a finite number from 0"),
    **dict.fromkeys(
        ("networks", "members"), (_is_some, f"a whole number from 1 to {MOST_PARTS:,}")
    ),
    **dict.fromkeys(("num_nodes", "inputs"), (_is_count, "a whole number from 0")),
    **dict.fromkeys(("estimator", "candidates", "run", "graph_gain"), (_is_object, "an object")),
    "leaderboard": (lambda value: isinstance(value, list), "a list"),
    "feature_names": (
        lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
        "a list of words",
    ),
    "feature_encoder": (_is_object, "an object"),
    "batches": (_is_batches, "null, or an object with size, fan_out, tv_edges and clusters"),
}


#: The same for the card of a member of an ensemble.
OF_MEMBER: Schema = {
    **dict.fromkeys(("candidate", "uses"), (lambda value: isinstance(value, str), "a word")),
    "temperature": OPTIONAL["temperature"],
    "weight": (_is_positive, "a finite number above 0"),
    "networks": OPTIONAL["networks"],
    "preparation": (_is_preparation, "an object with name and num_features"),
    "for_new_nodes": REQUIRED["interrupted"],
}


def check_card(card: Mapping[str, Any], path: Path) -> None:
    """Refuse a card with missing entries, wrong types, or classes that contradict its recipe."""
    _check_entries(card, REQUIRED, OPTIONAL, path)
    for name, value in card["settings"].items():
        if name.endswith(("_layers", "_steps")) and not (_is_count(value) and value <= MOST_PARTS):
            raise DataError(
                f"{path}: {name!r} must be a whole number up to {MOST_PARTS:,}. "
                f"Got {json.dumps(value)[:60]}: {REMEDY}."
            )
    _check_digest(card, path)
    recipe = card.get("feature_encoder", {}).get("classes")
    if recipe and list(map(str, recipe)) != list(map(str, card["classes"])):
        raise DataError(f"{path}: the classes differ from those of the feature encoder: {REMEDY}.")


def check_member(card: Any, preparation: bytes, path: Path) -> None:
    """Refuse the card of a member of an ensemble that does not fit the schema or its numbers."""
    if not isinstance(card, dict):
        raise DataError(f"{path} is not the card of a member: {REMEDY}.")
    _check_entries(card, OF_MEMBER, {}, path)
    digest = hashlib.sha256(preparation).hexdigest()
    if card.get("weights_sha256") != digest:
        raise DataError(f"preparation.safetensors does not belong to {path}: {REMEDY}.")
    _check_digest(card, path)


def _check_entries(card: Mapping[str, Any], required: Schema, optional: Schema, path: Path) -> None:
    for name, (is_right, expected) in {**required, **optional}.items():
        if name not in card:
            if name in required:
                raise DataError(
                    f"{path} is not a complete model card ({name!r} is missing): {REMEDY}."
                )
        elif not is_right(card[name]):
            value = json.dumps(card[name])[:60]
            raise DataError(f"{path}: {name!r} must be {expected}. Got {value}: {REMEDY}.")


def _check_digest(card: Mapping[str, Any], path: Path) -> None:
    if card.get("digest") != card_digest(card):
        raise DataError(f"{path} was changed after it was written (digests differ): {REMEDY}.")


def check_together(results: Iterable[TrainingResult], folder: Path | str) -> None:
    """Refuse networks whose classes differ: their predictions would be averaged all the same."""
    classes = {tuple(map(str, result.classes)) for result in results}
    if len(classes) > 1:
        raise DataError(f"{folder}: the networks have different classes: {REMEDY}.")


def card_digest(card: Mapping[str, Any]) -> str:
    """Return a SHA-256 of all other entries; one of them is the digest of the weights."""
    content = {name: value for name, value in card.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse NaN and infinity."""
    for name, value in tensors.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise DataError(f"{path}: {name} holds numbers that are not finite: {REMEDY}.")


def check_weights(
    tensors: Mapping[str, Tensor], card: Mapping[str, Any], settings: Settings, path: Path
) -> None:
    """Refuse weights that are not finite, or of another shape than the card describes.

    The shapes are compared without memory for the weights, before the model is built.
    """
    check_finite(tensors, path)
    parts = {int(word) for name in tensors for word in name.split(".") if word.isdigit()}
    if settings.num_layers > max(64, len(tensors), *parts, 0):
        raise DataError(
            f"{path} holds the weights of another model (the card has {settings.num_layers:,} "
            f"layers, the file {len(tensors):,} tensors)."
        )
    with torch.device("meta"):
        described = build_model(card["num_features"], len(card["classes"]), settings).state_dict()
    for name, expected in described.items():
        actual = tensors.get(name)
        # An empty buffer takes the shape that training gives it, as the seeds of label propagation.
        if actual is not None and expected.numel() and actual.shape != expected.shape:
            raise DataError(
                f"{path} holds the weights of another model ({name} is {tuple(actual.shape)}, the "
                f"card describes {tuple(expected.shape)})."
            )


def refuse_broken_folders(load: Load) -> Load:
    """Turn any error about a value of a model folder into one clear message.

    For functions whose second argument is the folder.
    """

    @functools.wraps(load)
    def checked(owner: Any, folder: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return load(owner, folder, *arguments, **options)
        except (EverynodeError, MemoryError):
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            reason = f"{type(error).__name__}: {str(error)[:80]}"
            raise DataError(f"{folder} is not a complete model ({reason}): {REMEDY}.") from error

    return cast(Load, checked)
