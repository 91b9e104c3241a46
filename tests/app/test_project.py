"""The folder of a project."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from everynode.app.journal import Entry
from everynode.app.project import Project, Source, read_options
from everynode.errors import DataError, UsageError


def test_a_project_continues_with_its_files_and_answers(tmp_path: Path, source: Source) -> None:
    first = Project(tmp_path / "p", source)
    first.answer(Entry("label", "ann", "n1", "team1"))
    first.save(replace(source, weight="strength", na=("?",)))
    first.close()
    again = Project(tmp_path / "p")
    assert again.source == replace(source, weight="strength", na=("?",))
    assert again.answers.labels == {"n1": "team1"}
    assert again.labels_csv(("id", "team")).splitlines()[1] == "n1,team1,person 1"
    again.close()


def test_a_second_process_is_refused(tmp_path: Path, source: Source) -> None:
    first = Project(tmp_path / "p", source)
    with pytest.raises(UsageError, match="is open in another"):
        Project(tmp_path / "p")
    first.close()
    Project(tmp_path / "p").close()


def test_other_files_and_damaged_projects_are_refused(tmp_path: Path, source: Source) -> None:
    Project(tmp_path / "p", source).close()
    with pytest.raises(UsageError, match=r"is a project on .*nodes.csv"):
        Project(tmp_path / "p", replace(source, nodes="other.csv"))
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "project.json").write_text('{"source": {"nodes": 3}}')
    with pytest.raises(DataError, match="cannot be read"):
        Project(tmp_path / "q")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        Project(tmp_path / "file")


def test_rounds_are_numbered_and_an_unfinished_one_is_used_again(project: Project) -> None:
    files = {"request.json": "{}", "labels.csv": "id,label"}
    first = project.new_round(files)
    assert first.name == "0001"
    (first / "training").mkdir()
    assert project.new_round(files) == first
    assert (first / "training").exists()  # it continues
    assert project.new_round({"request.json": "{}"}) == first  # other labels: from the beginning
    assert [path.name for path in first.iterdir()] == ["request.json"]
    assert project.rounds == []
    (first / "round.json").write_text("{}")
    assert project.rounds == [first]
    assert project.new_round(files).name == "0002"


@pytest.mark.parametrize("name", ["../../x.csv", "a/b/x.csv", "C:\\x.csv", "...x.csv"])
def test_uploads_stay_in_the_project(project: Project, name: str) -> None:
    assert project.upload_path(name) == project.folder / "files" / "x.csv"


def test_sources_become_absolute_and_keep_their_sheets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = Source(nodes="a.xlsx#People", edges="b.csv").absolute()
    assert found.nodes == f"{tmp_path}/a.xlsx#People"
    assert found.edges == str(tmp_path / "b.csv")
    assert Source(edges="links.csv").name == "links"
    assert read_options(found, keep=["x"])["keep"] == ["x"]
