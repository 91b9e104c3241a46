"""``everynode fit`` and ``everynode predict`` as people meet them."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from everynode.errors import DataError, Diverged
from everynode.estimator import NodeClassifier
from everynode.evaluation.predictions import Predictions
from everynode.io import read
from everynode.presets import candidates
from everynode.report.fit_text import fit_lines
from everynode.report.text import CANDIDATES
from everynode.selection import portfolio

pytestmark = [
    pytest.mark.usefixtures("elsewhere"),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]
#: Enough for files that are easy.
SETTINGS = (
    "--objective",
    "ce",
    "--epochs",
    "40",
    "--hidden-channels",
    "16",
    "--dropout",
    "0",
    "--layer-dropout",
    "0",
    "--cv",
    "1",
    "--no-refit",
)
QUICK = (*SETTINGS, "--quiet")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def fitted(call, own_files) -> tuple[Path, list[dict[str, str]]]:
    """A folder that a fit has filled, and the table it was made of."""
    nodes, edges = own_files()
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK
    )
    assert done.returncode == 0, done.stderr
    return Path("out"), rows(nodes)


def test_everything_is_in_the_folder(fitted):
    out, people = fitted
    assert sorted(path.name for path in out.iterdir()) == [
        "fit.json",
        "model",
        "model-card.md",
        "predictions.csv",
        "report.html",
        "run.json",
    ]
    assert sorted(path.name for path in (out / "model").iterdir()) == [
        "held_out.safetensors",
        "model.json",
        "model.safetensors",
    ]
    found = rows(out / "predictions.csv")
    assert list(found[0]) == [
        "id",
        "predicted",
        "probability",
        "labeled",
        "label",
        "part",
        "final",
        "p_blue",
        "p_green",
        "p_red",
    ]
    assert [row["id"] for row in found] == [row["id"] for row in people]
    for row, given in zip(found, people, strict=True):
        shares = {name: float(row[f"p_{name}"]) for name in ("blue", "green", "red")}
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-4)
        assert row["predicted"] == max(shares, key=shares.get)
        assert float(row["probability"]) == pytest.approx(max(shares.values()))
        assert row["label"] == given["team"]
        assert row["labeled"] == ("yes" if given["team"] else "no")
        assert (row["part"] in ("train", "val", "test")) == bool(given["team"])


REFIT = (*(flag for flag in QUICK if flag != "--no-refit"),)


def test_the_delivered_model_learned_from_all_labels(call, own_files, fitted):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges, "--label", "team")
    done = call("fit", *files, "--out", "all", *REFIT)
    assert done.returncode == 0, done.stderr
    plain, taught = (json.loads(Path(name, "fit.json").read_text()) for name in ("out", "all"))
    labels = sum(bool(row["team"]) for row in fitted[1])
    assert plain["delivered"] | {"seconds": 0} != taught["delivered"] | {"seconds": 0}
    assert (taught["delivered"]["labels"], taught["delivered"]["refitted"]) == (labels, True)
    assert f"The delivered model then learned from all {labels} labels." in done.stdout
    assert taught["learned"] in Path("all/report.html").read_text()
    assert taught["quality"] == plain["quality"]
    before, after = (rows(Path(name) / "predictions.csv") for name in ("out", "all"))
    for one, other in zip(before, after, strict=True):
        measured = one["part"] in ("val", "test")
        assert (float(one["probability"]) == float(other["probability"])) == measured, one["id"]
    # The saved model is the delivered one.
    call("predict", "all", *files[:4], "--out", "again.csv", "--quiet")
    for one, other in zip(after, rows(Path("again.csv")), strict=True):
        if one["part"] not in ("val", "test"):
            assert one["p_red"] == other["p_red"]


def test_a_refit_that_is_killed_continues(call, own_files, monkeypatch):
    nodes, edges = own_files()
    command = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *REFIT)
    real = NodeClassifier.refit

    def interrupted(self, *args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(NodeClassifier, "refit", interrupted)
    assert call(*command).returncode == 130
    assert json.loads(Path("out/fit.json").read_text())["delivered"]["refitted"] is False
    assert list(Path("out/training").glob("*.safetensors"))
    monkeypatch.setattr(NodeClassifier, "refit", real)
    done = call(*command)
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("out/fit.json").read_text())["delivered"]["refitted"] is True
    assert not Path("out/training").exists()
    assert "already has this result" in call(*command[:-1]).stderr  # without --quiet


def test_report_of_a_fit_says_where_its_page_is(call, fitted):
    done = call("report", "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"everynode: out is the folder of a fit: its page is {Path('out/report.html')}, open that file.\n"
    )


def test_the_summary_is_what_the_table_says(fitted):
    out, _ = fitted
    summary, found = json.loads((out / "fit.json").read_text()), rows(out / "predictions.csv")
    for part, name in (("test", "test"), ("val", "validation")):
        inside = [row for row in found if row["part"] == part]
        assert summary["quality"][name]["nodes"] == len(inside) > 5
        right = np.mean([row["predicted"] == row["label"] for row in inside])
        assert summary["quality"][name]["accuracy"][0] == pytest.approx(right)
    assert summary["quality"]["test"]["accuracy"][0] > 0.8
    assert summary["nodes"]["train"] == sum(row["part"] == "train" for row in found)
    _, low, high = (f"{100 * x:.1f}" for x in summary["quality"]["test"]["accuracy"])
    assert f"Expect {low} to {high}% of similar new nodes to be right" in summary["caution"]
    wrong = sum(row["labeled"] == "yes" and row["predicted"] != row["label"] for row in found)
    assert summary["disagreements"] == wrong


def test_what_was_understood_is_said_before_training_and_dry_run_stops_there(call, own_files):
    nodes, edges = own_files()
    done = call("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--dry-run")
    assert done.returncode == 0
    for text in (
        "height: number",
        "city: category",
        "team: label",
        "120:",
        "labels are held out for the test",
        "held out once, in 5 folds",
    ):
        assert text in done.stdout, text
    assert not Path("runs").exists()
    plain = json.loads(
        call(
            "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--dry-run", "--json"
        ).stdout
    )
    assert plain["summary"]["nodes"] == 120
    assert len(plain["parts"]) == 2


def test_one_json_value_on_stdout(call, own_files):
    nodes, edges = own_files()
    done = call("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--json", *QUICK)
    summary = json.loads(done.stdout)
    assert summary["graph"] == "people"
    assert summary == json.loads(Path("runs/fit-people/fit.json").read_text())


def test_the_same_command_again_does_nothing_and_another_is_refused(call, own_files, fitted):
    nodes, edges = own_files()
    same = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *SETTINGS)
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    done = call(*same)
    assert "already has this result" in done.stderr
    assert "% right" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    done = call(*same, "--seed", "1")
    assert (done.returncode, done.stdout.count("epochs")) == (2, 0)
    assert "out has another run (everynode fit" in done.stderr
    assert "--no-resume" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")} == before
    assert call(*same, "--seed", "1", "--no-resume", "--quiet").returncode == 0
    assert json.loads((Path("out") / "fit.json").read_text())["seed"] == 1


def test_other_ids_are_another_run(call, own_files):
    nodes, edges = own_files()
    same = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK)
    assert call(*same).returncode == 0
    for path in (nodes, edges):
        path.write_text(path.read_text().replace("p7,", "q7,").replace(",p7\n", ",q7\n"))
    done = call(*same)
    assert done.returncode == 2
    assert (
        "out has an older run of this command, and the files or everynode have changed since: choose another --out"
        in done.stderr
    )


def test_quiet_hides_no_warning(call, own_files):
    nodes, edges = own_files()
    nodes.write_text(nodes.read_text().replace(",red\n", ",Red\n", 1))
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK
    )
    assert done.stderr.splitlines() == [
        line for line in done.stderr.splitlines() if line.startswith("warning ")
    ]
    assert "differ only in capitals" in done.stderr
    assert "Red" not in done.stdout


def test_the_metric_that_was_asked_for_is_shown(call, own_files):
    nodes, edges = own_files()
    done = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--monitor",
        "macro_f1",
        *QUICK,
    )
    found = json.loads(Path("runs/fit-people/fit.json").read_text())["quality"]["test"]["macro_f1"]
    value, low, high = (f"{100 * x:.1f}" for x in found)
    assert f"macro_f1 {value}, 95% interval {low} to {high}" in done.stdout


@pytest.mark.parametrize(
    ("monitor", "words", "raced"),
    [
        (
            "accuracy",
            "by validation accuracy, on a tie by the lower validation loss",
            "light-enc 80.0%, ce 95.0%, enc 90.0%, light-ce",
        ),
        (
            "macro_f1",
            "by validation macro_f1, on a tie by the lower validation loss",
            "light-enc 70.0% (loss 0.123), ce 70.0% (loss 0.210), enc 65.0%, light-ce",
        ),
        ("loss", "by the lowest validation loss", "light-enc 0.123, ce 0.210, enc 0.300, light-ce"),
    ],
)
def test_by_what_the_best_won_is_said_also_on_a_tie(monitor, words, raced):
    standings = {
        "ce": {"val_accuracy": 0.95, "val_loss": 0.21, "val_score": 0.7},
        "enc": {"val_accuracy": 0.9, "val_loss": 0.3, "val_score": 0.65},
        "light-ce": {"val_accuracy": None, "val_loss": None, "val_score": None},
        "light-enc": {"val_accuracy": 0.8, "val_loss": 0.123, "val_score": 0.7},
    }
    for standing in standings.values() if monitor in ("accuracy", "loss") else ():
        standing["val_score"] = standing[f"val_{monitor}"]
    summary = {
        "graph": "people", "backbone": "gcn", "objective": "light-enc", "seed": 0, "candidates": standings, "networks": 1, "epochs": 9, "seconds": 1.0,
        "best_epoch": 3, "best_epochs": [3], "monitor": monitor, "quality": {}, "caution": "", "temperature": 1.0, "interrupted": False,
        "leaderboard": [],
    }  # fmt: skip
    chosen, results = list(fit_lines(summary, Path("out")))[1:3]
    assert chosen == f"  chosen       light-enc (ENC with light regularization), {words}"
    assert results.strip() == f"validation {monitor} of the candidates: {raced}"
    assert set(candidates()) <= set(CANDIDATES)


def test_a_training_that_gains_nothing_is_said(call, own_files):
    nodes, edges = own_files()
    still = ("--objective", "ce", "--lr-gnn", "1e-12", "--lr", "1e-12", "--epochs", "5", "--quiet")
    done = call("fit", "--nodes", nodes, "--edges", edges, "--label", "team", *still)
    assert "best epochs 0, 0, 0\n" in done.stdout
    assert "No later epoch was better than the first" in done.stdout
    assert "Leave out --objective to try other candidates." in done.stdout
    done = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        "race",
        "--backbone",
        "gcn",
        *still[2:],
    )
    assert (
        "No later epoch was better than the first: these settings do not suit this graph.\n"
        in done.stdout
    )


def test_without_a_label_the_columns_are_named(call, own_files):
    nodes, edges = own_files()
    done = call("fit", "--nodes", nodes, "--edges", edges)
    assert done.returncode == 2
    assert (
        "Which column has the labels? Give --label, one of (the likeliest first): " in done.stderr
    )
    assert done.stderr.strip().endswith(": team, city, height.")


def test_an_edge_list_alone_is_told_where_labels_come_from(call, own_files):
    _, edges = own_files()
    done = call("fit", "--edges", edges)
    assert done.returncode == 2
    assert done.stderr == (
        "everynode: No column can hold labels: give a table of nodes with an id and a label (--nodes, --label). Add --unknown add "
        "if some nodes appear in the edges only.\n"
    )


def test_what_was_passed_over_is_said_before_a_refusal(call):
    np.savez("g.npz", edge_index=[[0, 1], [1, 2]], y=np.array(["a", "b", None], dtype=object))
    done = call("fit", "--nodes", "g.npz", "--quiet")
    assert (done.returncode, done.stderr.splitlines()[-1][:38]) == (
        2,
        "everynode: No column can hold labels: ",
    )
    assert "The array 'y' of g.npz holds Python objects" in done.stderr


def test_a_name_that_is_too_long_is_not_written_to(call, own_files):
    nodes, edges = own_files()
    done = call("fit", "--nodes", "a" * 300 + ".csv", "--edges", edges)
    assert (done.returncode, "Cannot read aaa" in done.stderr, "write" in done.stderr) == (
        3,
        True,
        False,
    )
    done = call("predict", "a" * 300, "--nodes", nodes, "--edges", edges)
    assert (done.returncode, "Cannot read or write aaa" in done.stderr) == (3, True)


def test_other_names_of_columns_are_another_run(call, own_files):
    """The features are the same numbers, but the model looks for its columns by their names."""
    nodes, edges = own_files()
    same = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK)
    assert call(*same).returncode == 0
    nodes.write_text(nodes.read_text().replace("height", "size"))
    assert call(*same).returncode == 2


def test_nodes_that_only_the_edges_have_can_be_added(call, own_files):
    nodes, edges = own_files()
    edges.write_text(edges.read_text() + "p0,stranger\n")
    words = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--dry-run")
    done = call(*words)
    assert (done.returncode, "--unknown" in done.stderr) == (3, True)
    done = call(*words, "--unknown", "add")
    assert "1 node added" in done.stdout
    assert call(*words[:-1], "--unknown", "add", "--out", "out", *QUICK).returncode == 0
    done = call("predict", "out", "--nodes", nodes, "--edges", edges)
    assert (done.returncode, "1 node added" in done.stderr) == (0, True), (
        "predict asked again for what fit was told"
    )


@pytest.mark.parametrize("there", ["report.html", "predictions.csv", "model"])
def test_somebody_elses_files_are_not_overwritten(call, own_files, there):
    nodes, edges = own_files()
    mine = Path("out") / (there if there != "model" else "model/model.json")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK
    )
    assert done.returncode == 2
    assert f"files of something else ({mine.relative_to('out')})" in done.stderr
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("again", [(), ("--no-resume",)])
@pytest.mark.parametrize("theirs", ["raw/data.txt", "weights.safetensors"])
def test_somebody_elses_training_folder_is_never_removed(call, own_files, again, theirs):
    nodes, edges = own_files()
    mine = Path("training") / theirs
    mine.parent.mkdir(parents=True)
    mine.write_bytes(save({"weight": np.ones(3)}) if theirs.endswith(".safetensors") else b"mine")
    before = mine.read_bytes()
    words = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", ".", *QUICK)
    done = call(*words, *again)
    says = f"everynode: training/{theirs.split('/')[0]} is not a training state of everynode: choose another --out.\n"
    assert (done.returncode, done.stderr) == (2, says)
    assert not Path("fit.json").exists()
    mine.rename("kept")
    if theirs == "raw/data.txt":
        mine.parent.rmdir()
    assert call(*words, *again).returncode == 0
    mine.parent.mkdir(parents=True)
    Path("kept").rename(mine)
    assert call(*words, *again).returncode == 2, "the folder of a fit that has ended"
    assert mine.read_bytes() == before


def test_no_resume_removes_states_and_nothing_else(call, own_files):
    nodes, edges = own_files()
    Path("out/training").mkdir(parents=True)
    for name in ("ce.safetensors", ".ce.safetensors.0123456789abcdef.part"):
        (Path("out/training") / name).write_bytes(b"cut short")
    Path("out/notes.txt").write_text("mine")
    Path("out/run.json").write_text('{"key": "of another run", "command": "everynode fit"}')
    words = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK)
    assert "another run (everynode fit)" in call(*words).stderr
    assert call(*words, "--no-resume").returncode == 0
    assert not Path("out/training").exists()
    assert Path("out/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("mine", ["training/bert.safetensors", "run.json"])
def test_what_only_looks_like_a_run_is_never_replaced(call, own_files, mine):
    """A pointer of git-lfs, say, or a file of another program's runs."""
    nodes, edges = own_files()
    (Path("out") / mine).parent.mkdir(parents=True)
    (Path("out") / mine).write_text('{"mine": 1}')
    for flags in ((), ("--no-resume",)):
        done = call(
            "fit",
            "--nodes",
            nodes,
            "--edges",
            edges,
            "--label",
            "team",
            "--out",
            "out",
            *QUICK,
            *flags,
        )
        assert (done.returncode, done.stderr.endswith("choose another --out.\n")) == (2, True), (
            done.stderr
        )
    assert (Path("out") / mine).read_text() == '{"mine": 1}'


