"""The training of a round in a separate process."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.conftest import write_tables
from everynode.app.project import Source
from everynode.app.round import Comparison, Round
from everynode.app.worker import train
from everynode.estimator import NodeClassifier
from everynode.io import read


def learn(folder: Path, source: Source, **options: Any) -> Round:
    folder.mkdir(parents=True, exist_ok=True)
    choices: dict[str, Any] = {"model": "", "effort": "quick", "before": ""}
    train(folder, source, **choices | options)
    return Round.load(folder)


def ask(folder: Path, source: Source) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    request = {
        "source": asdict(source),
        "model": "",
        "effort": "quick",
        "before": "",
        "answered": 0,
    }
    (folder / "request.json").write_text(json.dumps(request))


def test_rounds_learn_from_answers(tmp_path: Path, source: Source, capsys) -> None:
    first = learn(tmp_path / "0001", source)
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events][-2:] == ["ready", "queue"]
    assert any(event.get("total") for event in events)  # progress with a number of steps
    n = len(first.predicted)
    assert first.arrays["positions"].shape == (n, 2)
    np.testing.assert_allclose(first.probabilities.sum(1), 1, atol=1e-5)
    assert first.facts.judged == first.facts.labels == len(first.judged)
    unlabeled = set(range(n)) - set(first.judged)
    queue = first.arrays["queue"].tolist()
    assert set(queue) == unlabeled
    assert set(first.queue()) == unlabeled
    assert "similar nodes" in next(iter(first.queue().values()))
    certainty = first.certainty[queue]
    assert (np.diff(certainty) >= 0).all()

    (tmp_path / "0002").mkdir()
    answers = [f"n{node},team{node % 3},ann" for node in queue[:6]]
    (tmp_path / "0002" / "labels.csv").write_text("\n".join(["id,team,answered_by", *answers]))
    second = learn(
        tmp_path / "0002",
        source,
        before=str(first.folder),
        answered=6,
    )
    assert second.facts.labels == first.facts.labels + 6
    assert second.facts.how == "quick"
    assert not set(queue[:6]) & set(second.arrays["queue"].tolist())
    compared = Comparison.of(first, second)
    assert (compared.nodes, compared.new) == (first.facts.judged, 6)

    model = NodeClassifier.load(second.folder / "model")
    graph = read(source.nodes, source.edges, label="team")
    np.testing.assert_allclose(model.predict_proba(graph), second.probabilities, atol=1e-5)
    with (second.folder / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["final"] for row in rows if row["id"] == f"n{queue[0]}"] == [f"team{queue[0] % 3}"]
    assert "<h1" in (second.folder / "report.html").read_text()


def test_a_model_is_shown_without_training(tmp_path: Path, source: Source) -> None:
    first = learn(tmp_path / "0001", source)
    shown = learn(tmp_path / "other" / "0001", source, model=str(first.folder / "model"))
    np.testing.assert_allclose(shown.probabilities, first.probabilities, atol=1e-5)
    assert shown.facts.how == "loaded"
    assert shown.facts.judged == first.facts.judged


def test_answers_to_nodes_outside_of_an_own_split_teach(
    tmp_path: Path, source: Source, tables
) -> None:
    lines = tables[0].read_text().splitlines()
    parts = ["train", "val", "test"]
    lines = [lines[0] + ",split"] + [
        line + "," + (parts[i % 3] if line.rpartition(",")[2] else "")
        for i, line in enumerate(lines[1:])
    ]
    tables[0].write_text("\n".join(lines))
    first = learn(tmp_path / "0001", source)
    (tmp_path / "0002").mkdir()
    node = int(first.arrays["queue"][0])
    (tmp_path / "0002" / "labels.csv").write_text(f"id,team\nn{node},team1\n")
    second = learn(tmp_path / "0002", source, answered=1)
    assert second.facts.labels == first.facts.labels + 1


def test_an_error_is_one_event(tmp_path: Path, source: Source) -> None:
    ask(tmp_path / "0001", replace(source, label="nothing"))
    command = [sys.executable, "-m", "everynode.app.worker", str(tmp_path / "0001")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["event"] == "error"
    assert "'nothing'" in last["message"]
    assert done.returncode == 1
    assert not (tmp_path / "0001" / "round.json").exists()


@pytest.mark.long
def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, 3000, known=0.5)
    source = Source(nodes=str(nodes), edges=str(edges), label="team")
    ask(tmp_path / "0001", source)
    command = [sys.executable, "-m", "everynode.app.worker", str(tmp_path / "0001")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event.get("done", 0) >= 3:
            break
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    rest = [json.loads(line)["event"] for line in process.stdout]
    assert process.wait() == 0, rest
    assert "ready" in rest
    assert time.monotonic() - start < 60
    assert Round.load(tmp_path / "0001").facts.interrupted
