"""A job of the portfolio."""

import dataclasses

import pytest

from everynode import Graph
from everynode.batches import Batches
from everynode.selection.fold_result import FoldResult
from everynode.selection.portfolio_job import Job, Workload, run_job
from helpers.races import CANDIDATES, race_graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return race_graph()


def test_the_key_of_a_job_changes_with_everything_that_matters(graph):
    workload = Workload({"standardize": graph}, {c.name: c for c in CANDIDATES})
    keys = {
        workload.key(Job(*job))
        for job in (("gcn", 0, 0), ("gcn", 1, 0), ("gcn", 0, 1), ("mlp", 0, 0))
    }
    assert len(keys) == 4
    assert workload.key(Job("gcn", 0, 0, 5.0)) == workload.key(Job("gcn", 0, 0))


def test_a_job_leaves_no_state_behind(graph, tmp_path):
    workload = Workload({"standardize": graph}, {c.name: c for c in CANDIDATES}, tmp_path)
    assert isinstance(run_job(Job("gcn", 0, 0), workload), bytes)
    assert [path for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_a_job_on_sampled_subgraphs_remembers_them(graph):
    batches = Batches(16, (5,))
    candidates = {c.name: c for c in CANDIDATES}
    workload = Workload({"standardize": graph}, candidates, batches={"gcn": batches})
    content = run_job(Job("gcn", 0, 0), workload)
    assert isinstance(content, bytes)
    result = FoldResult.from_bytes(content).result(graph.classes, graph.name, graph.digest)
    assert result.batches == batches
    full = Workload({"standardize": graph}, candidates)
    either = dataclasses.replace(workload, any_batches=True)
    job = Job("gcn", 0, 0)
    assert workload.key(job) != full.key(job) == either.key(job)