@pytest.mark.skipif(
    sys.platform in ("win32", "darwin"),
    reason="macOS and Windows refuse to make a file whose name is no UTF-8, so there is none to read",
)
def test_names_of_files_that_are_no_text_are_shown_all_the_same(call, own_files):
    nodes, edges = own_files()
    name = os.fsdecode(b"caf\xe9")
    nodes.rename(f"{name}.csv")
    words = ("fit", "--nodes", f"{name}.csv", "--edges", edges, "--label", "team", *QUICK[:-1])
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert "caf\N{REPLACEMENT CHARACTER}.csv" in done.stdout
    page = Path("runs/fit-caf\N{REPLACEMENT CHARACTER}/report.html").read_text(encoding="utf-8")
    assert "caf\N{REPLACEMENT CHARACTER}.csv" in page
    assert call(*words, "--out", name).returncode == 0
    assert Path(name, "report.html").exists()
    assert (
        call(
            "predict", name, "--nodes", f"{name}.csv", "--edges", edges, "--out", f"{name}-2.csv"
        ).returncode
        == 0
    )


def test_metric_class_weight_and_no_calibration_reach_the_model(call, own_files):
    nodes, edges = own_files()
    flags = (
        "--monitor",
        "macro_f1",
        "--class-weight",
        "balanced",
        "--no-calibrate",
        "--out",
        "out",
    )
    assert (
        call(
            "fit", "--nodes", nodes, "--edges", edges, "--label", "team", *flags, *QUICK
        ).returncode
        == 0
    )
    card = json.loads(Path("out/model/model.json").read_text())
    assert (card["settings"]["monitor"], card["settings"]["class_weight"], card["temperature"]) == (
        "macro_f1",
        "balanced",
        1.0,
    )
    assert card["settings"]["tv"] == 0
    assert "val_macro_f1" in card["history"]


