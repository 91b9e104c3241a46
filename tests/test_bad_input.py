"""Bad input: one clear sentence with the way out, exit code 2 (usage) or 3 (data), no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save as tensors_to_bytes

import everynode as en
from everynode.errors import DataError, EverynodeError

EVERYNODE = str(Path(sys.executable).parent / "everynode")
pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
USAGE, DATA = 2, 3


def content(folder: Path = Path()) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def assert_one_sentence(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("everynode: ")
    assert done.stderr.endswith(".\n")
    assert done.stderr.count("\n") == 1, f"more than one line: {done.stderr}"
    for part in parts:
        assert part in done.stderr, f"{part!r} is not in: {done.stderr}"


# ---------------------------------------------------------------------- words and numbers on the command line

TRAIN = "train citeseer --epochs 1"
COMPARE = "compare citeseer --epochs 1 --seeds 1"
WORDS = {
    # the command: what the sentence must name, and the way out
    "train citesser": ("'citesser'", "did you mean 'citeseer'"),
    "train nothing": ("'nothing'", "Choose from: cora, citeseer"),
    "data check nothing": ("'nothing'", "Choose from: cora, citeseer"),
    "compare nothing": ("'nothing'", "Choose from: cora, citeseer"),
    "fit club.graphml": ("'club.graphml'", "--nodes", "'everynode fit --help'"),
    f"{TRAIN} more words": (
        "'more words'",
        "write its option before it",
        "'everynode train --help'",
    ),
    f"{TRAIN} --split geomgcn": ("'geomgcn'", "public, geom-gcn, random"),
    "data check citeseer --split official": ("'official'", "public, geom-gcn, random"),
    f"{TRAIN} --fold 1": ("fold 1", "0 to 0"),
    f"{TRAIN} --fold -1": ("fold -1", "0 to 0"),
    f"{TRAIN} --backbone gnc": ("gnc", "gcnii"),
    f"{TRAIN} --objective mi+tvv": ("'tvv'", "did you mean 'tv'"),
    f"{TRAIN} --objective": ("--objective", "--help"),
    f"{TRAIN} --objective preg": ("preg", "--preg 1"),
    f"{TRAIN} --objective tv --tv 0": ("tv", "--tv 1"),
    f"{TRAIN} --preset papers": ("papers", "paper"),
    f"{TRAIN} --preset paper --split random --backbone gcnn": ("gcnn", "gcnii"),
    f"{TRAIN} --monitor best": ("best", "accuracy"),
    f"{TRAIN} --halves thirds": ("thirds", "stratified"),
    f"{TRAIN} --tv-gate open": ("open", "raw"),
    "train citeseer --epochs many": ("--epochs", "many"),
    "train citeseer --epochs 0": ("'epochs'", "0", ">= 1"),
    f"{TRAIN} --patience 0": ("'patience'", "0", ">= 1"),
    f"{TRAIN} --mi heavy": ("--mi", "heavy"),
    f"{TRAIN} --mi -1": ("'mi'", "-1", ">= 0"),
    f"{TRAIN} --tv -0.5": ("'tv'", "-0.5", ">= 0"),
    f"{TRAIN} --cvg -2": ("'cvg'", "-2", ">= 0"),
    f"{TRAIN} --objective enc+preg --preg -2": ("'preg'", "-2", ">= 0"),
    f"{TRAIN} --tv nan": ("'tv'", "nan"),
    f"{TRAIN} --lr 0": ("'lr'", "> 0"),
    f"{TRAIN} --lr-gnn -1": ("'lr_gnn'", "> 0"),
    f"{TRAIN} --weight-decay -1": ("'weight_decay'", ">= 0"),
    f"{TRAIN} --num-layers 0": ("'num_layers'", ">= 1"),
    f"{TRAIN} --hidden-channels 0": ("'hidden_channels'", ">= 1"),
    f"{TRAIN} --dropout 1": ("'dropout'", "[0, 1)"),
    f"{TRAIN} --layer-dropout -0.1": ("'layer_dropout'", "[0, 1)"),
    f"{TRAIN} --tv-sigma 0": ("sigma", "> 0"),
    f"{TRAIN} --mi-lambda -1": ("lam", ">= 0"),
    f"{TRAIN} --seed -1": ("seed", "-1"),
    f"{TRAIN} --seed 99999999999999999999999": ("seed", "99999999999999999999999"),
    f"{TRAIN} --threads 0": ("threads", "0"),
    f"{TRAIN} --split random --per-class 0": ("per_class", ">= 1"),
    f"{TRAIN} --split random --split-seed -1": ("seed", "-1"),
    f"{TRAIN} --device abacus": ("'abacus'", "use the device 'cpu'"),
    f"{TRAIN} --device meta": ("'meta'", "use the device 'cpu'"),
    f"{TRAIN} --frobnicate 3": ("--frobnicate", "--help"),
    "train": ("everynode data list", "--nodes"),
    "trane citeseer": ("trane", "train"),
    f"{COMPARE} --objective ce": ("Cross-entropy", "--objective"),
    f"{COMPARE} --workers 0": ("--workers", "at least 1"),
    "compare citeseer --epochs 1 --folds 2": ("1 fold", "--split"),
    f"{COMPARE} --folds 1": ("leave out --seeds and --fold",),
    f"{COMPARE} --folds 0": ("--folds", "at least 1"),
    f"{COMPARE} --fold 3": ("fold 3", "0 to 0"),
    f"{COMPARE} --num-layers 0": ("'num_layers'", ">= 1"),
    f"{COMPARE} --seed -1": ("seed", "-1"),
    "compare citeseer --epochs 1 --seeds 0": ("--seeds", "at least 1"),
}


@pytest.mark.parametrize("command", WORDS)
def test_a_wrong_word_or_number_is_refused_before_anything_is_written(call, command):
    assert_one_sentence(call(*command.split()), USAGE, *WORDS[command])
    assert content() == {}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there(call):
    assert_one_sentence(
        call(*TRAIN.split(), "--device", "cuda"), USAGE, "'cuda'", "use the device 'cpu'"
    )
    assert content() == {}


# ---------------------------------------------------------------------- files of the public graphs


@pytest.fixture
def texas(data_root, tmp_path) -> Path:
    """A data folder with Texas alone, to be damaged."""
    shutil.copytree(data_root / "texas", tmp_path / "graphs" / "texas")
    for path in (tmp_path / "graphs").rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return tmp_path / "graphs"


def change_a_byte(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "name", ["out1_node_feature_label.txt", "out1_graph_edges.txt", "texas_split_0.6_0.2_3.npz"]
)
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (change_a_byte, ("is not the public file", "SHA-256", "Fetch it again from https://")),
        (cut_short, ("is not the public file", "incomplete", "Fetch it again from https://")),
        (Path.unlink, ("is missing", "put it there", "https://")),
    ],
)
def test_a_damaged_public_file(call, texas, name, damage, says):
    path = texas / "texas" / "raw" / name
    damage(path)
    before = content()
    for command in ("train texas --epochs 1", "data check texas"):
        assert_one_sentence(call(*command.split(), "--data-dir", texas), DATA, str(path), *says)
        assert content() == before


def test_undamaged_the_same_copy_is_fine(call, texas):
    assert call("train", "texas", "--epochs", 1, "--data-dir", texas).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        "train texas",
        "compare texas",
        "data check cora",
        "train ogbn-arxiv",
        "train citeseer --split geom-gcn",
    ],
)
def test_an_empty_data_folder(call, tmp_path, command):
    (tmp_path / "empty").mkdir()
    done = call(*command.split(), "--data-dir", tmp_path / "empty")
    assert_one_sentence(done, DATA, str(tmp_path / "empty"), "is missing")
    assert content() == {"empty": None}


def test_a_data_folder_in_the_environment_is_named_too(call, tmp_path, monkeypatch):
    monkeypatch.setenv("EVERYNODE_DATA", str(tmp_path / "nowhere"))
    assert_one_sentence(
        call("train", "texas"), DATA, str(tmp_path / "nowhere"), "is missing", "EVERYNODE_DATA"
    )
    assert content() == {}


# ---------------------------------------------------------------------- --out


@pytest.fixture
def model(call) -> Path:
    """A finished run."""
    assert call(*TRAIN.split(), "--out", "model").returncode == 0
    return Path("model")


def half_done(model: Path, state: bytes = b"not a state") -> None:
    (model / "model.json").unlink()
    (model / "training.safetensors").write_bytes(state)


def state_of_another_model(model: Path) -> None:
    from everynode.training import train

    graph = en.load("citeseer")
    train(
        graph, en.Settings(hidden_channels=4, epochs=1), checkpoint=model / "training.safetensors"
    )


def somebodys_weights(model: Path) -> None:
    for name in ("run.json", "model.json"):
        (model / name).unlink()


OUT = {
    "a run of another command": (
        lambda m: (m / "run.json").write_text(json.dumps({"key": "0"})),
        USAGE,
        ("another run", "--no-resume"),
    ),
    "a model of another origin": (
        lambda m: (m / "run.json").unlink(),
        USAGE,
        ("model.json", "files of something else", "--no-resume"),
    ),
    "run.json is garbage": (
        lambda m: (m / "run.json").write_bytes(b"\xff{{"),
        DATA,
        ("run.json", "--no-resume"),
    ),
    "model.json is garbage": (
        lambda m: (m / "model.json").write_text("{"),
        DATA,
        ("model.json", "--no-resume"),
    ),
    "model.json is empty of the run": (
        lambda m: (m / "model.json").write_text("{}"),
        DATA,
        ("model.json", "--no-resume"),
    ),
    "the state is garbage": (half_done, DATA, ("training.safetensors", "--no-resume")),
    "somebody's weights": (
        somebodys_weights,
        USAGE,
        ("(model.safetensors)", "files of something else", "--no-resume"),
    ),
    "the state is another model's": (
        state_of_another_model,
        DATA,
        ("training.safetensors", "--no-resume"),
    ),
}


@pytest.mark.parametrize("kind", OUT)
def test_an_out_folder_that_is_not_this_runs(call, model, kind):
    damage, code, says = OUT[kind]
    damage(model)
    before = content()
    assert_one_sentence(call(*TRAIN.split(), "--out", "model", "--quiet"), code, "model", *says)
    after = content()
    after["model/run.json"] = before.get("model/run.json")  # this run's own note may be renewed
    before.setdefault("model/run.json", None)
    assert after == before
    assert call(*TRAIN.split(), "--out", "model", "--no-resume").returncode == 0, (
        "the way out that was named does not work"
    )


def test_somebodys_file_with_the_name_of_a_state_is_not_removed(call):
    Path("model").mkdir()
    Path("model/training.safetensors").write_bytes(tensors_to_bytes({"weight": torch.ones(3)}))
    before = content()
    for again in ((), ("--no-resume",)):
        done = call(*TRAIN.split(), "--out", "model", *again)
        assert_one_sentence(
            done,
            USAGE,
            "model/training.safetensors is not a training state of everynode: choose another --out",
        )
        assert content() == before


@pytest.mark.parametrize("bad", ["--num-layers 0", "--dropout 2", "--tv-sigma 0", "--mi -1"])
def test_no_resume_with_a_wrong_number_does_not_cost_the_model_that_is_there(call, model, bad):
    before = content()
    assert call(*TRAIN.split(), "--out", "model", "--no-resume", *bad.split()).returncode == USAGE
    assert content() == before


def test_out_is_a_file(call):
    Path("file").write_text("precious")
    assert_one_sentence(
        call(*TRAIN.split(), "--out", "file"), USAGE, "file is a file", "choose a folder for --out"
    )
    assert_one_sentence(
        call(*TRAIN.split(), "--out", "file/below"), DATA, "file/below", "write elsewhere"
    )
    assert_one_sentence(call(*COMPARE.split(), "--out", "file"), DATA, "file", "another file")
    assert content() == {"file": b"precious"}


@pytest.mark.parametrize(
    "garbage",
    [b"these are my notes, and not a database" * 40, b"SQLite format 3\x00" + b"\x07" * 4000],
)
def test_a_store_that_is_garbage(call, garbage):
    Path("runs").mkdir()
    Path("runs/runs.db").write_bytes(garbage)
    assert_one_sentence(call(*COMPARE.split()), DATA, "runs/runs.db", "another file")
    assert content() == {"runs": None, "runs/runs.db": garbage}


def test_a_store_of_something_else(call):
    import sqlite3

    Path("runs").mkdir()
    connection = sqlite3.connect("runs/runs.db")
    connection.execute("CREATE TABLE precious (a)")
    connection.commit()
    connection.close()
    before = content()
    assert_one_sentence(
        call(*COMPARE.split()), DATA, "runs/runs.db", "not a store of runs", "another file"
    )
    assert content() == before


# ---------------------------------------------------------------------- a full disk


def spawn_with_limit(
    limit: int, *arguments: str, of: str = "RLIMIT_FSIZE"
) -> subprocess.CompletedProcess[str]:
    """In a process with a limit of so many bytes: to its files, as on a full disk, or to another of ``resource``'s things."""
    import resource

    done = subprocess.run(
        [EVERYNODE, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(getattr(resource, of), (limit, limit)),
    )
    return done


unix = pytest.mark.skipif(
    sys.platform == "win32", reason="plays a full disk with setrlimit, which Windows does not have"
)


@unix
def test_a_disk_that_is_full_at_once_leaves_nothing(tmp_path):
    done = spawn_with_limit(10, *TRAIN.split(), "--out", "model", "--quiet")
    assert_one_sentence(
        done, DATA, "Cannot write model/run.json", "free some space or write elsewhere"
    )
    assert [p for p in Path().rglob("*") if p.is_file()] == []


@unix
def test_a_disk_that_is_full_in_the_middle_leaves_no_half_file(call):
    done = spawn_with_limit(100_000, *TRAIN.split(), "--out", "model", "--quiet")
    assert_one_sentence(done, DATA, "Cannot write model/", "free some space or write elsewhere")
    assert [p.name for p in Path("model").iterdir()] == ["run.json"]
    assert call(*TRAIN.split(), "--out", "model").returncode == 0, (
        "with space again, the same command goes on"
    )


@unix
def test_a_disk_that_is_full_for_the_store():
    done = spawn_with_limit(2_000, *COMPARE.split(), "--workers", "1", "--quiet")
    assert_one_sentence(done, DATA, "runs/runs.db", "free some disk space", "repeat the command")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [EVERYNODE, "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode not in (0, None)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


@unix
def test_a_reader_that_closes_the_pipe_is_no_error():
    done = subprocess.run(
        f"'{EVERYNODE}' data list | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("cora")
    assert done.stderr == ""


# ---------------------------------------------------------------------- graphs from Python


def parts(train, val, test) -> list[en.Split]:
    return [en.Split(*(torch.tensor(nodes, dtype=torch.int64) for nodes in (train, val, test)))]


def make(**changes) -> en.Graph:
    """A graph of six nodes, with one thing changed."""
    arguments = {
        "features": np.eye(6, 4, dtype=np.float32) + 1,
        "edge_index": [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]],
        "labels": [0, 1, 0, 1, 0, 1],
        "splits": parts([0, 1], [2, 3], [4, 5]),
    }
    return en.Graph.from_arrays(**{**arguments, **changes})


def spoilt(value: float) -> np.ndarray:
    features = np.ones((6, 4), dtype=np.float32)
    features[2, 3] = value
    return features


def pyg_with_overlap():
    from torch_geometric.data import Data

    mask = torch.tensor([True, True, False, False, False, False])
    edges = torch.tensor([[0, 1], [1, 2]])
    return Data(
        x=torch.ones(6, 2),
        y=torch.tensor([0, 1] * 3),
        edge_index=edges,
        train_mask=mask,
        val_mask=~mask,
        test_mask=mask,
    )


GRAPHS = {
    "NaN feature": (lambda: make(features=spoilt(np.nan)), ("Feature 3 of node 2 is nan", "fill in or drop")),
    "infinite feature": (lambda: make(features=spoilt(np.inf)), ("Feature 3 of node 2 is inf", "fill in or drop")),
    "label above": (lambda: make(labels=[0, 1, 0, 7, 0, 1], classes=[0, 1]), ("Node 3", "label 7", "0 to 1")),
    "label below": (lambda: make(labels=[0, 1, 0, -2, 0, 1]), ("Node 3", "label -2", "-1 means unlabeled")),
    "unknown class": (lambda: make(labels=["a", "b", "a", "b", "a", "z"], classes=["a", "b"]), ("Node 5", "'z'", "2 classes")),
    "labels too few": (lambda: make(labels=[0, 1]), ("6 nodes", "2 have labels", "one label")),
    "masks overlap": (lambda: make(splits=parts([0, 1], [1, 2], [3])), ("Node 1", "train and val", "disjoint")),
    "test in train": (lambda: make(splits=parts([0, 1], [2], [0, 1])), ("Node 0", "train and test", "disjoint")),
    "masks of PyG overlap": (lambda: en.Graph.from_pyg(pyg_with_overlap()), ("Node 0", "train and test", "disjoint")),
    "split outside": (lambda: make(splits=parts([0, 1], [2], [6])), ("test nodes of fold 0", "0 to 5")),
    "edge outside": (lambda: make(edge_index=[[0, 1], [1, 9]]), ("Edge 1", "1 and 9", "drop these edges")),
    "edges upright": (lambda: make(edge_index=[[0, 1], [1, 2], [2, 3]]), ("2 x m", "(3, 2)")),
    "no labeled node": (lambda: en.train(make(labels=[-1] * 6)), ("no labeled", "set some labeled nodes apart")),
    "no labeled training node": (lambda: en.train(make(labels=[-1, -1, 0, 1, 0, 1])), ("train",)),
    "no labeled validation node": (lambda: en.train(make(labels=[0, 1, -1, -1, 0, 1])), ("validation node", "set some labeled nodes apart")),
    "no split": (lambda: en.train(make(splits=())), ("has no split", "with_splits")),
    "one class": (lambda: en.train(make(labels=[0] * 6)), ("1 class", "two classes")),
    "no labeled node for the estimator": (lambda: en.NodeClassifier().fit(make(labels=[-1] * 6, splits=())), ("class", "label")),
    "weights that are not positive": (lambda: make(edge_weight=[1, 1, -1, 1, 1]), ("Edge 2", "-1", "positive")),
}  # fmt: skip


@pytest.mark.parametrize("kind", GRAPHS)
def test_a_bad_graph_is_refused_in_one_sentence(kind):
    do, says = GRAPHS[kind]
    with pytest.raises(DataError) as caught:
        do()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    for part in says:
        assert part in text, f"{part!r} is not in: {text}"


def test_bad_parameters_are_refused_in_one_sentence():
    for bad in (
        {"backbone": "gnc"},
        {"cv": 1},
        {"settings": {"tv": -1.0}},
        {"settings": {"monitor": "best"}},
        {"objective": "fun"},
        {"settings": "mine"},
    ):
        with pytest.raises(EverynodeError) as caught:
            en.NodeClassifier(**{"settings": {"epochs": 1}, **bad}).fit(make())
        assert caught.value.exit_code == USAGE
        value = next(iter(bad.values()))
        value = next(iter(value.values())) if isinstance(value, dict) else value
        assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backbones", "sage"], "Unknown backbone 'sage'"),
        (["--objectives", "nothing"], "Unknown objective 'nothing'"),
        (["--threads", "0"], "'threads' of bench must be >= 1"),
        (["--threads", "two"], "--threads takes numbers"),
        (["--graphs", "nowhere"], "Unknown graph 'nowhere'"),
    ],
)
def test_a_benchmark_of_nothing(call, arguments, words):
    done = call("bench", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux keeps a process to the memory that RLIMIT_AS grants"
)
def test_too_little_memory_is_said_with_the_way_out():
    done = spawn_with_limit(
        4 * 2**30,
        *TRAIN.split(),
        "--hidden-channels",
        "30000",
        "--out",
        "model",
        "--quiet",
        of="RLIMIT_AS",
    )
    assert_one_sentence(done, DATA, "Not enough memory", "--batch-size", "--hidden-channels")
