"""What all browsers share."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.conftest import make_round
from everynode.app.journal import Entry
from everynode.app.project import Project, Source
from everynode.app.workspace import Workspace, read_columns
from everynode.io import read


@pytest.fixture
def work(project: Project) -> Workspace:
    work = Workspace(project)
    asyncio.run(work.read())
    assert work.view is not None
    return work


def test_it_reads_the_graph_and_the_columns(work: Workspace) -> None:
    assert work.tables["nodes"] == ["id", "name", "size", "mood", "team"]
    assert work.tables["edges"] == ["source", "target", "strength"]
    assert work.classes == ["team0", "team1", "team2"]
    assert work.error == ""


def test_bad_roles_leave_an_error_and_the_columns(work: Workspace, source: Source) -> None:
    asyncio.run(work.read(replace(source, split="mood")))
    assert "mood" in work.error
    assert work.view is None
    assert work.tables["nodes"] == ["id", "name", "size", "mood", "team"]
    assert work.queue("ann") == []
    asyncio.run(work.read(source))
    assert work.error == ""


def test_answers_replace_labels_and_leave_the_queue(work: Workspace) -> None:
    assert work.view is not None
    before = work.labels()
    first, second, third = work.queue("ann")[:3]
    assert before[first] == before[second] == -1
    assert "similar nodes" in work.reasons[first]  # chosen without a model
    work.answer(Entry("label", "ann", work.view.ids[first], "new class"))
    work.answer(Entry("skip", "ann", work.view.ids[second]))
    assert work.classes[-1] == "new class"
    assert work.labels()[first] == 3
    assert work.queue("ann")[0] == third
    assert work.queue("bob")[0] == second  # skipping is personal
    assert work.untrained() == 1


def test_rounds_order_the_queue_and_are_compared(work: Workspace) -> None:
    assert work.comparison() is None
    n = 120
    for number in (1, 2):
        make_round(
            work.project.folder / "rounds" / f"000{number}", [0] * n, held_out={1: (0, 0)}
        ).write()
        work._on_event("ready", work.project.folder / "rounds" / f"000{number}")
    assert work.queue("ann", at_most=3) == [119, 118, 117]
    compared = work.comparison()
    assert compared is not None
    assert compared.nodes == 1
    assert work.round is not None
    assert work.round.number == 2


def start(
    work: Workspace, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[Path, dict[str, Any]]:
    """Train, but only record what would be trained."""
    asked: list[Any] = []

    async def record(folder: Path) -> None:
        asked.append((folder, json.loads((folder / "request.json").read_text())))

    monkeypatch.setattr(work.trainer, "start", record)
    asyncio.run(work.train(**options))
    return asked[0]


def test_a_training_gets_the_answers(work: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, request = start(work, monkeypatch)
    assert not (folder / "labels.csv").exists()
    assert request["answered"] == 0
    work.answer(Entry("label", "ann", "n0", "team1"))
    folder, request = start(work, monkeypatch)
    assert (folder / "labels.csv").read_text().splitlines() == [
        "id,team,answered_by",
        "n0,team1,person 1",
    ]
    graph = read(**_files(work), labels=folder / "labels.csv")
    assert graph.classes[graph.labels[0]] == "team1"


def test_answers_are_joined_with_a_file_of_labels(
    work: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more.csv").write_text("id,team\nn0,team2\n")
    asyncio.run(work.read(replace(work.project.source, labels=str(tmp_path / "more.csv"))))
    work.answer(Entry("label", "ann", "n1", "team1"))
    folder, _request = start(work, monkeypatch)
    rows = dict(line.split(",")[:2] for line in (folder / "labels.csv").read_text().splitlines())
    assert (rows["n0"], rows["n1"]) == ("team2", "team1")
    assert len(rows) > 20


def test_the_model_that_a_project_starts_with_is_shown_once(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "other", source, model="runs/fit")
    work = Workspace(project)
    asked: list[dict[str, Any]] = []

    async def record(folder: Path) -> None:
        asked.append(json.loads((folder / "request.json").read_text()))

    monkeypatch.setattr(work.trainer, "start", record)
    asyncio.run(work.read())
    asyncio.run(work.show_model())
    assert asked[0]["model"] == "runs/fit"
    project.close()


def test_columns_of_unreadable_and_graph_files_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.gexf").write_text("")
    assert read_columns(Source(nodes=str(tmp_path / "x.gexf"), edges=str(tmp_path / "no.csv"))) == {
        "nodes": [], "edges": [],
    }  # fmt: skip


def _files(work: Workspace) -> dict[str, Any]:
    source = work.project.source
    return {"nodes": source.nodes, "edges": source.edges, "label": source.label}