def test_an_ensemble_predicts_what_its_model_says(call, own_files):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges)
    words = ("fit", *files, "--label", "team", "--out", "two", *QUICK)
    summary = json.loads(call(*words, "--n-estimators", 2, "--json").stdout)
    assert summary["networks"] == 2
    assert "for all 2 networks" in Path("two/report.html").read_text()
    assert call("predict", "two", *files, "--out", "again.csv").returncode == 0
    for one, two in zip(rows(Path("two/predictions.csv")), rows(Path("again.csv")), strict=True):
        assert one | {"part": ""} == two | {"part": ""}
    refused = call(*words, "--n-estimators", 0)
    assert refused.returncode == 2
    assert "n_estimators" in refused.stderr


def test_with_few_labels_each_is_held_out_once_and_the_folds_are_averaged(call, own_files):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges)
    done = call(
        "fit", *files, "--label", "team", "--out", "out", "--epochs", "30", "--hidden-channels", "8", "--backbone", "gcn",
        "--no-refit",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "held out once, in 3 folds" in done.stdout
    summary, found = json.loads(Path("out/fit.json").read_text()), rows(Path("out/predictions.csv"))
    assert summary["networks"] == 3
    assert {row["part"] for row in found} == {"train", "test", ""}
    assert (
        summary["quality"]["validation"]["nodes"]
        == sum(row["part"] == "train" for row in found)
        > 40
    )
    inside = [row for row in found if row["part"] == "test"]
    assert summary["quality"]["test"]["accuracy"][0] == pytest.approx(
        np.mean([row["predicted"] == row["label"] for row in inside])
    )
    assert call("predict", "out", *files, "--out", "again.csv").returncode == 0
    for one, two in zip(found, rows(Path("again.csv")), strict=True):
        assert one | {"part": ""} == two | {"part": ""}
    page = Path("out/report.html").read_text()
    assert (
        f"for validation each of {summary['quality']['validation']['nodes']} training nodes was held out once, in 3 folds."
        in page
    )
    assert "Train / validation / test" not in page


@pytest.mark.parametrize("split", [True, False])
def test_a_part_of_the_graph_without_labels_is_odd_only_where_the_split_came_with_it(
    call, own_files, split
):
    nodes, edges = own_files(known=1.0)
    lines = nodes.read_text().splitlines()
    parts = ["train", "valid", "test"]
    lines = [
        f"{lines[0]},part",
        *(f"{line},{parts[i % 3]}" for i, line in enumerate(lines[1:])),
        "x,1.0,Graz,,",
        "y,1.0,Graz,,",
    ]
    nodes.write_text("\n".join(lines) + "\n")
    edges.write_text("source,target\n" + "".join(f"p{i},p{i + 1}\n" for i in range(119)))
    given = ("--split", "part") if split else ("--features", "height,city")
    assert (
        call(
            "fit",
            "--nodes",
            nodes,
            "--edges",
            edges,
            "--label",
            "team",
            *given,
            "--out",
            "out",
            *QUICK,
        ).returncode
        == 0
    )
    assert (
        "only the largest component (120 of 122 nodes)" in Path("out/report.html").read_text()
    ) is split


def test_a_split_column_is_followed(call, own_files):
    nodes, edges = own_files(known=1.0)
    lines = nodes.read_text().splitlines()
    parts = ["train", "valid", "test", ""]
    nodes.write_text(
        "\n".join(
            [lines[0] + ",part", *(f"{line},{parts[i % 4]}" for i, line in enumerate(lines[1:]))]
        )
        + "\n"
    )
    assert (
        call(
            "fit",
            "--nodes",
            nodes,
            "--edges",
            edges,
            "--label",
            "team",
            "--split",
            "part",
            "--out",
            "out",
            *QUICK,
        ).returncode
        == 0
    )
    found = rows(Path("out/predictions.csv"))
    assert [row["part"] for row in found] == ["train", "val", "test", ""] * 30
    assert all(row["labeled"] == "yes" for row in found)


def test_one_fold_of_a_file_is_followed_or_none(call):
    masks = np.arange(60) % 3 == np.arange(3)[:, None]
    np.savez(
        "g.npz",
        edge_index=[range(59), range(1, 60)],
        x=np.eye(60),
        y=np.arange(60) % 2,
        train_masks=masks[:2],
        test_masks=masks[1:],
    )
    words = ("fit", "--nodes", "g.npz", "--dry-run", "--cv", "1")
    done = call(*words)
    assert (done.returncode, "--fold 0" in done.stderr, "--split none" in done.stderr) == (
        2,
        True,
        True,
    )
    assert "4 of the 20 training labels are held out" in call(*words, "--fold", "1").stdout
    assert "12 of the 60 labels are held out for the test" in call(*words, "--split", "none").stdout


def test_few_labels_are_not_tested_on_and_it_says_so(call, own_files):
    nodes, edges = own_files(known=0.3)
    done = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        "out",
        "--epochs",
        "20",
    )
    assert done.returncode == 0
    assert "none are held out for a test" in done.stdout
    assert "too good for new nodes" in done.stdout
    assert "\n  test " not in done.stdout


