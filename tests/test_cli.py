"""The command line as people meet it. What must be a process of its own is one; the rest calls main() and saves the imports."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import everynode.cli
from everynode import __version__
from everynode.experiments.store import Store
from everynode.objective_names import objective_name
from everynode.objectives.kernel_code import kernels
from everynode.training import load_model

EVERYNODE = str(Path(sys.executable).parent / "everynode")
PROMISED = {
    "dataset", "backbone", "objective", "preset", "split", "fold", "seed", "epochs", "best_epoch",
    "val_accuracy", "test_accuracy", "seconds", "seconds_per_epoch", "peak_mb",
}  # fmt: skip
pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of Unix"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]


def spawn(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """``everynode ...`` in a separate process."""
    return subprocess.run(
        [EVERYNODE, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [EVERYNODE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def timeless(record: dict) -> dict:
    return {
        name: value
        for name, value in record.items()
        if name not in ("seconds", "seconds_per_epoch", "peak_mb")
    }


# ---------------------------------------------------------------------- the first impression


def test_no_module_of_a_command_replaces_the_app():
    code = "import everynode.cli as cli; cli.resolve([]); cli.app(['--version'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert done.stdout.strip()


def test_help_names_the_commands():
    done = spawn("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("train", "compare", "tune", "data", "bench"))


#: Packages that take long to import.
HEAVY = frozenset(
    [
        "torch",
        "numpy",
        "scipy",
        "sklearn",
        "torch_geometric",
        "safetensors",
        "networkx",
        "numba",
        "optuna",
        "pandas",
        "matplotlib",
    ]
)
#: What the command line must not import for one training.
NOT_FOR_A_TRAINING = HEAVY - {"torch", "numpy", "scipy", "safetensors"} | {
    "torch._dynamo",
    "torch._inductor",
    "sympy",
    "scipy.stats",
    "scipy.optimize",
    "scipy.sparse.csgraph",
    "scipy.linalg",
}


def modules_after(code, **options):
    """Return the modules that some code imports in a new process."""
    ended = (
        f"import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n{code}"
    )
    done = subprocess.run(
        [sys.executable, "-c", ended], capture_output=True, text=True, timeout=60, **options
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split()), done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["train", "--help"],
        ["compare", "--help"],
        ["tune", "--help"],
        ["--version"],
        ["data", "--help"],
    ],
)
def test_help_imports_nothing_that_computes(arguments):
    code = f"sys.argv = ['everynode', *{arguments!r}]\nfrom everynode.cli import main\nmain()"
    modules, shown = modules_after(code)
    assert "everynode.cli" in modules
    assert not HEAVY & modules
    assert shown.strip()


def test_a_command_imports_no_other():
    modules, _ = modules_after(
        "sys.argv = ['everynode', 'train', '--help']\nfrom everynode.cli import main\nmain()"
    )
    commands = {path.stem for path in Path(everynode.cli.__path__[0]).glob("*.py")}
    assert {"train", "fit", "tune"} <= commands
    assert not {"fit", "tune", "bench", "report", "results"} & {
        m.split(".")[-1] for m in modules if m.startswith("everynode.cli.")
    }


def test_the_package_imports_nothing_that_computes():
    modules, _ = modules_after("import everynode")
    assert "everynode" in modules
    assert not HEAVY & modules


def test_a_training_imports_no_compiler_and_no_unused_package(tmp_path):
    """PyTorch's compiler and numba take longer to import than an epoch of a small graph."""
    kernels("float32")  # their machine code is on disk from now on
    words = "train citeseer --epochs 1 --quiet --out model"
    modules, shown = modules_after(
        f"sys.argv = ['everynode', *{words.split()!r}]\nfrom everynode.cli import main\nmain()",
        cwd=tmp_path,
    )
    assert "test accuracy" in shown
    assert "everynode.training.adam" in modules
    assert not NOT_FOR_A_TRAINING & modules


