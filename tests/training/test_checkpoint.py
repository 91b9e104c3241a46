"""What is on disk: complete or absent, without pickles, and enough to go on bit for bit."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save, save_file

from everynode.errors import DataError
from everynode.graph import Graph, Split
from everynode.settings import Settings
from everynode.training import TrainingResult, load_model, save_model, train
from everynode.training.checkpoint import TrainingState
from everynode.training.model_card import card_digest

QUICK = Settings(hidden_channels=8, epochs=14, patience=14)


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    n = 60
    labels = np.arange(n) % 3
    features = np.eye(3)[labels] @ rng.normal(size=(3, 6)) + rng.normal(size=(n, 6))
    parts = torch.from_numpy(rng.permutation(n)).split([15, 20, 25])
    split = Split(*(p.sort().values for p in parts))
    return Graph.from_arrays(
        features.astype(np.float32), rng.integers(0, n, (2, 3 * n)), labels, splits=[split]
    )


@pytest.fixture(scope="module")
def fitted(graph) -> TrainingResult:
    return train(graph, QUICK)


@pytest.fixture
def folder(fitted, tmp_path) -> Path:
    save_model(tmp_path / "model", fitted)
    return tmp_path / "model"


def interrupt_after(epochs: int):
    def report(epoch, row):
        if epoch == epochs - 1:
            os.kill(os.getpid(), signal.SIGINT)

    return report


def assert_same(a: TrainingResult, b: TrainingResult) -> None:
    """The same in everything but the time it took."""
    one, two = a.network.state_dict(), b.network.state_dict()
    assert list(one) == list(two)
    for name in one:
        assert torch.equal(one[name], two[name]), name
    assert a.history == b.history
    assert (a.best_epoch, a.metrics, a.epochs) == (b.best_epoch, b.metrics, b.epochs)


# ---------------------------------------------------------------------- going on


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
@pytest.mark.parametrize("objective", ["enc", "ce", "mi+tv", "consistency+prior"])
@pytest.mark.parametrize("stops", [(1,), (6,), (13,), (2, 3, 9)])
def test_going_on_ends_bit_for_bit_where_an_undisturbed_run_ends(
    graph, tmp_path, backbone, objective, stops
):
    settings = dataclasses.replace(
        QUICK, backbone=backbone, halves="random", consistency=0.5, prior=0.5
    ).for_objective(objective)
    state = tmp_path / "training.safetensors"
    for stop in stops:
        part = train(graph, settings, seed=5, checkpoint=state, report=interrupt_after(stop))
        assert part.interrupted
        assert part.epochs == stop
    done = train(graph, settings, seed=5, checkpoint=state)
    assert not done.interrupted
    assert_same(done, train(graph, settings, seed=5))


def test_a_checkpoint_of_any_epoch_will_do(graph, tmp_path):
    """As after kill -9: the state on disk is some epoch's, and there was no interruption to prepare it."""
    state, copies = tmp_path / "training.safetensors", []

    def report(epoch, row):
        if state.exists():  # the state after the epoch before
            copies.append(state.read_bytes())

    whole = train(graph, QUICK, checkpoint=state, checkpoint_every=0.0, report=report)
    assert len(copies) == whole.epochs - 1
    for content in copies[::4]:
        state.write_bytes(content)
        assert_same(train(graph, QUICK, checkpoint=state), whole)


def test_going_on_respects_patience_and_the_best_epoch_before(graph, tmp_path):
    settings = dataclasses.replace(QUICK, epochs=300, patience=5, monitor="loss", lr=0.1)
    whole = train(graph, settings)
    assert whole.epochs < 300
    state = tmp_path / "training.safetensors"
    stop = whole.best_epoch + 3  # the best is behind, patience has begun to run out
    assert train(graph, settings, checkpoint=state, report=interrupt_after(stop)).interrupted
    assert_same(train(graph, settings, checkpoint=state), whole)