WRONG = {
    "fit": ("Give --nodes and --edges", 2),
    "fit --nodes missing.csv --edges links.csv --label team": ("missing.csv", 3),
    "fit --nodes people.csv --edges links.csv": ("--label", 2),
    "fit --nodes people.csv --edges links.csv --label tean": ("team", None),
    "fit --nodes people.csv --edges links.csv --label team --monitor auk": ("auc", 2),
    "fit --nodes people.csv --edges links.csv --label team --class-weight even": ("balanced", 2),
    "fit --nodes people.csv --edges links.csv --label team --preset paper": ("--preset default", 2),
    "fit --nodes people.csv --edges links.csv --label team --test-share 1.5": ("test_share", 2),
    "fit --nodes people.csv --edges links.csv --label team --test-share 20": (
        "must be in [0, 1): 20 % is 0.2. Got 20.0.",
        2,
    ),
    "fit --nodes people.csv --edges links.csv --label team --val-share 12.5": (
        "must be between 0 and 1: 12.5 % is 0.125.",
        2,
    ),
    "fit --nodes people.csv --edges links.csv --label team --test-share=-1": (
        "must be in [0, 1). Got -1.0.",
        2,
    ),
    "fit --ndoes people.csv": ("Did you mean --nodes? Try 'everynode fit --help'.", 2),
    "tune export --nope": ("Try 'everynode tune export --help'.", 2),
    "tarin": ("Try 'everynode --help'.", 2),
    "fit --nodes people.csv --edges links.csv --label team --out people.csv": ("is a file", 2),
    "fit --nodes people.csv --edges links.csv --label team --threads 0": ("threads", 2),
    "fit --nodes people.csv --edges links.csv --label team --cv 0": ("'cv' of fit must be >= 1", 2),
    "predict nowhere --nodes people.csv --edges links.csv": ("There is no folder nowhere", 3),
    "predict people.csv --nodes people.csv --edges links.csv": (
        "people.csv is a file: give the folder of a model",
        3,
    ),
    "predict . --nodes people.csv --edges links.csv": ("not a model folder", 3),
}