@pytest.mark.parametrize("command", ["fit", "train", "compare"])
def test_flags_are_listed_by_what_they_are_for(call, command):
    text = call(command, "--help").stdout
    heads = re.findall(r"^╭─ (.*?) ─", text, re.MULTILINE)
    assert "Parameters" not in heads, "every flag has a place"
    shared = ["Training", "Model", "Objective", "Optimizer", "Output"]
    assert [head for head in heads if head in shared] == shared
    boxes = dict(re.findall(r"^╭─ (.*?) ─+╮$(.*?)^╰", text, re.MULTILINE | re.DOTALL))
    assert all(box.count("│ --") <= 22 for box in boxes.values())
    assert "--tv" in boxes["Objective"]
    assert "--tv-sigma" in boxes["Single terms"]
    assert "--appnp-alpha" in boxes["Single models"]
    assert "--quiet" in boxes["Output"]


def test_every_promised_flag_is_in_the_help(call):
    text = call("train", "--help").stdout
    flags = (
        "--backbone --num-layers --objective --mi --tv --cvg --mi-lambda --tv-sigma --preset --split --fold --seed --epochs "
        "--patience --monitor --class-weight --device --out --json --quiet --resume --no-resume --data-dir"
    )
    assert [flag for flag in flags.split() if not re.search(rf"{flag}\b", text)] == []
    text = call("compare", "--help").stdout
    assert [
        flag
        for flag in ("--seeds", "--workers", "--folds", "--json", "--out")
        if not re.search(rf"{flag}\b", text)
    ] == []


