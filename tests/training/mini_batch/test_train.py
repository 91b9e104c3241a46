"""``everynode train --batch-size``: repeatable, killed at any moment, on graphs by name and on disk."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch

from everynode.batches import Batches
from everynode.errors import UsageError
from everynode.graph.disk_graph import DiskGraph
from everynode.settings import Settings
from everynode.training import load_model, train

QUICK = Settings(hidden_channels=8, epochs=4, patience=4)
SMALL = Batches(16, (3, 2))


@pytest.fixture
def graph(make_graph):
    return make_graph(train=30).to(torch.float32)


def same(a, b) -> bool:
    return a.history == b.history and all(
        torch.equal(x, b.network.state_dict()[name]) for name, x in a.network.state_dict().items()
    )


class Killed(BaseException):
    """Stands for kill -9: nothing of the training's own gets to run."""


@pytest.mark.parametrize("clusters", [None, 6])
def test_resumed_in_the_middle_of_an_epoch_it_ends_bit_for_bit_the_same(
    graph, tmp_path, monkeypatch, clusters
):
    from everynode.training.mini_batch.work import Batched

    batches = dataclasses.replace(SMALL, clusters=clusters)
    undisturbed = train(graph, QUICK, batches=batches, seed=3)
    assert same(undisturbed, train(graph, QUICK, batches=batches, seed=3))
    assert not same(undisturbed, train(graph, QUICK, batches=batches, seed=4))
    assert undisturbed.epochs == 4
    assert set(undisturbed.history) == {
        "ce",
        "mi",
        "tv",
        "cvg",
        "total",
        "val_loss",
        "val_accuracy",
    }

    advance, left = Batched.advance, [6]

    def dying(self, epoch):
        if not left[0]:
            raise Killed
        left[0] -= 1
        advance(self, epoch)

    monkeypatch.setattr(Batched, "advance", dying)
    state = tmp_path / "state"
    with pytest.raises(Killed):
        train(graph, QUICK, batches=batches, seed=3, checkpoint=state, checkpoint_every=0.0)
    left[0] = 1000
    resumed = train(graph, QUICK, batches=batches, seed=3, checkpoint=state, checkpoint_every=0.0)
    steps = 4 if clusters is None else undisturbed.epochs
    assert 1000 - left[0] < 4 * steps, "it started over"
    assert same(resumed, undisturbed)


def test_what_batches_cannot_do(graph, make_graph):
    with pytest.raises(UsageError, match="'preg' needs the predictions of every node at once"):
        train(graph, dataclasses.replace(QUICK, preg=1.0), batches=SMALL)
    with pytest.raises(UsageError, match="undirected graphs: leave out --directed"):
        train(dataclasses.replace(graph, directed=True), QUICK, batches=SMALL)
    with pytest.raises(UsageError, match="for each of the 2 layers"):
        train(graph, QUICK, batches=Batches(16, (1, 2, 3)))


def test_the_command(elsewhere, call):
    command = (
        "train",
        "citeseer",
        "--batch-size",
        256,
        "--fan-out",
        "5,all",
        "--epochs",
        3,
        "--hidden-channels",
        8,
        "--out",
        "model",
        "--json",
    )
    record = json.loads(call(*command).stdout)
    assert record["batches"] == {"size": 256, "fan_out": [5, -1], "tv_edges": 1, "clusters": None}
    assert (record["epochs"], record["processes"], record["test_oracle_accuracy"]) == (3, 1, None)
    assert record["test_accuracy"] > 0.3
    assert load_model("model")[1]["run"] == record
    again = call(*command)
    assert "finished before" in again.stderr
    assert json.loads(again.stdout) == record
    other = call(*command[:4], "--fan-out", 4, *command[6:])
    assert other.returncode == 2
    assert "has another run" in other.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--fan-out", "5"], "and --clusters need --batch-size with a number."),
        (
            ["--batch-size", "64", "--fan-out", "ten"],
            "--fan-out takes numbers such as 15,10, or 'all'. Got 'ten'.",
        ),
        (["--batch-size", "64", "--fan-out", "0"], "numbers >= 1, or -1 for all neighbors"),
        (["--batch-size", "1"], "'size' of Batches must be >= 2"),
        (["--batch-size", "64", "--directed"], "Batches are for undirected graphs"),
        (["--batch-size", "64", "--clusters", "99999"], "cannot be cut into 99999 clusters"),
    ],
)
def test_bad_options_are_one_sentence(elsewhere, call, options, sentence):
    done = call("train", "citeseer", *options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_graph_on_disk_is_trained_from_its_folder(elsewhere, call, graph):
    write(graph, Path("disk"))
    done = call("train", "disk", "--out", "model")
    assert done.returncode == 2
    assert (
        done.stderr == "everynode: disk is on disk, which needs mini-batches: give --batch-size.\n"
    )
    command = (
        "train",
        "disk",
        "--batch-size",
        16,
        "--fan-out",
        3,
        "--epochs",
        3,
        "--hidden-channels",
        8,
        "--json",
        "--out",
    )
    record = json.loads(call(*command, "model").stdout)
    assert record["dataset"] == "on-disk"
    assert record["split"] == "own"
    shutil.move("disk", "elsewhere")
    moved = json.loads(call("train", "elsewhere", *command[2:], "other").stdout)
    for changing in ("seconds", "seconds_per_epoch", "peak_mb"):
        del record[changing], moved[changing]
    assert moved == record, "the same graph in another folder is the same run"
    refused = call("train", "elsewhere", "--batch-size", 16, "--split", "random")
    assert refused.returncode == 2
    assert "with its own split" in refused.stderr


def write(graph, folder: Path) -> DiskGraph:
    return DiskGraph.write(
        folder,
        graph.dense_features.numpy(),
        graph.edges,
        graph.labels,
        split=graph.splits[0],
        classes=graph.classes,
        name="on-disk",
    )


def test_on_disk_or_in_memory_it_is_the_same_training(graph, tmp_path):
    on_disk = write(graph, tmp_path)
    assert repr(on_disk).startswith("DiskGraph 'on-disk': 60 nodes, ")
    a, b = train(graph, QUICK, batches=SMALL, seed=1), train(on_disk, QUICK, batches=SMALL, seed=1)
    assert same(a, b)
    with pytest.raises(
        UsageError, match=r"is on disk, so it needs mini-batches: pass batches=Batches"
    ):
        train(on_disk, QUICK)


@pytest.mark.parametrize("backbone", ["mlp", "sage", "resgcn"])
def test_networks_on_features_train_on_mini_batches(backbone: str) -> None:
    from everynode.datasets import generate

    settings = Settings(backbone=backbone, epochs=15, hidden_channels=8, lr=0.01, tv=0.0, cvg=0.0)
    fitted = train(generate(200, 500, 8, 3), settings, batches=Batches(32, (4,)))
    assert fitted.epochs == 15
    assert fitted.metrics["val_accuracy"] > 0.6