def test_a_column_of_amounts_or_names_is_no_label(call, own_files):
    nodes, edges = own_files()
    head, *lines = nodes.read_text().splitlines()
    nodes.write_text(
        "\n".join(
            [
                f"{head},revenue",
                *(
                    f"{line},{1000 + i // 30 * 30 + min(i % 30, 25)}"
                    for i, line in enumerate(lines)
                ),
            ]
        )
        + "\n"
    )
    done = call("fit", "--nodes", nodes, "--edges", edges, "--label", "revenue")
    assert done.returncode == 3
    expected = "the 120 labels in column 'revenue' have 104 different values, such as 1000 and 1001. The column looks like an amount or a name."
    assert expected in done.stderr
    assert "Name the column that holds the classes (label=" in done.stderr


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(call, own_files, words):
    own_files()
    done = call(*words.split())
    text, code = WRONG[words]
    assert done.returncode == code or (code is None and done.returncode in (2, 3))
    assert text in done.stderr
    assert done.stderr.startswith("everynode: ")
    assert done.stderr.count("\n") == 1
    assert (
        done.stdout == "" or "column" in done.stdout
    )  # what was understood may have been said before


def test_a_refused_command_does_not_occupy_the_folder(call, own_files):
    nodes, edges = own_files()
    words = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK)
    assert call(*words, "--preset", "paper").returncode == 2
    assert call(*words).returncode == 0


# ---------------------------------------------------------------------- predict


def test_predict_on_the_same_files_says_the_same(call, fitted, own_files):
    nodes, edges = own_files()
    for model in ("out", "out/model"):
        done = call("predict", model, "--nodes", nodes, "--edges", edges, "--out", "again.csv")
        assert done.returncode == 0, done.stderr
        before, after = rows(Path("out/predictions.csv")), rows(Path("again.csv"))
        for one, two in zip(before, after, strict=True):
            assert one | {"part": ""} == two | {"part": ""}
        assert "labeled nodes are right" in done.stdout
        assert "trained on some of these labels" in done.stdout  # all of them, here


def test_python_takes_the_folder_of_a_fit_too(fitted, own_files):
    out, _ = fitted
    nodes, edges = own_files()
    model = NodeClassifier.load(out)
    predicted = model.predict(read(nodes, edges, feature_encoder=model.feature_encoder_))
    assert predicted.tolist() == [row["predicted"] for row in rows(out / "predictions.csv")]
    with pytest.raises(DataError, match="There is no folder nowhere"):
        NodeClassifier.load("nowhere")
    with pytest.raises(DataError, match=r"people\.csv is a file"):
        NodeClassifier.load(nodes)


