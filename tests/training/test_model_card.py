"""A model folder is input: hostile cards and weights get one clear error."""

from __future__ import annotations

import hashlib
import json
import shutil
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import everynode as en
from everynode.errors import DataError
from everynode.training.checkpoint import load_model
from everynode.training.model_card import card_digest, check_member


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    random = np.random.default_rng(0)
    labels = np.arange(30) % 3
    features = (random.normal(size=(30, 4)) + labels[:, None]).astype(np.float32)
    edges = np.stack([np.arange(30), (np.arange(30) + 3) % 30])
    model = en.NodeClassifier("gcn", objective="ce", settings={"epochs": 2})
    model.fit(features, np.array(["a", "b", "c"])[labels], edge_index=edges)
    folder = tmp_path_factory.mktemp("model")
    model.save(folder)
    return folder


@pytest.fixture
def changed(saved, tmp_path):
    """Write the model with a changed card; ``honest`` renews the digest."""

    def write(change=None, *, honest=True, tensors=None):
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        card = json.loads((saved / "model.json").read_bytes())
        if tensors is not None:
            save_file(tensors, tmp_path / "model.safetensors")
            content = (tmp_path / "model.safetensors").read_bytes()
            card["weights_sha256"] = hashlib.sha256(content).hexdigest()
        if change:
            change(card)
        if honest:
            card["digest"] = card_digest(card)
        (tmp_path / "model.json").write_text(json.dumps(card))
        return tmp_path

    return write


def test_an_unchanged_model_loads(changed):
    assert list(en.NodeClassifier.load(changed()).classes_) == ["a", "b", "c"]


def put(*keys, value):
    def change(card):
        for key in keys[:-1]:
            card = card[key]
        card[keys[-1]] = value

    return change


EMPTY = {
    "roles": {}, "classes": ["a", "b", "c"], "structural": False, "matrix": 0, "weight_unit": 1.0,
    "weight_comma": "", "na": [], "unknown": "refuse",
}  # fmt: skip
HOSTILE = {
    "a billion layers": put("settings", "num_layers", value=10**9),
    "a thousand layers": put("settings", "num_layers", value=1000),
    "a billion channels": put("settings", "hidden_channels", value=10**9),
    "a billion features": put("num_features", value=10**9),
    "features as a word": put("num_features", value="4"),
    "true features": put("num_features", value=True),
    "settings as a list": put("settings", value=[]),
    "layers as a word": put("settings", "num_layers", value="2"),
    "no temperature": put("temperature", value=0.0),
    "a negative temperature": put("temperature", value=-1.0),
    "a temperature of nan": put("temperature", value=float("nan")),
    "a temperature as a word": put("temperature", value="warm"),
    "a class twice": put("classes", value=["a", "b", "a"]),
    "one class less": put("classes", value=["a", "b"]),
    "classes that are equal": put("classes", value=[1, True, "c"]),
    "a class of nothing": put("classes", value=["a", "b", {}]),
    "classes as a word": put("classes", value="abc"),
    "nested classes": put("classes", value=[["a", ["b"]], "b", "c"]),
    "networks as a list": put("networks", value=[1]),
    "a billion networks": put("networks", value=10**9),
    "estimator as a list": put("estimator", value=[1]),
    "an unknown parameter": put("estimator", "flavour", value=1),
    "candidates of numbers": put("candidates", value={"gcn": 3}),
    "history of words": put("history", value={"total": "long"}),
    "no graph": put("graph", value=None),
    "a recipe of nothing": put("feature_encoder", value={}),
    "another recipe's classes": put("feature_encoder", value={"classes": ["x", "y", "z"]}),
    "a recipe with a wrong scale": put(
        "feature_encoder",
        value={**EMPTY, "columns": [{"name": "x", "kind": "number", "scale": "a"}]},
    ),
    "a recipe with a scale of nothing": put(
        "feature_encoder",
        value={**EMPTY, "columns": [{"name": "x", "kind": "number", "center": [0], "scale": [0]}]},
    ),
    "a recipe of numbers": put("feature_encoder", value={"columns": 7, "classes": 3}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_card_is_refused_at_once(changed, case):
    began = time.monotonic()
    with pytest.raises(DataError):
        en.NodeClassifier.load(changed(HOSTILE[case]))
    assert time.monotonic() - began < 10


def test_reordered_classes_show_in_the_digest(changed):
    with pytest.raises(DataError, match="changed after it was written"):
        en.NodeClassifier.load(changed(put("classes", value=["b", "a", "c"]), honest=False))


@pytest.mark.parametrize("name", ["digest", "weights_sha256"])
def test_a_card_without_its_digests_is_refused(changed, name):
    folder = changed()
    card = json.loads((folder / "model.json").read_bytes())
    del card[name]
    if name != "digest":
        card["digest"] = card_digest(card)
    (folder / "model.json").write_text(json.dumps(card))
    with pytest.raises(DataError, match="digests differ"):
        en.NodeClassifier.load(folder)


def test_weights_that_are_not_finite_are_refused(changed):
    tensors = load_file(changed() / "model.safetensors")
    name = next(name for name, value in tensors.items() if value.is_floating_point())
    tensors[name] = torch.full_like(tensors[name], float("nan"))
    with pytest.raises(DataError, match="not finite"):
        en.NodeClassifier.load(changed(tensors=tensors))


def test_networks_with_other_classes_are_refused(changed):
    folder = changed()
    card = json.loads((folder / "2" / "model.json").read_bytes())
    card["classes"] = ["b", "a", "c"]
    (folder / "2" / "model.json").write_text(json.dumps(card | {"digest": card_digest(card)}))
    with pytest.raises(DataError, match="different classes"):
        en.NodeClassifier.load(folder)


MEMBER = {
    "candidate": "gcn", "uses": "both", "weight": 1.0, "temperature": 1.0, "networks": 1,
    "preparation": {"name": "raw", "num_features": -1}, "for_new_nodes": True,
}  # fmt: skip


def signed(card, preparation=b""):
    card = card | {"weights_sha256": hashlib.sha256(preparation).hexdigest()}
    return card | {"digest": card_digest(card)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("weight", float("nan")), ("weight", 10**400), ("weight", -1), ("temperature", 0), ("networks", 10**9),
        ("networks", "1"), ("preparation", []), ("candidate", 3), ("for_new_nodes", "yes"),
    ],
)  # fmt: skip
def test_a_hostile_member_is_refused(name, value, tmp_path):
    check_member(signed(MEMBER), b"", tmp_path / "member.json")
    with pytest.raises(DataError, match=name):
        check_member(signed(MEMBER | {name: value}), b"", tmp_path / "member.json")


def test_a_changed_member_is_refused(tmp_path):
    card = signed(MEMBER)
    check_member(card, b"", tmp_path / "member.json")
    with pytest.raises(DataError, match="changed after it was written"):
        check_member(card | {"weight": 0.5}, b"", tmp_path / "member.json")
    with pytest.raises(DataError, match="does not belong"):
        check_member(signed(MEMBER), b"changed", tmp_path / "member.json")


def test_a_card_that_is_no_object_is_refused(tmp_path):
    with pytest.raises(DataError, match="not the card of a member"):
        check_member([1], b"", tmp_path / "member.json")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"format": 1, "format": 1}'], ids=["deep", "twice"]
)
def test_a_card_that_is_odd_json_is_refused(tmp_path, text):
    (tmp_path / "model.json").write_text(text)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        load_model(tmp_path)
