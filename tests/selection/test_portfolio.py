"""The race of the portfolio."""

from __future__ import annotations

import time

import pytest

from everynode import Graph
from everynode.errors import EverynodeError
from everynode.selection import portfolio as module
from everynode.selection.candidate import Candidate
from everynode.selection.portfolio import require_results, run_portfolio, start_race
from everynode.selection.portfolio_job import Job
from everynode.selection.race import Race
from everynode.settings import Settings
from everynode.training.process_pool import run_many
from helpers.races import CANDIDATES, candidate, race_graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return race_graph()


def summary(race: Race):
    return {
        name: [(r.card["fold"], r.card["seed"], r.logits.sum().item()) for r in results]
        for name, results in race.results.items()
    }


def test_every_candidate_has_its_first_fold_and_the_best_have_all(graph):
    race = run_portfolio(graph, CANDIDATES, folds=range(3), keep=(3, 3))
    assert set(race.results) == {c.name for c in CANDIDATES}
    assert all(0 in race.folds(c.name) for c in CANDIDATES)
    names, folds = race.common_folds()
    assert folds == [0, 1, 2]
    assert len(names) >= 3
    assert "dropped" in race.outcomes["blinder"]
    assert not race.cut
    assert not race.interrupted
    assert len(race.labels(folds)) == 60  # every label is held out once


def test_processes_and_seeds_do_not_change_the_result(graph, monkeypatch):
    here = run_portfolio(graph, CANDIDATES, folds=range(3), seed=5)
    monkeypatch.setattr(module, "SMALL", 0)
    there = run_portfolio(graph, CANDIDATES, folds=range(3), seed=5, workers=2)
    assert summary(here) == summary(there)
    assert summary(here) != summary(run_portfolio(graph, CANDIDATES, folds=range(3), seed=6))


def test_a_killed_race_continues_with_what_is_missing(graph, tmp_path):
    whole = run_portfolio(graph, CANDIDATES, folds=range(3), checkpoint=tmp_path)
    files = sorted(tmp_path.glob("*.safetensors"))
    for path in files[::2]:
        path.unlink()
    ran: list[Job] = []

    def counting(work, jobs, shared, **options):
        for job, result in run_many(work, jobs, shared, workers=1):
            ran.append(job)
            yield job, result

    again = run_portfolio(graph, CANDIDATES, folds=range(3), checkpoint=tmp_path, engine=counting)
    assert len(ran) == len(files[::2])
    assert summary(again) == summary(whole)


def test_one_fold_with_several_seeds(graph):
    race = run_portfolio(graph, CANDIDATES[:3], folds=[1], seeds=3)
    assert [len(results) for results in race.results.values()] == [3, 3, 3]
    assert race.common_folds()[1] == [1]
    assert race.logits("gcn", [1]).shape == (20, 3)


def test_a_model_without_randomness_has_one_network_a_fold(graph):
    plain = Candidate(
        "logistic", Settings(backbone="logistic"), "standardize", "features", True, False
    )
    race = run_portfolio(graph, [*CANDIDATES[:2], plain], folds=range(3), seeds=2)
    assert [len(race.results[name]) for name in ("gcn", "mlp", "logistic")] == [6, 6, 3]


def test_the_time_limit_is_kept_and_the_best_epochs_count(graph):
    slow = [candidate(f"slow-{i}", epochs=10**6, patience=10**6) for i in range(5)]
    start = time.monotonic()
    race = run_portfolio(graph, slow, folds=range(3), time_limit=1.5)
    assert time.monotonic() - start < 3
    assert race.cut
    assert len(race.results) >= 1
    assert next(iter(race.results.values()))[0].card["cut"]


def test_a_limit_that_is_too_short_still_gives_the_first_candidate(graph):
    race = run_portfolio(graph, CANDIDATES, folds=range(3), time_limit=1e-9)
    assert race.cut
    assert set(race.results) == {"gcn"}
    assert race.common_folds() == (["gcn"], [0])


def test_a_candidate_that_diverges_is_out_and_the_others_go_on(graph):
    wild = candidate("wild", lr=1e30, lr_gnn=1e30)
    race = run_portfolio(graph, [wild, *CANDIDATES[:3]], folds=range(3))
    assert "became" in race.outcomes["wild"]
    assert race.common_folds()[0] == ["gcn", "mlp", "appnp"]
    alone = run_portfolio(graph, [wild], folds=range(3))
    with pytest.raises(EverynodeError, match="No candidate of the portfolio could be trained"):
        require_results(alone)


def test_ctrl_c_keeps_what_has_finished(graph):
    def interrupted(work, jobs, shared, **options):
        for number, job in enumerate(jobs):
            if number == 2:
                raise KeyboardInterrupt
            yield job, work(job, shared)

    race = run_portfolio(graph, CANDIDATES, folds=range(3), engine=interrupted)
    assert race.interrupted
    assert race.common_folds() == (["gcn", "mlp"], [0])

    def at_once(work, jobs, shared, **options):
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        run_portfolio(graph, CANDIDATES, folds=range(3), engine=at_once)


def test_progress_counts_trainings_and_names_the_best(graph):
    seen = []
    run_portfolio(graph, CANDIDATES[:3], folds=range(3), report=lambda *row: seen.append(row))
    assert [row[0] for row in seen] == list(range(1, 10))
    assert seen[-1][:2] == (9, 9)
    assert seen[-1][2].startswith("best so far ")


def test_long_jobs_start_first_if_all_of_them_end_in_time(graph):
    def order(limit: float | None) -> list[str]:
        started: list[str] = []

        def note(work, jobs, shared, **_):
            started.extend(job.candidate for job in jobs)
            return iter(())

        runner = start_race(graph, CANDIDATES, folds=[0], engine=note, time_limit=limit)
        runner.known = {CANDIDATES[1].name: 9.0, CANDIDATES[2].name: 20.0}
        runner.race.outcomes["any"] = "diverged"  # or it would run the first job itself
        runner.run([Job(candidate.name, 0, 0) for candidate in CANDIDATES[:3]])
        return started

    names = [candidate.name for candidate in CANDIDATES[:3]]
    assert order(None) == order(1000.0) == [names[2], names[1], names[0]]
    assert order(25.0) == names  # the best first: not all may end in time
