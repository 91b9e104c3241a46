"""``everynode tune``, and what the presets that it writes are for."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from everynode import NodeClassifier, load
from everynode.presets import tuned_rows
from everynode.selection.study_storage import Journal
from everynode.settings import Settings

pytestmark = pytest.mark.usefixtures("elsewhere")
SHORT = ("--epochs", 3, "--hidden-channels", 4, "--seeds", 1, "--workers", 1)


def test_tune_finds_settings_and_writes_a_preset_that_every_command_takes(call):
    found = {}
    for objective, trials in (("tv", 3), ("ce", 3)):
        done = call(
            "tune",
            "citeseer",
            "--objective",
            objective,
            "--trials",
            trials,
            *SHORT,
            "--export",
            "best.toml",
            "--json",
        )
        assert done.returncode == 0
        found[objective] = json.loads(done.stdout)
        assert "use them with --preset best.toml" in done.stderr
    tv = found["tv"]
    assert (tv["dataset"], tv["objective"], tv["trials"], tv["seeds"]) == ("citeseer", "tv", 3, 1)
    assert not [name for name in tv if "test" in name]
    assert set(tuned_rows("best.toml")) == {
        ("public", "citeseer", "gcn", objective) for objective in ("ce", "tv")
    }

    # The study's own command, word for word, has nothing left to do.
    again = call(*shlex.split(tv["command"])[1:], "--json")
    assert (
        "runs/tune/citeseer-public-gcn-tv-1seeds-epochs=3-hidden_channels=4.journal has 3 trials already."
        in again.stderr
    )
    assert json.loads(again.stdout) == tv

    trained = json.loads(
        call(
            "train",
            "citeseer",
            "--objective",
            "tv",
            "--preset",
            Path("best.toml").resolve(),
            "--seed",
            1000,
            "--json",
        ).stdout
    )
    assert trained["val_accuracy"] == tv["val_accuracy"] == tv["val_accuracies"][0]
    assert trained["settings"]["lr"] == float(f"{tv['parameters']['lr']:.4g}")

    assert trained["preset"] == "best.toml", "wherever it lay"

    compared = json.loads(
        call(
            "compare",
            "citeseer",
            "--objective",
            "tv",
            "--preset",
            "best.toml",
            "--seeds",
            1,
            "--json",
        ).stdout
    )
    for run in compared["runs"]:
        best = found[run["objective"]]["parameters"]
        assert run["settings"]["weight_decay"] == float(f"{best['weight_decay']:.4g}"), (
            "each objective has its own settings"
        )
        assert run["preset"] == "best.toml"

    model = NodeClassifier(objective="tv", settings="best.toml", random_state=1000).fit(
        load("citeseer")
    )
    assert model.score(load("citeseer"), "val") == pytest.approx(tv["val_accuracy"])

    missing = call("compare", "citeseer", "--objective", "mi", "--preset", "best.toml")
    assert missing.returncode == 2
    assert "for that graph and split it has gcn ce, gcn tv." in missing.stderr


def test_what_tune_says_and_draws(call):
    done = call("tune", "citeseer", "--objective", "mi+tv", "--trials", 2, *SHORT)
    assert done.returncode == 0
    assert "citeseer, gcn, mi+tv, split public: 2 trials of 1 seed (0 pruned)" in done.stdout
    assert "best mean validation accuracy" in done.stdout
    assert "mi_lambda" in done.stdout
    assert "The plot of the study is runs/tune/" in done.stderr
    (picture,) = Path("runs/tune").glob("*.svg")
    assert (
        ElementTree.parse(picture).getroot().get("aria-label")
        == "citeseer, gcn, mi+tv, split public"
    )
    quiet = call("tune", "citeseer", "--objective", "tv+mi", "--trials", 2, *SHORT, "--quiet")
    assert quiet.stderr == ""
    assert len(list(Path("runs/tune").glob("*.journal"))) == 1, (
        "the same study, whichever way the objective is written"
    )


def test_a_space_of_ones_own_and_a_preset_to_start_from(call):
    Path("space.toml").write_text(
        "[all]\nlr = { low = 0.01, high = 0.02 }\n[term.tv]\ntv = { choices = [0.5, 1.5] }\n"
    )
    Path("mine.toml").write_text("[public.citeseer.gcn.ce]\nlr = 0.0125\n")
    given = ("--objective", "tv", "--space", "space.toml", "--start-from", "mine.toml")
    done = json.loads(call("tune", "citeseer", *given, "--trials", 8, *SHORT, "--json").stdout)
    assert done["searched"] == ["lr", "tv"]
    (path,) = Path("runs/tune").glob("*.journal")
    tried = [trial.params["lr"] for trial in Journal(path).ended()]
    assert not {0.01, 0.02} & set(tried), (
        "what the default race and the paper have, moved into the space, is not tried besides"
    )
    assert 0.0125 in tried, "the one given"
    Path("space.toml").write_text("[all]\nlr = { low = 0.01, high = 0.03 }\n")
    other = call("tune", "citeseer", *given, "--trials", 9, *SHORT)
    assert other.returncode == 2
    assert "has another search space: choose another --out or --storage." in other.stderr


def test_a_setting_that_is_given_is_not_searched(call):
    done = json.loads(
        call(
            "tune", "citeseer", "--objective", "tv", "--tv", 0.5, "--trials", 1, *SHORT, "--json"
        ).stdout
    )
    assert "tv" not in done["searched"]
    assert "tv_gate" in done["searched"]
    call("tune", "export", "runs", "p.toml")
    assert Settings.preset("p.toml", graph="citeseer", split="public", objective="tv").tv == 0.5


def test_export_takes_every_study_of_a_folder(call):
    for backbone in ("gcn", "gcnii"):
        call("tune", "citeseer", "--backbone", backbone, "--objective", "ce", "--trials", 1, *SHORT)
    done = call("tune", "export", "runs", "all.toml")
    assert done.returncode == 0
    assert "all.toml has the best settings of 2 studies." in done.stderr
    assert set(tuned_rows("all.toml")) == {
        ("public", "citeseer", backbone, "ce") for backbone in ("gcn", "gcnii")
    }
    assert "all.csv has 2 trials of 2 studies." in call("tune", "export", "runs", "all.csv").stderr
    assert len(Path("all.csv").read_text().splitlines()) == 3


def test_starts_for_which_there_are_too_few_trials_are_named(call):
    done = call("tune", "citeseer", "--objective", "ce", "--trials", 1, *SHORT)
    assert "too few for the" in done.stderr
    assert "left out are default light-ce" in done.stderr
    assert (
        "too few for the"
        not in call("tune", "citeseer", "--objective", "ce", "--trials", 9, *SHORT).stderr
    )
    assert (
        "too few for the"
        not in call("tune", "citeseer", "--objective", "ce", "--trials", 3, *SHORT).stderr
    ), "all were tried before"


def test_reproduce_leaves_out_what_a_preset_does_not_know(call):
    Path("p.toml").write_text(
        "[public.citeseer.gcn.ce]\nlr = 0.5\n[public.citeseer.gcn.enc]\nlr = 0.25\n"
    )
    done = call(
        "reproduce", "semi-supervised", "--preset", "p.toml", "--seeds", 2, "--dry-run", "--json"
    )
    assert done.returncode == 0
    assert {
        (run["dataset"], run["backbone"], run["objective"]) for run in json.loads(done.stdout)
    } == {
        ("citeseer", "gcn", "ce"),
        ("citeseer", "gcn", "enc"),
    }
    assert "semi-supervised: left out " in done.stderr
    assert "cells without settings in the preset p.toml." in done.stderr
    Path("none.toml").write_text("")
    none = call("reproduce", "semi-supervised", "--preset", "none.toml", "--dry-run")
    assert none.returncode == 2
    assert (
        "The preset none.toml has no settings for these cells of semi-supervised: choose another preset, or a file of `everynode tune`."
        in none.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["citeseer", "--trials", 0], 2, "--trials, --seeds and --folds must be at least 1."),
        (["citeseer", "--workers", 0], 2, "--workers must be at least 1."),
        (
            ["citeseer", "--address", "127.0.0.1:6379"],
            2,
            "--address is for a Ray cluster: add --engine ray.",
        ),
        (
            ["citeseer", "--engine", "ray", "--device", "meta"],
            2,
            "--engine ray runs on CPUs: leave out --device.",
        ),
        (
            ["citeseer", "--folds", 1, "--seeds", 3],
            2,
            "--folds takes one seed on each fold: leave out --seeds.",
        ),
        (
            ["citeseer", "--folds", 2],
            2,
            "Split 'public' of citeseer has 1 fold(s), not 2: choose fewer --folds, or another --split.",
        ),
        (
            ["citeseer", "--export", "best.json"],
            2,
            "best.json must end in .toml: --preset needs that ending for a file.",
        ),
        (["citeseer", "--export", "bad.toml"], 3, "bad.toml is not a preset of `everynode tune`"),
        (["citeseer", "--space", "nowhere.toml"], 2, "There is no search space nowhere.toml."),
        (["citeseer", "--space", "bad.toml"], 3, "bad.toml is not a search space"),
        (["citeseer", "--start-from", "nowhere.toml"], 2, "There is no preset nowhere.toml."),
        (
            ["citeseer", "--start-from", "a/x.toml", "--start-from", "b/x.toml"],
            2,
            "Two files of --start-from have the same name",
        ),
        (["citeseer", "--objective", "tvv"], 2, "Unknown objective 'tvv'"),
        (["citeser"], 2, "Unknown graph 'citeser' (did you mean 'citeseer'?)"),
        (
            ["export", "runs", "a.toml"],
            2,
            "There is no study with a complete trial in runs/tune: run `everynode tune` with --out runs first.",
        ),
        (["export", "runs", "a.json"], 2, "a.json must end in .toml"),
    ],
)
def test_bad_input_is_one_sentence(call, arguments, code, sentence):
    Path("bad.toml").write_text("all = 3\n")
    done = call("tune", *arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("runs").exists()


def test_a_damaged_journal_is_one_sentence(call):
    path = Path("runs/tune/citeseer-public-gcn-ce-1seeds-epochs=3-hidden_channels=4.journal")
    path.parent.mkdir(parents=True)
    path.write_text("something\nelse\n")
    done = call("tune", "citeseer", "--objective", "ce", *SHORT)
    assert done.returncode == 3
    assert f"{path} is not the journal of a study" in done.stderr
    assert path.read_text() == "something\nelse\n"


@pytest.mark.long
def test_ctrl_c_ends_a_study_and_the_same_command_goes_on(call):
    command = ("tune", "citeseer", "--objective", "ce", "--epochs", 3, "--seeds", 1, "--workers", 2)
    words = [sys.executable, "-m", "everynode", *map(str, command), "--trials", "5000"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    path = Path("runs/tune/citeseer-public-gcn-ce-1seeds-epochs=3.journal")
    end = time.monotonic() + 60
    while (
        process.poll() is None
        and time.monotonic() < end
        and not (path.exists() and '"state":1' in path.read_text())
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert f"Interrupted: {path} has the ended trials. The same command continues." in err
    done = len(Journal(path).ended())
    assert 0 < done < 5000
    again = json.loads(call(*command, "--trials", done + 1, "--json").stdout)
    assert again["trials"] == done + 1
