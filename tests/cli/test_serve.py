"""``everynode app`` before the server starts: its flags, and the projects it opens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everynode.app.project import Project
from everynode.cli import app as cli
from everynode.errors import UsageError


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, elsewhere: None) -> list[dict[str, Any]]:
    """The workspaces that would be served, as plain values."""
    calls: list[dict[str, Any]] = []

    def serve(work: Any, **options: Any) -> None:
        project = work.project
        calls.append({"folder": project.folder, "source": project.source, "model": project.model,
                      "files": [path.name for path in work.files], **options})  # fmt: skip

    monkeypatch.setattr("everynode.app.server.serve", serve)
    return calls


def run(*words: str) -> int:
    code: int = cli(
        ["app", *words], exit_on_error=False, print_error=False, result_action="return_value"
    )
    return code


def test_files_become_a_project_that_only_this_computer_sees(
    opened: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("id\n")
    assert run("--nodes", "people.csv", "--label", "team", "--na", "?", "--no-browser") == 0
    (call,) = opened
    assert (call["host"], call["port"], call["browser"]) == ("127.0.0.1", None, False)
    assert call["folder"] == Path("runs/app-people")
    assert call["files"] == ["people.csv"]
    source = call["source"]
    assert (source.nodes, source.label, source.na) == (str(tmp_path / "people.csv"), "team", ("?",))
    run("runs/app-people", "--port", "8123")  # continue it
    assert (opened[1]["source"], opened[1]["port"]) == (source, 8123)


def test_without_files_the_page_asks_for_them(opened: list[dict[str, Any]]) -> None:
    run("--project", "mine")
    assert opened[0]["folder"] == Path("mine")
    assert opened[0]["source"].nodes is None


def test_a_fit_says_which_files_it_was_trained_on(
    opened: list[dict[str, Any]], tmp_path: Path
) -> None:
    fit = tmp_path / "fit"
    fit.mkdir()
    command = "everynode fit --nodes people.csv --edges links.csv --label team --split none --directed --quiet"
    (fit / "run.json").write_text(json.dumps({"key": "x", "command": command}))
    run("fit")
    source = opened[0]["source"]
    assert (source.nodes, source.label, source.split, source.directed) == (
        str(tmp_path / "people.csv"),
        "team",
        "none",
        True,
    )
    assert opened[0]["model"] == str(fit)
    (fit / "run.json").unlink()
    with pytest.raises(UsageError, match="does not say which files"):
        run("fit", "--project", "other")


def test_bad_flags_are_refused(opened: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match="port"):
        run("--port", "0")
    Project(Path("p")).close()
    Path("p/project.json").write_text('{"source": {}}')
    with pytest.raises(UsageError, match="give it alone"):
        run("p", "--nodes", "x.csv")
    assert opened == []