def test_a_finished_training_is_not_done_again(graph, tmp_path):
    state = tmp_path / "training.safetensors"
    whole = train(graph, QUICK, checkpoint=state)
    epochs = []
    again = train(graph, QUICK, checkpoint=state, report=lambda epoch, row: epochs.append(epoch))
    assert epochs == []
    assert_same(again, whole)


def test_seconds_add_up_over_interruptions(graph, tmp_path):
    state = tmp_path / "training.safetensors"
    first = train(graph, QUICK, checkpoint=state, report=interrupt_after(7))
    second = train(graph, QUICK, checkpoint=state)
    assert second.seconds > first.seconds > 0


# ---------------------------------------------------------------------- the model folder


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_a_model_folder_gives_back_the_model(graph, tmp_path, backbone):
    fitted = train(
        graph, dataclasses.replace(QUICK, backbone=backbone, num_layers=3, epochs=3), seed=2
    )
    save_model(tmp_path / "a" / "b", fitted, {"note": "extra"})
    network, card = load_model(tmp_path / "a" / "b")
    assert not network.training
    with torch.no_grad():
        assert torch.equal(network(graph), fitted.network(graph))
    assert Settings(**card["settings"]) == fitted.settings
    assert card["history"] == fitted.history
    assert card["metrics"] == fitted.metrics
    assert card["graph"] == {"name": graph.name, "digest": graph.digest}
    assert (card["seed"], card["fold"], card["epochs"], card["note"]) == (2, 0, 3, "extra")
    assert card["classes"] == [0, 1, 2]