def test_predict_for_new_people_in_another_order(call, fitted, own_files, tmp_path):
    """Other people, rows and columns in another order, no labels: the same feature_encoder."""
    nodes, edges = own_files(n=60, seed=5, known=1.0, folder=tmp_path / "new")
    people = rows(nodes)
    order = np.random.default_rng(0).permutation(len(people))
    turned = [
        "city,id,height",
        *(f"{people[i]['city']},{people[i]['id']},{people[i]['height']}" for i in order),
    ]
    nodes.write_text("\n".join(turned) + "\n")
    done = call("predict", "out", "--nodes", nodes, "--edges", edges, "--out", "new.csv", "--json")
    assert json.loads(done.stdout) == {"predictions": "new.csv", "nodes": 60, "labeled": 0}
    found = rows(Path("new.csv"))
    assert [row["id"] for row in found] == [people[i]["id"] for i in order]
    assert all(row["labeled"] == "no" for row in found)
    truth = {row["id"]: row["team"] for row in people}
    assert np.mean([row["predicted"] == truth[row["id"]] for row in found]) > 0.8


def test_predict_counts_what_it_gets_right(call, fitted, own_files, tmp_path):
    nodes, edges = own_files(n=60, seed=5, known=1.0, folder=tmp_path / "new")
    plain = json.loads(
        call(
            "predict", "out", "--nodes", nodes, "--edges", edges, "--out", "new.csv", "--json"
        ).stdout
    )
    found = rows(Path("new.csv"))
    assert plain["labeled"] == 60
    assert plain["accuracy"][0] == pytest.approx(
        np.mean([row["predicted"] == row["label"] for row in found])
    )


def test_predict_refuses_what_it_was_not_made_for(call, fitted, own_files, tmp_path):
    nodes, edges = own_files(folder=tmp_path / "new")
    nodes.write_text(nodes.read_text().replace("height", "weight"))
    done = call("predict", "out", "--nodes", nodes, "--edges", edges)
    assert (done.returncode, "'height'" in done.stderr) == (3, True)
    assert not Path("predictions.csv").exists()
    assert call("train", "citeseer", "--epochs", "2", "--out", "named", "--quiet").returncode == 0
    done = call("predict", "named", "--nodes", nodes, "--edges", edges)
    assert done.returncode == 2
    assert "has no encoder of columns" in done.stderr


def test_predict_does_not_replace_what_fit_predicted(call, fitted, own_files):
    nodes, edges = own_files()
    before = Path("out/predictions.csv").read_bytes()
    done = call(
        "predict", "out", "--nodes", nodes, "--edges", edges, "--out", "out/predictions.csv"
    )
    assert (done.returncode, "choose another --out" in done.stderr) == (2, True)
    assert Path("out/predictions.csv").read_bytes() == before


def test_predict_does_not_replace_what_it_reads(call, fitted, own_files):
    nodes, edges = own_files()
    Path("soft.csv").symlink_to(nodes)
    Path("hard.csv").hardlink_to(edges)
    for out, victim in (
        ("people.csv", nodes),
        ("soft.csv", nodes),
        ("hard.csv", edges),
        ("out/model/model.json", "out/model/model.json"),
    ):
        before = Path(victim).read_bytes()
        done = call("predict", "out", "--nodes", nodes, "--edges", edges, "--out", out)
        assert (
            done.returncode,
            f"{victim}, which is an input. Name another --out" in done.stderr,
        ) == (2, True)
        assert Path(victim).read_bytes() == before


def test_predict_replaces_its_own_tables_and_no_others(call, fitted, own_files):
    nodes, edges = own_files()
    words = ("predict", "out", "--nodes", nodes, "--edges", edges, "--out")
    for mine in (
        b"id,predicted,probability,labeled,label,parts\n",
        b"id,predicted,probability,labeled,label,part,p_a\n",
        b"\xff\x00\x01",
        b"id\n",
        b"\n",
    ):
        Path("mine.csv").write_bytes(mine)
        done = call(*words, "mine.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            done.stderr
            == "everynode: mine.csv exists and is not a table of predictions: choose another --out, or move it away.\n"
        )
        assert Path("mine.csv").read_bytes() == mine
    Path("mine.csv").write_bytes(b"")  # as mktemp makes them
    for _ in range(2):
        assert call(*words, "mine.csv").returncode == 0
        assert len(rows(Path("mine.csv"))) == 120


def test_predict_writes_no_csv_under_a_name_that_promises_something_else(call, fitted, own_files):
    nodes, edges = own_files()
    for name in ("out.parquet", "out.XLSX", "out.json", "out.feather", "out.tsv", "out.csv.gz"):
        done = call("predict", "out", "--nodes", nodes, "--edges", edges, "--out", name)
        assert (done.returncode, Path(name).exists()) == (2, False)
        assert (
            done.stderr
            == f"everynode: --out {name}: predictions are CSV. Choose a name that ends in .csv.\n"
        )
    for name in ("out.txt", "predicted.2026-11", "predicted"):
        assert (
            call("predict", "out", "--nodes", nodes, "--edges", edges, "--out", name).returncode
            == 0
        )


@pytest.mark.parametrize("again", [(), ("--no-resume",)])
def test_fit_does_not_replace_what_it_reads(call, own_files, again):
    nodes, edges = own_files()
    before = nodes.read_bytes()
    nodes.rename("predictions.csv")
    done = call(
        "fit",
        "--nodes",
        "predictions.csv",
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        ".",
        *QUICK,
        *again,
    )
    assert (
        done.returncode,
        "predictions.csv, which is an input. Name another --out" in done.stderr,
    ) == (2, True)
    assert Path("predictions.csv").read_bytes() == before


def test_newcomers_without_the_others_are_refused_with_the_way_out(call, fitted, own_files):
    nodes, edges = own_files()
    lines = nodes.read_text().splitlines(keepends=True)
    Path("few.csv").write_text("".join(lines[:10]))
    done = call("predict", "out", "--nodes", "few.csv", "--edges", edges)
    assert (
        done.returncode,
        "Give the whole graph, with the rows of these nodes" in done.stderr,
    ) == (3, True)