def test_version(call):
    done = call("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


# ---------------------------------------------------------------------- train


def test_train_json_is_one_object_and_nothing_else():
    done = spawn("train", "citeseer", "--epochs", 5, "--json")
    assert done.returncode == 0
    record = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert record.keys() >= PROMISED
    assert not set("{\x1b\r") & set(done.stderr), (
        "JSON, or a terminal's control characters where there is no terminal"
    )
    assert (record["dataset"], record["backbone"], record["objective"], record["preset"]) == (
        "citeseer",
        "gcn",
        "enc",
        "default",
    )
    assert (record["split"], record["fold"], record["seed"], record["epochs"]) == (
        "public",
        0,
        0,
        5,
    )
    assert 0 <= record["best_epoch"] < 5
    assert 0.3 < record["val_accuracy"] < 1
    assert 0.3 < record["test_accuracy"] < 1
    assert record["seconds"] > 0
    assert record["seconds_per_epoch"] == pytest.approx(record["seconds"] / 5, abs=1e-4)
    assert sorted(p.name for p in Path().iterdir()) == ["runs"]


def test_train_says_what_it_got_and_where_it_is(call):
    done = call("train", "citeseer", "--epochs", 3, "--objective", "tv", "--out", "model")
    assert done.returncode == 0
    card = json.loads(Path("model/model.json").read_text())
    assert f"test accuracy        {100 * card['run']['test_accuracy']:.1f} %" in done.stdout
    assert f"validation accuracy  {100 * card['metrics']['val_accuracy']:.1f} %" in done.stdout
    assert "model                model" in done.stdout


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_every_backbone_trains(call, backbone):
    record = json.loads(
        call(
            "train", "citeseer", "--backbone", backbone, "--epochs", 2, "--num-layers", 2, "--json"
        ).stdout
    )
    assert (
        record["backbone"],
        record["settings"]["backbone"],
        record["settings"]["num_layers"],
    ) == (backbone, backbone, 2)


@pytest.mark.parametrize(
    ("objective", "on"),
    [
        ("enc", {"mi", "tv", "cvg"}),
        ("ce", set()),
        ("mi", {"mi"}),
        ("tv", {"tv"}),
        ("cvg", {"cvg"}),
        ("tv+mi", {"mi", "tv"}),
    ],
)
def test_an_objective_switches_its_terms_on_and_the_others_off(call, objective, on):
    record = json.loads(
        call("train", "citeseer", "--objective", objective, "--epochs", 1, "--json").stdout
    )
    assert record["objective"] == objective_name(objective)
    assert {term for term in ("mi", "tv", "cvg", "preg") if record["settings"][term]} == on
    card = json.loads(next(Path("runs").glob("*/model.json")).read_text())
    assert set(card["history"]) == {"ce", "total", "val_loss", "val_accuracy", "test_accuracy", *on}


FLAGS = {
    "num_layers": 3, "hidden_channels": 16, "dropout": 0.25, "layer_dropout": 0.125, "normalize_features": True, "mi": 0.7, "mi_lambda": 1.5, "tv": 1.25,
    "tv_sigma": 3.0, "tv_gate": "row", "cvg": 0.5, "halves": "fixed", "preg": 0.0, "lr_gnn": 0.002, "lr": 0.004, "weight_decay_gnn": 0.001,
    "weight_decay": 0.02, "epochs": 2, "patience": 9, "monitor": "macro_f1", "class_weight": "balanced",
}  # fmt: skip


def test_flags_change_the_settings_in_the_record(call):
    flags = [
        part
        for name, value in FLAGS.items()
        for part in (f"--{name.replace('_', '-')}", *(() if value is True else (value,)))
    ]
    record = json.loads(call("train", "citeseer", *flags, "--seed", 7, "--json").stdout)
    assert {name: record["settings"][name] for name in FLAGS} == FLAGS
    assert record["seed"] == 7
    assert record["epochs"] == 2


def test_the_paper_is_a_preset(call):
    from everynode.settings import Settings

    record = json.loads(
        call("train", "citeseer", "--preset", "paper", "--epochs", 1, "--json").stdout
    )
    expected = Settings.preset("paper", graph="citeseer", split="public", backbone="gcn", epochs=1)
    assert record["preset"] == "paper"
    assert Settings(**record["settings"]) == expected
    assert record["settings"]["mi_lambda"] == 2.0
    assert record["settings"]["normalize_features"] is True


def test_a_random_split_has_so_many_training_nodes_per_class(call):
    one = json.loads(
        call(
            "train", "citeseer", "--split", "random", "--per-class", 5, "--epochs", 1, "--json"
        ).stdout
    )
    two = json.loads(
        call(
            "train",
            "citeseer",
            "--split",
            "random",
            "--per-class",
            5,
            "--split-seed",
            1,
            "--epochs",
            1,
            "--json",
        ).stdout
    )
    assert one["split"] == two["split"] == "random"
    assert one["key"] != two["key"]


def test_a_fold_of_ten(call, data_root):
    record = json.loads(
        call("train", "texas", "--data-dir", data_root, "--fold", 7, "--epochs", 2, "--json").stdout
    )
    assert (record["split"], record["fold"]) == ("geom-gcn", 7)
    assert (
        call("train", "texas", "--data-dir", data_root, "--fold", 10, "--epochs", 2).returncode == 2
    )


def test_out_holds_the_model_and_the_command(call):
    record = json.loads(
        call("train", "citeseer", "--epochs", 3, "--out", "deep/model", "--json").stdout
    )
    assert sorted(p.name for p in Path("deep/model").iterdir()) == [
        "model.json",
        "model.safetensors",
        "run.json",
    ]
    network, card = load_model("deep/model")
    assert card["run"] == record
    assert card["epochs"] == 3
    assert json.loads(Path("deep/model/run.json").read_text())["command"].startswith(
        "everynode train citeseer "
    )

    from everynode.datasets import load
    from everynode.training import evaluate

    assert evaluate(network, load("citeseer"), "test") == record["test_accuracy"]


def test_the_same_command_again_says_that_it_is_finished(call):
    command = ("train", "citeseer", "--epochs", 3, "--out", "model", "--json")
    first = call(*command)
    files = {p.name: p.read_bytes() for p in Path("model").iterdir()}
    second = call(*command)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert "finished before" in second.stderr
    assert "--no-resume" in second.stderr
    assert {p.name: p.read_bytes() for p in Path("model").iterdir()} == files


def test_another_command_into_the_same_folder_is_refused(call):
    call("train", "citeseer", "--epochs", 3, "--out", "model")
    files = {p.name: p.read_bytes() for p in Path("model").iterdir()}
    for change in (["--seed", 1], ["--patience", 4], ["--objective", "ce"]):
        done = call("train", "citeseer", "--epochs", 3, "--out", "model", *change)
        assert (done.returncode, done.stdout) == (2, "")
        assert "model has another run" in done.stderr
        assert {p.name: p.read_bytes() for p in Path("model").iterdir()} == files


def test_no_resume_trains_again_and_replaces(call):
    first = json.loads(call("train", "citeseer", "--epochs", 3, "--out", "model", "--json").stdout)
    again = call("train", "citeseer", "--epochs", 3, "--out", "model", "--json", "--no-resume")
    assert "finished" not in again.stderr
    assert timeless(json.loads(again.stdout)) == timeless(first)
    other = json.loads(
        call("train", "citeseer", "--epochs", 4, "--out", "model", "--json", "--no-resume").stdout
    )
    assert other["epochs"] == 4
    assert load_model("model")[1]["run"] == other


def test_quiet_is_quiet(call):
    for extra in ([], ["--json"]):
        assert call("train", "citeseer", "--epochs", 2, "--quiet", *extra).stderr == ""


# ---------------------------------------------------------------------- interrupted is normal

LONG = ("train", "citeseer", "--epochs", 25, "--seed", 3, "--out", "model", "--json")
#: The command, but with a checkpoint after every epoch, so that these tests need not train for seconds.
EAGER = """
import everynode.experiments.tasks as tasks
from everynode.cli import main
assert "checkpoint_every" in tasks.train_run.__kwdefaults__
tasks.train_run.__kwdefaults__["checkpoint_every"] = 0.0
main()
"""


#: And with Ctrl-C pressed once, after the first checkpoint: from outside it might come when the training has ended already.
PRESSED = """
import os, signal
from everynode.training.checkpoint import TrainingState
save = TrainingState.save
def press(state, path):
    save(state, path)
    TrainingState.save = save
    os.kill(os.getpid(), signal.SIGINT)
TrainingState.save = press
"""


def start_eagerly(*arguments: object, before: str = "") -> subprocess.Popen:
    command = [sys.executable, "-c", before + EAGER, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def undisturbed(call) -> dict:
    """The record of LONG when nobody interferes."""
    record = json.loads(call(*LONG[:-2], "other", "--json").stdout)
    assert record["epochs"] == 25
    return timeless(record)


@pytest.mark.long
def test_kill_9_loses_nothing_that_counts(undisturbed):
    """Killed while it starts, after a checkpoint, and at any time; then the same command ends where it would have ended."""
    state = Path("model/training.safetensors")
    random = int.from_bytes(os.urandom(2)) / 2**16
    for moment in ("starting", "checkpoint", "any"):
        process = start_eagerly(
            *LONG, before=PRESSED.replace("SIGINT", "SIGKILL") if moment == "checkpoint" else ""
        )
        try:
            if moment == "checkpoint":
                assert process.wait(60) == -signal.SIGKILL
            else:
                time.sleep(0.4 if moment == "starting" else 2 * random)
        finally:
            process.kill()
            process.communicate()
        if moment == "checkpoint":
            assert state.exists()
            assert not Path("model/model.json").exists()
    done = spawn(*LONG)
    assert done.returncode == 0
    assert timeless(json.loads(done.stdout)) == undisturbed
    assert timeless(load_model("model")[1]["run"]) == undisturbed
    assert not state.exists()


@pytest.mark.long
def test_ctrl_c_keeps_the_best_and_the_same_command_goes_on(undisturbed, call):
    process = start_eagerly(*LONG, before=PRESSED)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert re.search(r"Interrupted after \d+ epochs: the best model so far is saved", err)
    record = json.loads(out)
    assert record["interrupted"]
    assert record["epochs"] == 1
    assert load_model("model")[1]["run"] == record
    done = call(*LONG)
    assert done.returncode == 0
    assert "Continuing from" in done.stderr
    assert timeless(json.loads(done.stdout)) == undisturbed
    assert sorted(p.name for p in Path("model").iterdir()) == [
        "model.json",
        "model.safetensors",
        "run.json",
    ]


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_ctrl_c_before_the_first_epoch_ends_the_command_at_once(seconds):
    process = start("train", "citeseer", "--epochs", 500, "--out", "model")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # the latter before main() has begun
    assert "Traceback" not in err or process.returncode == -signal.SIGINT


def test_ctrl_c_that_is_lost_in_an_import_still_ends_the_command(tmp_path):
    """Python swallows what is raised in a weak reference's callback, importlib has such callbacks, and so a Ctrl-C can be lost."""
    (tmp_path / "swallow.py").write_text(
        """
import os, signal, sys, weakref
from everynode.cli import app, main

class Thing:
    pass

@app.command
def swallow():
    thing = Thing()
    watcher = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del thing
    print("went on")

sys.argv = ["everynode", "swallow"]
main()
"""
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "swallow.py"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 130
    assert "went on" not in done.stdout


# ---------------------------------------------------------------------- compare


def test_compare_json_has_the_runs_and_the_summary(call):
    done = call("compare", "citeseer", "--seeds", 2, "--epochs", 5, "--workers", 1, "--json")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert [(r["seed"], r["objective"]) for r in found["runs"]] == [
        (0, "ce"),
        (0, "enc"),
        (1, "ce"),
        (1, "enc"),
    ]
    assert all(run.keys() >= PROMISED for run in found["runs"])
    scores = {
        o: [r["test_accuracy"] for r in found["runs"] if r["objective"] == o] for o in ("ce", "enc")
    }
    summary = found["summary"]
    for objective, values in scores.items():
        assert summary["test_accuracy"][objective]["mean"] == pytest.approx(sum(values) / 2)
        assert (
            summary["test_accuracy"][objective]["low"]
            < sum(values) / 2
            < summary["test_accuracy"][objective]["high"]
        )
    assert summary["gain"]["mean"] == pytest.approx((sum(scores["enc"]) - sum(scores["ce"])) / 2)
    assert 0 < summary["gain"]["p_value"] <= 1
    same = {
        name: value
        for name, value in found["runs"][0]["settings"].items()
        if name not in ("mi", "tv", "cvg")
    }
    assert all(same.items() <= run["settings"].items() for run in found["runs"]), (
        "something but the objective differs"
    )


def test_compare_goes_on_when_a_training_diverges(call, monkeypatch):
    from everynode.experiments import runner
    from everynode.experiments.tasks import Result

    def carry_out(run, *rest, real=runner.carry_out):
        if (run.objective, run.seed) == ("enc", 1):
            return Result({**run.describe(), "error": "The loss became nan."}, {})
        return real(run, *rest)

    monkeypatch.setattr(runner, "carry_out", carry_out)
    command = ("compare", "citeseer", "--epochs", 3, "--workers", 1)
    for _ in range(2):  # the second time all is known
        done = call(*command, "--seeds", 3)
        assert done.returncode == 0
        assert "Left out 1 seed because a training diverged." in done.stderr
        assert "2 of 3 seeds" in done.stdout
        assert "p =" not in done.stdout
    none = call(*command, "--seeds", 1, "--seed", 1)
    assert (none.returncode, none.stdout) == (1, "")
    assert none.stderr.endswith("everynode: The loss became nan.\n")


def test_compare_forgets_nothing_of_a_damaged_store(call):
    command = ("compare", "citeseer", "--seeds", 1, "--epochs", 3, "--workers", 1)
    assert call(*command).returncode == 0
    with closing(sqlite3.connect("runs/runs.db")) as connection, connection:
        connection.execute(
            "UPDATE runs SET record = replace(record, 'interrupted', 'interrupteD') WHERE rowid = 1"
        )
    before = Path("runs/runs.db").read_bytes()
    done = call(*command, "--no-resume")
    assert (done.returncode, done.stdout) == (3, "")
    assert "is damaged" in done.stderr
    assert Path("runs/runs.db").read_bytes() == before


COMPARED = ("compare", "citeseer", "--seeds", 2, "--epochs", 3, "--hidden-channels", 4, "--quiet")


def test_compare_shows_runs_of_an_export_that_does_not_say_what_they_took(call):
    assert call(*COMPARED, "--workers", 1).returncode == 0
    assert call("results", "export", "runs.json").returncode == 0
    runs = json.loads(Path("runs.json").read_text())
    del runs[0]["seconds"], runs[1]["seconds"]
    Path("runs.json").write_text(
        json.dumps([*runs[:2], *(run | {"seconds": None} for run in runs[2:])])
    )
    assert call("results", "merge", "runs.json", "--into", "theirs/runs.db").returncode == 0
    done = call(*COMPARED, "--out", "theirs")
    assert done.returncode == 0, done.stderr
    assert len(re.findall("– │$", done.stdout, re.MULTILINE)) == 2


def test_no_resume_that_cannot_begin_costs_no_record(call):
    assert call(*COMPARED, "--workers", 1).returncode == 0
    before = Store("runs/runs.db").records()
    done = call(*COMPARED, "--no-resume", "--engine", "ray", "--address", "127.0.0.1:1")
    assert (done.returncode, "There is no Ray cluster" in done.stderr) == (2, True)
    assert Store("runs/runs.db").records() == before


@pytest.mark.long
def test_no_resume_replaces_each_record_when_its_run_has_ended(call):
    """Ended by Ctrl-C or killed, what was not done again is what it was."""
    store, words = Path("runs/runs.db"), (*COMPARED, "--workers", 1)
    assert call(*words).returncode == 0
    there = Store(store).records()
    for end, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        before = Store(store).records()
        process = start(*words, "--no-resume")
        until(lambda: process.poll() is not None or Store(store).records() != before)  # noqa: B023 - called at once
        process.send_signal(end)
        _, err = process.communicate(timeout=30)
        after = Store(store).records()
        assert process.returncode in (code, 0)
        assert process.returncode != 130 or "the others keep their old record" in err
        assert after.keys() == before.keys()
        assert after != before
    done = call(*words, "--no-resume", "--json")
    found = {run["key"]: run for run in json.loads(done.stdout)["runs"]}
    assert found == Store(store).records()
    assert all(
        found[key] != there[key] and timeless(found[key]) == timeless(there[key]) for key in there
    ), "something was not done again"


def test_an_objective_is_the_same_however_it_is_written(call):
    words = (
        "compare",
        "citeseer",
        "--seeds",
        1,
        "--epochs",
        3,
        "--workers",
        1,
        "--json",
        "--objective",
    )
    keys = [
        {run["key"] for run in json.loads(call(*words, name).stdout)["runs"]}
        for name in ("mi+tv", "TV+mi")
    ]
    assert keys[0] == keys[1]
    for name in ("tv+cvg", "CVG+tv"):
        assert call("train", "citeseer", "--epochs", 2, "--objective", name).returncode == 0
    assert [path.name.rpartition("-")[0] for path in Path("runs").glob("citeseer-*")] == [
        "citeseer-gcn-tv+cvg"
    ]
    refused = call(*words, "CE")
    assert refused.returncode == 2
    assert "cannot be compared with itself" in refused.stderr


def test_compare_agrees_with_train(call):
    runs = json.loads(
        call(
            "compare",
            "citeseer",
            "--seeds",
            1,
            "--seed",
            4,
            "--epochs",
            3,
            "--workers",
            1,
            "--json",
        ).stdout
    )["runs"]
    for run in runs:
        single = json.loads(
            call(
                "train",
                "citeseer",
                "--seed",
                4,
                "--epochs",
                3,
                "--objective",
                run["objective"],
                "--json",
            ).stdout
        )
        assert timeless(single) == timeless(run)


def test_compare_prints_a_table_with_intervals_and_the_paired_gain(call):
    done = call(
        "compare", "citeseer", "--seeds", 2, "--epochs", 3, "--objective", "tv", "--workers", 1
    )
    assert done.returncode == 0
    assert "95% interval" in done.stdout
    for objective in ("cross-entropy", "tv"):
        assert re.search(
            rf"│ {objective} +│ +\d+\.\d │ +\d+\.\d │ +-?\d+\.\d to +\d+\.\d │", done.stdout
        )
    assert re.search(
        r"tv minus cross-entropy, paired: [+-]\d+\.\d\d points, 95% interval [+-]\S+ to [+-]\S+ \(p = \S+\)",
        done.stdout,
    )
    one = call(
        "compare", "citeseer", "--seeds", 1, "--epochs", 3, "--objective", "tv", "--workers", 1
    )
    assert "nan" not in one.stdout
    assert "- to" not in one.stdout
    assert re.search(r"points; one seed gives no interval: use more\n", one.stdout)
    assert "2 of 2 runs were in" in one.stderr


@pytest.mark.parametrize(
    ("num_layers", "said"), [((), [", 32 layers", ", 64 layers"]), (("--num-layers", 2), ["", ""])]
)
def test_compare_names_depths_that_differ(call, num_layers, said):
    """The paper's GCNII on Citeseer has 32 layers, its ENC-GCNII 64."""
    short = ("--seeds", 1, "--epochs", 1, "--hidden-channels", 4, "--workers", 1)
    done = call(
        "compare", "citeseer", "--preset", "paper", "--backbone", "gcnii", *num_layers, *short
    )
    assert done.returncode == 0, done.stderr
    first = [
        line.split("│")[1].strip() for line in done.stdout.splitlines() if line.startswith("│")
    ]
    assert " ".join(first) == f"cross-entropy{said[0]} enc{said[1]}"


def test_folds_are_compared_with_the_correction_for_their_overlap(call, data_root):
    from everynode.datasets import load
    from everynode.experiments.statistics import compare_paired

    flags = (
        "--data-dir",
        data_root,
        "--folds",
        3,
        "--epochs",
        12,
        "--mi",
        2,
        "--objective",
        "mi",
        "--workers",
        1,
    )
    found = json.loads(call("compare", "texas", *flags, "--json").stdout)
    assert [(r["fold"], r["seed"]) for r in found["runs"]] == [
        (0, 0),
        (0, 0),
        (1, 0),
        (1, 0),
        (2, 0),
        (2, 0),
    ]
    a, b = (
        [r["test_accuracy"] for r in found["runs"] if r["objective"] == o] for o in ("mi", "ce")
    )
    assert len({x - y for x, y in zip(a, b, strict=True)}) > 1, (
        "no spread: this test would see nothing"
    )
    graph = load("texas", data_dir=data_root)
    test, train = (
        sum(len(graph.nodes(part, fold)) for fold in range(3)) for part in ("test", "train")
    )
    share = test / train
    assert found["summary"]["gain"] == compare_paired(a, b, test_share=share).to_dict()


@pytest.mark.parametrize("flags", [("--seeds", 10), ("--fold", 0), ("--seeds", 2, "--fold", 1)])
def test_folds_leave_no_choice_of_seeds_or_of_a_fold(call, flags):
    done = call("compare", "citeseer", "--folds", 1, *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "everynode: --folds runs one seed on each fold: leave out --seeds and --fold.\n"
    )
    assert not Path("runs").exists()


def records_in(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error:
        return 0


@pytest.mark.long
def test_a_killed_comparison_does_not_repeat_what_was_done(call):
    command = ("compare", "citeseer", "--seeds", 2, "--epochs", 12, "--workers", 2, "--json")
    process = start(*command)
    store = Path("runs/runs.db")
    try:
        until(lambda: process.poll() is not None or records_in(store) >= 1)
    finally:
        process.kill()
        process.communicate()
    done_before = records_in(store)
    assert 1 <= done_before <= 4
    before = Store(store).records()
    again = call(*command)
    assert again.returncode == 0
    assert f"{done_before} of 4 runs were in runs/runs.db already" in again.stderr
    found = {run["key"]: run for run in json.loads(again.stdout)["runs"]}
    assert len(found) == 4
    assert all(found[key] == record for key, record in before.items()), (
        "seconds included: these were not run again"
    )


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_a_comparison_and_says_how_to_go_on(workers):
    store = Path("runs/runs.db")
    process = start("compare", "citeseer", "--seeds", 500, "--epochs", 15, "--workers", workers)
    until(
        lambda: process.poll() is not None or records_in(store) >= 1
    )  # in the middle of the second run
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("Ctrl-C did not end the comparison")
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "The same command continues" in err
    with closing(sqlite3.connect(store)) as connection:
        records = [
            json.loads(record) for (record,) in connection.execute("SELECT record FROM runs")
        ]
    assert records
    assert not any(record["interrupted"] for record in records), (
        "a run that was cut off passes for a finished one"
    )


# ---------------------------------------------------------------------- data


def test_data_list(call, tmp_path):
    done = call("data", "list")
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    graphs = "cora citeseer pubmed chameleon squirrel actor cornell cornell-legacy texas wisconsin ogbn-arxiv generated"
    assert list(lines) == graphs.split()
    assert "not here" not in lines["citeseer"]
    assert "not here" in lines["cora"]
    assert not (tmp_path / "cache").exists()


def test_a_generated_graph_is_called_a_stand_in_wherever_it_is_used(call):
    name = "generated-200x600x8x4"
    said = "A generated stand-in, not real data"
    flags = ("--epochs", 3, "--hidden-channels", 8)
    for command in (
        ("train", name, *flags),
        ("compare", name, "--seeds", 2, "--workers", 1, *flags),
        ("data", "check", name),
    ):
        text, told = call(*command), call(*command, "--json")
        assert (text.returncode, told.returncode) == (0, 0), text.stderr
        assert said in text.stdout
        assert said in told.stdout
    assert said in call("data", "list").stdout
    paper = json.loads(call("train", name, "--preset", "paper", *flags, "--json").stdout)
    assert paper["settings"]["lr_gnn"] == 0.01


def test_data_list_json(call):
    found = {entry["name"]: entry for entry in json.loads(call("data", "list", "--json").stdout)}
    assert found["citeseer"]["present"] is True
    assert found["cora"]["present"] is False
    assert "public" in found["citeseer"]["splits"]


def test_data_check(call):
    done = call("data", "check", "citeseer")
    assert done.returncode == 0
    assert re.search(r"^nodes +3327$", done.stdout, re.M)
    assert re.search(r"^isolated nodes +48$", done.stdout, re.M)
    assert "15 nodes of 3327 without a label" in done.stdout
    report = json.loads(call("data", "check", "citeseer", "--json").stdout)
    assert report["facts"]["nodes"] == 3327
    assert report["facts"]["edges"] == 4552
    assert report["findings"]


def test_what_data_check_found_comes_before_what_it_measured_and_is_readable(call, data_root):
    done = call("data", "check", "chameleon", "--data-dir", data_root)
    found, measured = (part.splitlines() for part in done.stdout.split("\n\n"))
    assert found[0].startswith("! 49.7 % of the test nodes have a training twin")
    assert all(line.startswith("- ") for line in found[1:])
    assert len({re.search(r"  +(?=\S)", line).end() for line in measured}) == 1, (
        "one column of names, one of values"
    )
    assert max(map(len, measured)) < 120
    values = dict(re.split(r"  +", line) for line in measured)
    assert values["edge homophily"] == "0.2299"
    assert values["class counts"] == "0: 456, 1: 460, 2: 453, 3: 521, 4: 387"
    assert values["split shares"] == "train: 0.4796, val: 0.3202, test: 0.2003"
    assert values["split sizes"] == "train: 1092, val: 729, test: 456"
    assert values["split nodes without label"] == "0"
    assert values["twins across split"] == "0.4737 to 0.5351"
    assert "copies of" not in values


# ---------------------------------------------------------------------- a real terminal


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "bar", "elapsed", "note"),
    [
        (
            "200",
            24,
            r"\d:\d\d:\d\d ",
            r"val \d+\.\d% \| ce -?\d+\.\d{3} mi -?\d+\.\d{3} tv -?\d+\.\d{3} cvg -?\d+\.\d{3}",
        ),
        ("80", 12, "", r"val \d+\.\d% \|"),
    ],
)
def test_in_a_terminal_there_is_a_bar_with_the_terms_and_stdout_stays_clean(
    columns, bar, elapsed, note
):
    """stderr is a terminal, stdout a pipe, as in ``everynode train ... --json | jq``."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": columns, "LINES": "40"}
    command = [EVERYNODE, "train", "citeseer", "--epochs", "30", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, stdin=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], 60)
            assert ready, "nothing was shown for a minute"
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not piece:
                break
            shown += piece
    finally:
        os.close(ours)
        out = process.communicate(timeout=60)[0].decode()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert process.returncode == 0
    assert json.loads(out)["epochs"] == 30
    assert "\x1b" not in out
    assert "citeseer gcn enc" in text
    assert re.search(rf"\d+/30 epochs {elapsed}about [-\d]:[-\d]{{2}}:[-\d]{{2}} {note}", text)
    assert f" {'━' * bar} " in text
