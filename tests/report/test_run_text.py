"""Plans, runs and merges in words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from everynode.experiments.planning import Schedule
from everynode.experiments.run_spec import Run
from everynode.experiments.store import Merged
from everynode.report.run_text import (
    kind_lines,
    merged_line,
    overview_lines,
    run_of_comparison,
    run_of_table,
    schedule_lines,
    start_line,
    state_lines,
)
from everynode.settings import Settings

STORE = Path("runs.db")
RUN = Run("cora", "0" * 64, "public", 0, 3, "paper", "enc", Settings())
OTHER = dataclasses.replace(RUN, seed=4)


def test_the_overview_names_missing_graphs_and_the_source_of_the_times() -> None:
    row = {"id": "depth", "runs": 20, "done": 5, "seconds_left": 90, "title": "Depth"}
    first, *rest = overview_lines([row | {"missing": ["cora"]}], 7, STORE)
    assert first.startswith("depth                20 runs,     5 done, about")
    assert first.endswith("left  Depth  (without cora: no files)")
    assert rest[0].startswith("The files of cora are missing: `everynode data check cora`")
    assert rest[1].endswith("from 7 runs in runs.db.")
    assert list(overview_lines([], 0, STORE))[-1].endswith("from a model, until there are runs.")


def test_a_schedule_lists_every_run_with_its_state() -> None:
    work = Schedule([RUN, OTHER], {OTHER.key: 60.0}, [])
    first, second, total = schedule_lines(work)
    assert first.startswith(RUN.key[:12])
    assert first.endswith("seed 3  train    done")
    assert "seed 4  train    about" in second
    assert total.startswith("2 runs, 1 done; about")
    assert start_line(work, STORE, 1).startswith("2 runs, 1 of them in runs.db already. About")
    assert start_line(Schedule([RUN], {}, []), STORE, 1).endswith("in runs.db already.")
    assert [one["done"] for one in work.describe()] == [True, False]


def test_a_run_for_the_progress_bar() -> None:
    assert run_of_table(RUN, {"test_accuracy": 0.815}) == "cora gcn-2 enc: test 81.5"
    assert run_of_table(RUN, {}) == "cora gcn-2 enc"
    assert run_of_comparison(RUN, {"test_accuracy": 0.815}) == "enc fold 0 seed 3: test 81.5"
    assert run_of_comparison(RUN, {"error": "nan"}) == "enc fold 0 seed 3: diverged"


def test_kinds_and_states(tmp_path: Path) -> None:
    kind = RUN.describe() | {"runs": 12}
    first, total = kind_lines([kind], STORE)
    assert first.endswith("gcn-2    enc         12 runs")
    assert total == "12 runs in runs.db; `everynode results export` writes all of them."
    (tmp_path / "a.state").write_bytes(b"0" * 2_000_000)
    states = [tmp_path / "a.state", tmp_path / "gone.state"]
    assert next(state_lines(states, STORE)) == "Unfinished trainings: 2 (runs.db.*.state, 2 MB)."
    assert list(state_lines([], STORE)) == []


@pytest.mark.parametrize(
    ("merged", "left_out", "sentence"),
    [
        (Merged(1, 0, 0, 0, 0), 0, "a.db: 1 new run, 0 known ones."),
        (Merged(0, 2, 0, 0, 0), 1, "Left out: 1 record (maps or times)."),
        (Merged(0, 2, 0, 2, 1), 0, "Replaced 2 without a curve, 1 of them with another result."),
        (Merged(0, 2, 1, 0, 0), 0, "1 known run differs, perhaps from another machine: runs.db"),
    ],
)
def test_a_merge_in_words(merged: Merged, left_out: int, sentence: str) -> None:
    assert sentence in merged_line(Path("a.db"), STORE, merged, left_out)