def safetensors_header(content: bytes) -> dict:
    """The header by the format's own rule: 8 bytes of length, so much JSON, then raw numbers up to the end and nothing else."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    ends = sorted(
        tuple(entry["data_offsets"]) for name, entry in header.items() if name != "__metadata__"
    )
    assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == len(content) - 8 - length
    return header


def test_nothing_on_disk_is_a_pickle(graph, tmp_path):
    out = tmp_path / "out"
    fitted = train(graph, QUICK, checkpoint=out / "training.safetensors")
    save_model(out, fitted)
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(files) == ["model.json", "model.safetensors", "training.safetensors"]
    assert json.loads(files["model.json"])["format"] == 1
    assert set(safetensors_header(files["model.safetensors"])) == set(fitted.network.state_dict())
    assert "rng" in safetensors_header(files["training.safetensors"])
    for content in files.values():
        assert not content.startswith((b"\x80", b"PK"))  # a pickle, or torch's zip of pickles


def test_saving_again_replaces_the_model(graph, folder):
    other = train(graph, QUICK, seed=9)
    save_model(folder, other)
    with torch.no_grad():
        assert torch.equal(load_model(folder)[0](graph), other.network(graph))
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]


# ---------------------------------------------------------------------- refusals


def change_card(**changes):
    def change(folder: Path) -> None:
        card = json.loads((folder / "model.json").read_text())
        card = {key: v for key, v in {**card, **changes}.items() if v is not ...}
        (folder / "model.json").write_text(json.dumps(card | {"digest": card_digest(card)}))

    return change


def weights_of_another_model(folder: Path) -> None:
    """Right digest, wrong shapes: somebody put two models together by hand."""
    weights = load_file(folder / "model.safetensors")
    weights["opening.weight"] = torch.zeros(4, 4)
    replace_weights(folder, save(weights))


def replace_weights(folder: Path, content: bytes) -> None:
    import hashlib

    (folder / "model.safetensors").write_bytes(content)
    change_card(weights_sha256=hashlib.sha256(content).hexdigest())(folder)


def truncate(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


DAMAGES = {
    "no card": (lambda folder: (folder / "model.json").unlink(), "model.json is missing"),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        "model.safetensors is missing",
    ),
    "other weights": (
        lambda folder: save_file({"a": torch.zeros(3)}, folder / "model.safetensors"),
        "does not belong to model.json",
    ),
    "truncated weights": (truncate, "does not belong to model.json"),
    "weights of another network": (weights_of_another_model, "weights of another model"),
    "weights that are no safetensors": (
        lambda folder: replace_weights(folder, b"\x80\x04garbage"),
        "model.safetensors",
    ),
    "garbage card": (
        lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe{{{"),
        "cannot be read",
    ),
    "half a card": (
        lambda folder: (folder / "model.json").write_text('{"format": 1, "every'),
        "cannot be read",
    ),
    "empty card": (lambda folder: (folder / "model.json").write_text(""), "cannot be read"),
    "a list": (
        lambda folder: (folder / "model.json").write_text("[1]"),
        "not a model card of format 1",
    ),
    "other format": (change_card(format=2), "not a model card of format 1"),
    "no digest": (change_card(weights_sha256=...), "model.json"),
    "no settings": (change_card(settings=...), "model.json"),
    "strange settings": (change_card(settings={"wheels": 4}), "model.json"),
    "impossible settings": (change_card(settings={"epochs": -1}), "model.json"),
    "classes that are none": (change_card(classes=None), "model.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_model_folder_is_refused_in_one_sentence(folder, damage):
    do, says = DAMAGES[damage]
    do(folder)
    with pytest.raises(DataError, match=says) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="There is no folder"):
        load_model(tmp_path / "nothing")


def state_of(**settings):
    """The state of a training of another kind."""

    def make(graph: Graph, path: Path) -> None:
        train(graph, dataclasses.replace(QUICK, epochs=2, **settings), checkpoint=path)

    return make


def tampered(**header):
    """A safetensors file with our mark but not our content."""

    def make(graph: Graph, path: Path) -> None:
        save_file({"rng": torch.get_rng_state()}, path, metadata={"everynode": json.dumps(header)})

    return make


def cut(graph: Graph, path: Path) -> None:
    state_of()(graph, path)
    path.write_bytes(path.read_bytes()[:-100])


def flipped(place: float):
    """A state with one bit of it changed, at a share of the file."""

    def make(graph: Graph, path: Path) -> None:
        train(graph, QUICK, checkpoint=path, report=interrupt_after(3))
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 1
        path.write_bytes(content)

    return make


BAD_STATES = {
    "a bit of the header": flipped(0.01),
    "a bit of a weight": flipped(0.5),
    "the last bit": flipped(0.9999),
    "text": lambda graph, path: path.write_text("not a state"),
    "empty": lambda graph, path: path.write_bytes(b""),
    "pickle": lambda graph, path: path.write_bytes(b"\x80\x04N."),
    "truncated": cut,
    "a folder": lambda graph, path: path.mkdir(),
    "safetensors of something else": lambda graph, path: save_file({"a": torch.zeros(2)}, path),
    "an empty header": tampered(),
    "a header that is too much": tampered(
        history={}, best_epoch=0, best_key=[0.0, 0.0], epoch=0, seconds=0.0, wheels=4
    ),
    "a header without tensors": tampered(history={}, best_epoch=0, best_key=[0.0, 0.0], epoch=0, seconds=0.0),
    "another backbone": state_of(backbone="gat"),
    "another width": state_of(hidden_channels=4),
    "another objective": state_of(cvg=0.0),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_STATES)
def test_a_bad_training_state_is_refused_in_one_sentence(graph, tmp_path, kind):
    path = tmp_path / "training.safetensors"
    BAD_STATES[kind](graph, path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(DataError, match=r"remove it \(or --no-resume\) to start over") as caught:
        train(graph, QUICK, checkpoint=path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_no_state_is_no_state(tmp_path):
    assert TrainingState.load(tmp_path / "training.safetensors", "anything") is None


def test_the_state_of_another_training_is_refused(graph, tmp_path):
    path = tmp_path / "training.safetensors"
    train(graph, Settings(epochs=3), seed=0, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="another training"):
        train(graph, Settings(epochs=3), seed=1, checkpoint=path)
    assert path.read_bytes() == before