def test_networks_that_diverge_are_left_out_of_an_ensemble_and_told(call, own_files, monkeypatch):
    def diverge(*args, **options):
        raise Diverged("The loss became nan.")

    monkeypatch.setattr("everynode.selection.ensemble.train", diverge)
    nodes, edges = own_files()
    done = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        "out",
        *QUICK,
        "--n-estimators",
        3,
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr
        == "Left out 2 of 3 networks, which diverged: lower the learning rates or the weights of the terms.\n"
    )
    assert json.loads(done.stdout)["networks"] == 1


# ---------------------------------------------------------------------- interrupted


LONG = (
    "--label",
    "team",
    "--cv",
    "1",
    "--objective",
    "mi+tv",
    "--epochs",
    "500",
    "--patience",
    "500",
    "--hidden-channels",
    "16",
    "--quiet",
)


def ctrl_c_after(number: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, float]]:
    """Ctrl-C once, when so many epochs have been reported; returns all that are."""
    epochs: list[dict[str, float]] = []

    def press(row: dict[str, float]) -> str:
        epochs.append(row)
        if len(epochs) == number:
            signal.raise_signal(signal.SIGINT)
        return ""

    monkeypatch.setattr("everynode.selection.single_fit.describe", press)
    return epochs


def test_ctrl_c_keeps_the_best_so_far_and_the_same_command_goes_on(call, own_files, monkeypatch):
    nodes, edges = own_files()
    words = ("fit", "--nodes", nodes, "--edges", edges, *QUICK)
    epochs = ctrl_c_after(20, monkeypatch)
    done = call(*words, "--label", "team", "--out", "broken")
    assert done.returncode == 130
    assert "Interrupted after 20 epochs" in done.stderr
    assert json.loads(Path("broken/fit.json").read_text())["interrupted"]
    assert json.loads(Path("broken/fit.json").read_text())["epochs"] == 20
    assert len(rows(Path("broken/predictions.csv"))) == 120
    assert "Training was interrupted" in Path("broken/report.html").read_text()
    for out in ("broken", "whole"):
        assert call(*words, "--label", "team", "--out", out).returncode == 0
    assert len(epochs) == 20 + 20 + 40
    for name in ("predictions.csv", "model/model.safetensors"):
        assert (Path("broken") / name).read_bytes() == (Path("whole") / name).read_bytes()


def test_a_race_that_was_interrupted_is_not_told_as_one_that_was_run(call, own_files, monkeypatch):
    nodes, edges = own_files()
    words = (
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--epochs",
        "25",
        "--hidden-channels",
        "8",
        "--out",
        "raced",
        "--quiet",
        "--backbone",
        "gcn",
    )
    ctrl_c_after(5, monkeypatch)
    assert call(*words, "--cv", "3").returncode == 130
    page = Path("raced/report.html").read_text()
    assert "Training was interrupted during successive halving." in page
    assert "the worse ones on the validation nodes stopped" not in page
    assert "–%" not in page
    done = call(*words, "--cv", "3")
    assert done.returncode == 0
    words = r"\((cross-entropy|ENC)( with light regularization)?\)"
    assert re.search(
        rf"chosen +(\S+) {words}, by validation accuracy, on a tie by the lower validation loss\n",
        done.stdout,
    )
    assert re.search(r"\n +validation accuracy of the candidates: \S+ \d+\.\d%", done.stdout)
    page = Path("raced/report.html").read_text()
    assert (
        "Several candidates trained side by side; the worse ones on the validation nodes stopped"
        in page
    )


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform == "win32",
    reason="sends SIGINT and SIGKILL to a process, which Windows does not have",
)
def test_killed_it_goes_on_where_it_was(call, own_files):
    nodes, edges = own_files()
    words = ("fit", "--nodes", nodes, "--edges", edges, *LONG)
    state = Path("broken/training/mi+tv.safetensors")
    command = [sys.executable, "-m", "everynode", *map(str, words), "--out", "broken"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 90
    while not state.exists():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    process.kill()
    process.wait()
    for out in ("broken", "whole"):
        assert call(*words, "--out", out).returncode == 0
    assert not state.parent.exists()
    for name in ("predictions.csv", "model/model.safetensors"):
        assert (Path("broken") / name).read_bytes() == (Path("whole") / name).read_bytes()


# ---------------------------------------------------------------------- the portfolio

PORTFOLIO = ("--effort", "quick", "--epochs", "8", "--hidden-channels", "8", "--quiet")


def test_the_portfolio_shows_its_leaderboard_everywhere(call, own_files):
    nodes, edges = own_files()
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *PORTFOLIO
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(Path("out/fit.json").read_text())
    names = [row["candidate"] for row in summary["leaderboard"]]
    assert len(names) >= 5
    page = Path("out/report.html").read_text()
    for name in names:
        assert name in done.stdout
        assert name in page
    sentence = summary["graph_gain"]["sentence"]
    assert sentence in done.stdout
    assert sentence in page
    assert summary["effort"] == "quick"
    assert not Path("out/training").exists()
    again = call("predict", "out", "--nodes", nodes, "--edges", edges, "--quiet")
    assert again.returncode == 0, again.stderr
    assert [row["predicted"] for row in rows(Path("predictions.csv"))] == [
        row["predicted"] for row in rows(Path("out/predictions.csv"))
    ]


def test_a_killed_portfolio_goes_on_with_what_is_missing(call, own_files, monkeypatch):
    nodes, edges = own_files()
    command = (
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        *PORTFOLIO,
        "--time-limit",
        "10m",
        "--seed",
        "3",
    )
    assert call(*command, "--out", "whole").returncode == 0

    def killed(*arguments, **options):
        raise DataError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["everynode.cli.fit"], "_write", killed)
        assert call(*command, "--out", "cut").returncode == 3
    files = sorted(Path("cut/training").glob("*.safetensors"))
    assert len(files) > 10
    for path in files[::2]:
        path.unlink()
    trained = []
    work = portfolio.run_job
    monkeypatch.setattr(
        portfolio, "run_job", lambda job, load: trained.append(job) or work(job, load)
    )
    assert call(*command, "--out", "cut").returncode == 0
    assert len(trained) == len(files[::2])
    assert rows(Path("cut/predictions.csv")) == rows(Path("whole/predictions.csv"))


