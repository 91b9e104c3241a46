"""The portfolio: candidates train fold by fold, and clearly worse ones drop out after each round.

A candidate trains its first fold to the end, so a slow start does not count against it. After each
round, the out-of-fold log-losses are compared node by node
(:class:`~everynode.selection.race.Race`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from everynode.batches import Batches
from everynode.errors import EverynodeError
from everynode.graph import Graph
from everynode.graph.preparation import fit_preparation
from everynode.objectives.cross_entropy import class_weights
from everynode.selection.candidate import Candidate
from everynode.selection.fold_result import FoldResult
from everynode.selection.portfolio_job import Job, Workload, run_job
from everynode.selection.race import Race
from everynode.selection.time_limit import Deadline
from everynode.training.callbacks import Callback, replay
from everynode.training.memory_plan import FULL, MemoryPlan
from everynode.training.process_pool import SMALL, Engine, run_many

LOG = logging.getLogger(__name__)
#: Trainings on larger graphs (nodes and edges) take more than seconds, so they save their state.
LARGE = 50_000


def run_portfolio(
    graph: Graph,
    candidates: Sequence[Candidate],
    *,
    folds: Sequence[int],
    seeds: int = 1,
    seed: int = 0,
    keep: Sequence[int] = (8, 5),
    time_limit: float | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    checkpoint: Path | None = None,
    report: Callable[[int, int, str], None] | None = None,
    callbacks: Sequence[Callback] = (),
    plan: MemoryPlan = FULL,
) -> Race:
    """Train the candidates fold by fold, and return their results.

    Parameters
    ----------
    graph : Graph
        The graph with its folds.
    candidates : sequence of Candidate
        The candidates, in the order of their start.
    folds : sequence of int
        The folds. All candidates train on the first one, the remaining candidates on the next one,
        and the finalists on the rest.
    seeds : int
        Networks of a finalist per fold.
    seed : int
        The first seed.
    keep : sequence of int
        The largest number of candidates after each round.
    time_limit : float, optional
        Seconds. No job starts that would exceed it, and a running one ends with its best epoch.
    engine : Engine, optional
        The engine that runs the jobs; None: processes on this machine.
    workers : int, optional
        Jobs at once; None: one per core.
    checkpoint : Path, optional
        A folder for finished jobs. The same call continues with the missing ones.
    report : callable, optional
        Called after every job with the finished jobs, the number of jobs, and a note.
    callbacks : sequence of Callback
        Called for every epoch when a job has ended.
    plan : MemoryPlan
        The mini-batches. Candidates that the memory does not hold are left out.
    """
    start = time.monotonic()
    runner = start_race(
        graph, candidates, folds=folds, time_limit=time_limit, engine=engine, workers=workers,
        checkpoint=checkpoint, report=report, callbacks=callbacks,
        batches={c.name: plan.batches_for(graph, c.settings) for c in candidates},
        any_batches=plan.automatic,
    )  # fmt: skip
    race, units = runner.race, fold_seeds(folds, seeds, seed)
    race.outcomes |= _left_out(graph, candidates, plan)
    rounds = [units[:1], units[1:2], units[2:]] if len(folds) > 1 else [units[:1], units[1:]]
    order = [candidate.name for candidate in candidates]
    for number, part in enumerate(rounds):
        if not part or race.interrupted or race.cut:
            break
        left = keep[-1] if number + 2 >= len(rounds) else keep[0]  # after this round
        if number:
            last = number + 1 == len(rounds)
            order = race.drop(keep[-1] if last else keep[min(number, len(keep)) - 1])
        later = sum(map(len, rounds[number + 1 :]))
        runner.total = runner.started + len(order) * len(part) + min(left, len(order)) * later
        runner.run([Job(name, *u) for u in part for name in order if race.needs(name, u, units)])
    race.seconds = time.monotonic() - start
    return race


def start_race(
    graph: Graph,
    candidates: Sequence[Candidate],
    *,
    folds: Sequence[int],
    time_limit: float | None = None,
    engine: Engine | None = None,
    workers: int | None = None,
    checkpoint: Path | None = None,
    report: Callable[[int, int, str], None] | None = None,
    callbacks: Sequence[Callback] = (),
    batches: Mapping[str, Batches | None] | None = None,
    any_batches: bool = False,
) -> JobRunner:
    """Prepare the features, and return the runner of jobs with an empty race.

    Parameters are those of :func:`run_portfolio`, and ``batches``, the mini-batches by candidate;
    for ``any_batches`` see :class:`~everynode.selection.portfolio_job.Workload`.
    """
    deadline = Deadline(time_limit)
    is_large = graph.num_nodes + graph.num_edges > LARGE
    names = sorted({candidate.preparation for candidate in candidates})
    fitted = {name: fit_preparation(name, graph.features) for name in names}
    workload = Workload(
        {name: preparation.apply(graph) for name, preparation in fitted.items()},
        {candidate.name: candidate for candidate in candidates},
        checkpoint if engine is None and is_large else None,
        {name: one for name, one in (batches or {}).items() if one is not None},
        any_batches,
    )
    if is_large and engine is None:  # before the workers start, so that they share it
        _ = graph.gcn_operator, graph.neighbors if workload.batches else None
    race = Race(graph, dict(workload.candidates), fitted)
    race.class_weight = _class_weight(graph, candidates, folds[0])
    tiny = graph.num_nodes + graph.num_edges < SMALL
    on_device = graph.labels.device.type != "cpu"
    return JobRunner(
        race, workload, deadline, engine or run_many,
        1 if engine is None and (tiny or on_device) else workers, checkpoint, report, callbacks,
    )  # fmt: skip


def fold_seeds(folds: Sequence[int], seeds: int, seed: int) -> list[tuple[int, int]]:
    """Return the fold and the seed of each training: all folds once, then again.

    >>> fold_seeds([0, 1], 2, 5)
    [(0, 5), (1, 6), (0, 7), (1, 8)]
    """
    return [
        (fold, seed + number * len(folds) + place)
        for number in range(seeds)
        for place, fold in enumerate(folds)
    ]


def _left_out(graph: Graph, candidates: Sequence[Candidate], plan: MemoryPlan) -> dict[str, str]:
    """Return the outcome of each candidate that the memory does not hold."""
    obstacles = {c.name: plan.obstacle(graph, c.settings) for c in candidates}
    return {name: f"left out: {why}" for name, why in obstacles.items() if why}


def _class_weight(graph: Graph, candidates: Sequence[Candidate], fold: int) -> Tensor | None:
    """Return the weight of each class: the given one, or equal classes if the metric asks so."""
    settings = candidates[0].settings
    by_class = settings.monitor in ("balanced_accuracy", "macro_f1")
    weight: Any = settings.class_weight or ("balanced" if by_class else None)
    return class_weights(graph, fold, weight)


class JobRunner:
    """Runs jobs, keeps their results in a race, and stops at the deadline.

    Parameters
    ----------
    race : Race
        The results; each job adds one.
    workload : Workload
        Everything that the jobs share.
    deadline : Deadline
        The moment at which every job must have ended.
    engine : Engine
        Runs the jobs.
    workers : int or None
        Number of jobs at once; None: one per core.
    folder : Path or None
        The folder of the finished jobs; a later call continues from there.
    report : callable or None
        Called with the finished jobs, all jobs, and a note.
    callbacks : sequence of Callback
        Functions that follow the trainings.

    Attributes
    ----------
    race : Race
        The results.
    total, started, done : int
        The number of jobs in all (for progress), of those handed over, and of finished ones.
    known : dict of str to float
        Seconds of a job by candidate, from earlier races.
    """

    def __init__(
        self,
        race: Race,
        workload: Workload,
        deadline: Deadline,
        engine: Engine,
        workers: int | None,
        folder: Path | None,
        report: Callable[[int, int, str], None] | None,
        callbacks: Sequence[Callback] = (),
    ):
        self.race, self.workload, self.deadline, self.engine = race, workload, deadline, engine
        self.workers, self.folder, self.report = workers, folder, report
        self.callbacks = callbacks
        self.total = self.started = self.done = 0
        self.known: dict[str, float] = {}

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs; those of an earlier run are read from the folder."""
        missing = []
        self.started += len(jobs)
        for job in jobs:
            stored = None
            if self.folder is not None:
                path = self.folder / job.file_name
                stored = FoldResult.read(path, self.workload.key(job))
            if stored is None:
                missing.append(job)
            else:
                self._keep(job, stored)
        missing = self._longest_first(missing)
        try:
            for job, content in self.engine(
                run_job, self._in_time(missing), self.workload,
                workers=self.workers, at_most=len(missing),
            ):  # fmt: skip
                self._finish(job, content)
                if self.race.interrupted:
                    break
            left = [job for job in missing if job.candidate not in self.race.outcomes]
            if left and not (self.race.results or self.race.interrupted):
                # No job had time. The first candidate takes moments.
                self._finish(left[0], run_job(left[0], self.workload))
        except KeyboardInterrupt:
            self.race.interrupted = True
        if self.race.interrupted and not self.race.results:
            raise KeyboardInterrupt
        # Jobs end in any order: sort, so that the result does not depend on it.
        for results in self.race.results.values():
            results.sort(key=lambda result: (result.card["seed"], result.card["fold"]))

    def _longest_first(self, jobs: list[Job]) -> list[Job]:
        """Start the longest jobs first, so that no core waits for a long one at the end.

        The given order, the best first, stays if the deadline may leave some of them out.
        """
        expected = [self._expected(job.candidate) for job in jobs]
        if not self.deadline.allows(sum(expected)):
            return jobs
        order = sorted(range(len(jobs)), key=lambda i: -expected[i])
        return [jobs[i] for i in order]

    def _in_time(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """Yield the jobs that end before the deadline, judging by the finished ones."""
        for job in jobs:
            if job.candidate in self.race.outcomes:
                continue
            if not self.deadline.allows(self._expected(job.candidate)):
                self.race.cut = True
                continue
            yield job._replace(seconds=self.deadline.left())

    def _expected(self, candidate: str) -> float:
        """Return the seconds that a job of a candidate takes; 0 before the first result."""
        own = [result.wall for result in self.race.results.get(candidate, ())]
        if not own and candidate in self.known:
            return self.known[candidate]
        every = own or [r.wall for results in self.race.results.values() for r in results]
        return float(np.mean(every)) if every else 0.0

    def _finish(self, job: Job, content: bytes | str) -> None:
        if isinstance(content, str):
            LOG.info("%s: %s", job.title, content)
            if content == "interrupted":
                self.race.interrupted = True
            elif content == "out of time":
                self.race.cut = True
            else:
                self.race.outcomes[job.candidate] = content
            return
        result = FoldResult.from_bytes(content)
        self.race.cut |= bool(result.card["cut"])
        if self.folder is not None and not result.card["cut"]:
            result.write(self.folder / job.file_name)
        self._keep(job, result)

    def _keep(self, job: Job, result: FoldResult) -> None:
        self.race.results.setdefault(job.candidate, []).append(result)
        self.done += 1
        replay(self.callbacks, job.title, result.card["history"])
        if self.report is not None:
            self.report(self.done, max(self.total, self.done), self.race.best())


def require_results(race: Race) -> None:
    """Refuse a race without a result."""
    if race.results:
        return
    reasons: Any = next(iter(race.outcomes.values()), "the time limit is too short")
    raise EverynodeError(f"No candidate of the portfolio could be trained: {reasons}")
