"""The folder of a run: results appear together."""

from __future__ import annotations

from pathlib import Path

import pytest

from everynode.cli.folder import STAGED, publish
from everynode.errors import DataError


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, *names: str, content: str = "new") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def test_results_appear_together_and_the_summary_last(tmp_path, monkeypatch):
    moved = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda path, to: moved.append(Path(to).name) or replace(path, to)
    )
    write(tmp_path, "fit.json", "model/notes.txt", content="old")
    with publish(tmp_path, "fit.json") as new:
        write(new, "fit.json", "model/model.json", "report.html", "model/1/weights")
        assert {"fit.json", "model/notes.txt"} <= files(tmp_path)
        assert (tmp_path / "fit.json").read_text() == "old"
        assert not (tmp_path / "report.html").exists()
    assert moved[-1] == "fit.json"
    assert files(tmp_path) == {
        "fit.json",
        "report.html",
        "model/model.json",
        "model/notes.txt",
        "model/1/weights",
    }
    assert (tmp_path / "fit.json").read_text() == "new"


def test_a_failure_leaves_the_old_results(tmp_path):
    write(tmp_path, "fit.json", "report.html", content="old")

    def fail() -> None:
        with publish(tmp_path, "fit.json") as new:
            write(new, "report.html")
            raise DataError("The disk is full.")

    with pytest.raises(DataError, match="The disk is full"):
        fail()
    assert files(tmp_path) == {"fit.json", "report.html"}
    assert (tmp_path / "report.html").read_text() == "old"


def test_a_failure_while_moving_leaves_no_summary(tmp_path, monkeypatch):
    write(tmp_path, "fit.json", content="old")

    def refuse(path: Path, to: Path) -> None:
        raise OSError(28, "No space left on device")

    def run() -> None:
        with publish(tmp_path, "fit.json") as new:
            write(new, "fit.json", "report.html")
            monkeypatch.setattr(Path, "replace", refuse)

    with pytest.raises(DataError, match=r"Cannot write the results to .*No space left"):
        run()
    assert files(tmp_path) == set()


def test_what_a_killed_process_left_is_removed(tmp_path):
    write(tmp_path / STAGED, "half", "model/half")
    with publish(tmp_path, "fit.json") as new:
        write(new, "fit.json")
    assert files(tmp_path) == {"fit.json"}