def test_the_time_limit_and_new_nodes_have_flags(call, own_files):
    nodes, edges = own_files()
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *PORTFOLIO,
        "--time-limit", "1m", "--for-new-nodes", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = [row["candidate"] for row in json.loads(done.stdout)["leaderboard"]]
    assert "label_propagation" not in names
    bad = call(
        "fit",
        "--nodes",
        nodes,
        "--edges",
        edges,
        "--label",
        "team",
        "--out",
        "o",
        "--time-limit",
        "soon",
    )
    assert bad.returncode == 2
    assert "such as 90s, 10m" in bad.stderr


def test_validation_nodes_of_the_split_choose_and_the_fit_says_so(call, own_files):
    nodes, edges = own_files()
    table = rows(nodes)
    with nodes.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*table[0], "part"])
        writer.writeheader()
        for number, row in enumerate(table):
            part = ("train", "val", "test")[number % 3] if row["team"] else ""
            writer.writerow(row | {"part": part})
    done = call(
        "fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--split", "part", "--out", "out",
        *PORTFOLIO[:-1],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The validation nodes choose the models" in done.stdout


def test_a_fit_that_fails_at_the_end_leaves_no_half_of_its_results(call, own_files, monkeypatch):
    nodes, edges = own_files()
    command = ["fit", "--nodes", nodes, "--edges", edges, "--label", "team", "--out", "out", *QUICK]

    def full(*_: object) -> None:
        raise DataError("Cannot write predictions.csv: no space left.")

    with monkeypatch.context() as patched:
        patched.setattr(Predictions, "write_csv", full)
        assert call(*command).returncode == 3
    assert {path.name for path in Path("out").iterdir()} <= {"run.json", "training"}
    assert call(*command).returncode == 0
    assert (Path("out") / "fit.json").exists()


def test_sheets_and_queries_are_files_of_a_fit(call, own_files):
    import sqlite3

    nodes, edges = own_files()
    table = rows(nodes)
    names = ", ".join(f'"{name}"' for name in table[0])
    with contextlib.closing(sqlite3.connect("shop.db")) as database, database:
        database.execute(f"CREATE TABLE people ({names})")
        marks = ", ".join("?" * len(table[0]))
        database.executemany(
            f"INSERT INTO people VALUES ({marks})", [tuple(r.values()) for r in table]
        )
    query = "sqlite:shop.db?SELECT * FROM people"
    done = call("fit", "--nodes", query, "--edges", edges, "--label", "team", *QUICK)
    assert done.returncode == 0, done.stderr
    assert len(rows(Path("runs/fit-shop/predictions.csv"))) == len(table)
    again = call("predict", "runs/fit-shop", "--nodes", query, "--edges", edges, "--out", "shop.db")
    assert again.returncode == 2
    assert "which is an input" in again.stderr


def test_a_portfolio_is_fitted_on_sampled_subgraphs_and_predicts_in_blocks(call, own_files):
    nodes, edges = own_files()
    files = ("--nodes", nodes, "--edges", edges)
    done = call(
        "fit", *files, "--label", "team", "--out", "out", "--effort", "quick", "--time-limit", "5m",
        "--epochs", 10, "--hidden-channels", 8, "--workers", 1, "--batch-size", 32,
        "--fan-out", "5,3", "--no-refit",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 worker, " in done.stdout
    assert "trained on sampled subgraphs of 32 seed nodes." in done.stdout
    board = json.loads(Path("out/fit.json").read_text())["leaderboard"]
    assert all(row["folds"] for row in board)
    cards = [json.loads(path.read_text()) for path in Path("out/model/members").rglob("model.json")]
    sampled = {
        card["settings"]["backbone"]: card["batches"] and card["batches"]["fan_out"]
        for card in cards
    }
    fans = {"gcn": [5, 3], "sage": [5, 3], "mlp": [5]}
    assert sampled == {name: fans.get(name) for name in sampled}
    tables = []
    for size in ("auto", "7", "full"):
        done = call("predict", "out", *files, "--out", f"{size}.csv", "--batch-size", size)
        assert done.returncode == 0, done.stderr
        tables.append([row["predicted"] for row in rows(Path(f"{size}.csv"))])
    assert tables[0] == tables[1] == tables[2]


def test_the_memory_decides_between_the_full_graph_and_batches(call, own_files, monkeypatch):
    nodes, edges = own_files()
    words = ("fit", "--nodes", nodes, "--edges", edges, "--label", "team", *SETTINGS)
    done = call(*words, "--out", "full")
    assert "full batch." in done.stdout
    monkeypatch.setattr("everynode.training.memory_plan.free_memory_mb", lambda: 20.0)
    done = call(*words, "--out", "sampled")
    assert done.returncode == 0
    assert "trained on sampled subgraphs of 64 seed nodes. It may end without a" in done.stderr
    card = json.loads(Path("sampled/model/model.json").read_text())
    assert card["batches"]["size"] == 64
    assert json.loads(Path("full/model/model.json").read_text())["batches"] is None
