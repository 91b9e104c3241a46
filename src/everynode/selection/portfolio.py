"""The portfolio: candidates trained fold by fold, and the clearly worse ones dropped in between.

A candidate's first fold is trained to its end, so no slow starter is thrown out. After a round, the
candidates are compared by their out-of-fold log-loss, node by node.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from everynode.errors import Diverged, EverynodeError
from everynode.graph import Graph
from everynode.graph.preparation import FittedPreparation, fit_preparation
from everynode.objectives.cross_entropy import class_weights
from everynode.selection.candidate import Candidate
from everynode.selection.fold_result import FoldResult
from everynode.selection.greedy_ensemble import SLACK, calibrated, node_losses, paired_gap
from everynode.selection.time_limit import Deadline
from everynode.training.callbacks import Callback, replay
from everynode.training.closed_form import is_closed_form
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training
from everynode.training.process_pool import Engine, run_many

LOG = logging.getLogger(__name__)
#: Nats that a network is handicapped by for each fold. The nodes that judge it also chose its
#: epoch, which flatters it by about one nat: as a fitted parameter does in Akaike's criterion.
EPOCH_NATS = 1.0
#: A candidate is dropped if its loss exceeds the best one by more than this many standard errors.
MARGIN = 2.0
#: At least this many candidates stay.
LEAST = 3
#: With fewer judged nodes, only the margin drops candidates: their order is mostly chance.
FEW_NODES = 30
#: Jobs on smaller graphs (nodes and edges) run in this process: a pool would cost more.
SMALL = 1500
#: Trainings on larger graphs (nodes and edges) keep their state: they take more than seconds.
LARGE = 50_000


class Job(NamedTuple):
    """A candidate on a fold with a seed.

    ``seconds``: the time left for it. ``prefix``: the start of the names of its files.
    """

    candidate: str
    fold: int
    seed: int
    seconds: float | None = None
    prefix: str = ""

    @property
    def file_name(self) -> str:
        """The name of the result file."""
        return f"{self.title}.safetensors"

    @property
    def title(self) -> str:
        """The name of the training."""
        return f"{self.prefix}{self.candidate}-fold-{self.fold + 1}-seed-{self.seed}"


@dataclass(frozen=True)
class Workload:
    """Everything that the jobs share.

    Parameters
    ----------
    graphs : mapping of str to Graph
        The graph by preparation. All of them share the operators of the edges.
    candidates : mapping of str to Candidate
        The candidates by name.
    states : Path, optional
        A folder for the state of a training in progress.
    """

    graphs: Mapping[str, Graph]
    candidates: Mapping[str, Candidate]
    states: Path | None = None

    def key(self, job: Job) -> str:
        """Return a digest of everything that decides the result of a job."""
        candidate = self.candidates[job.candidate]
        content = [
            sorted(candidate.settings.identity().items(), key=lambda item: item[0]),
            candidate.preparation, job.fold, job.seed, self.graphs[candidate.preparation].digest,
        ]  # fmt: skip
        return hashlib.sha256(repr(content).encode()).hexdigest()


def run_job(job: Job, workload: Workload) -> bytes | str:
    """Train a candidate on a fold; return the file of its result, or the reason why not."""
    start = time.monotonic()
    candidate = workload.candidates[job.candidate]
    graph = workload.graphs[candidate.preparation]
    state = None if workload.states is None else workload.states / f"state-{job.file_name}"
    with deferred_interrupt() as interrupt:
        expired = threading.Event()
        timer = _timer(job.seconds, interrupt, expired)
        try:
            training = Training(
                graph, candidate.settings, fold=job.fold, seed=job.seed, checkpoint=state
            )
            training.advance(interrupt)
            cut = interrupt.is_set()
            if cut and not (expired.is_set() and training.best):
                return "interrupted" if not expired.is_set() else "out of time"
            trained = training.result()
        except Diverged as error:
            return str(error)
        finally:
            if timer is not None:
                timer.cancel()
    with torch.no_grad():
        logits = trained.network(graph, graph.nodes("val", job.fold))
    trained.network.clear_cache()
    if state is not None:
        state.unlink(missing_ok=True)
    wall = time.monotonic() - start
    return FoldResult.of(trained, logits, workload.key(job), cut=cut, wall=wall).to_bytes()


def _timer(
    seconds: float | None, interrupt: threading.Event, expired: threading.Event
) -> threading.Timer | None:
    """Start a timer that ends the training after its current step."""
    if seconds is None:
        return None

    def end() -> None:
        expired.set()
        interrupt.set()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer


@dataclass
class Race:
    """The results of the portfolio.

    Attributes
    ----------
    graph : Graph
        The graph with its folds.
    candidates : dict of str to Candidate
        The candidates by name.
    preparations : dict of str to FittedPreparation
        The fitted preparations by name.
    results : dict of str to list of FoldResult
        The finished jobs of each candidate.
    outcomes : dict of str to str
        Why a candidate is not among the finalists.
    class_weight : Tensor or None
        The weight of each class in the comparison of the candidates.
    interrupted, cut : bool
        Whether Ctrl-C or the time limit ended the search.
    seconds : float
        The time of the search.
    """

    graph: Graph
    candidates: dict[str, Candidate]
    preparations: dict[str, FittedPreparation]
    results: dict[str, list[FoldResult]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    cut: bool = False
    seconds: float = 0.0
    class_weight: Tensor | None = None
    _cache: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    def folds(self, name: str) -> set[int]:
        """Return the folds that a candidate has finished."""
        return {result.card["fold"] for result in self.results.get(name, ())}

    def needs(self, name: str, unit: tuple[int, int], units: Sequence[tuple[int, int]]) -> bool:
        """Whether a candidate trains on a fold with a seed: without seeds, once per fold."""
        first = next(seed for fold, seed in units if fold == unit[0])
        return self.candidates[name].seeded or unit[1] == first

    def alive(self) -> list[str]:
        """Return the candidates with a result that were not dropped."""
        return [name for name in self.candidates if self.folds(name) and name not in self.outcomes]

    def nodes(self, folds: Sequence[int]) -> Tensor:
        """Return the validation nodes of some folds."""
        return torch.cat([self.graph.nodes("val", fold) for fold in folds]).cpu()

    def labels(self, folds: Sequence[int]) -> Tensor:
        """Return the labels of the validation nodes of some folds."""
        return self.graph.labels.cpu()[self.nodes(folds)]

    def node_weight(self, folds: Sequence[int]) -> np.ndarray:
        """Return the weight of each validation node in the comparison, of mean 1."""
        labels = self.labels(folds)
        if self.class_weight is None:
            return np.ones(len(labels))
        weight: np.ndarray = self.class_weight.double().cpu()[labels].numpy()
        return weight / max(weight.mean(), 1e-300)

    def logits(self, name: str, folds: Sequence[int]) -> Tensor:
        """Return the out-of-fold logits: the mean log-probabilities over the seeds of each fold."""
        parts = []
        for fold in folds:
            each = [
                torch.log_softmax(result.logits, dim=1)
                for result in self.results[name]
                if result.card["fold"] == fold
            ]
            mean = torch.logsumexp(torch.stack(each), dim=0) - np.log(len(each))
            parts.append(each[0] if len(each) == 1 else mean)
        return torch.cat(parts)

    def losses(self, names: Sequence[str], folds: Sequence[int]) -> np.ndarray:
        """Return candidates x nodes: the calibrated out-of-fold log-loss of each node."""
        return np.stack([self._losses(name, tuple(folds)) for name in names])

    def handicap(self, names: Sequence[str], folds: Sequence[int]) -> np.ndarray:
        """Return what the choice of the epoch is worth, in nats per node, for each candidate."""
        each = EPOCH_NATS * len(folds) / max(len(self.labels(folds)), 1)
        solved = [is_closed_form(self.candidates[name].settings) for name in names]
        return np.where(solved, 0.0, each)

    def _losses(self, name: str, folds: tuple[int, ...]) -> np.ndarray:
        key = name, folds, len(self.results[name])
        if key not in self._cache:
            labels = self.labels(folds)
            log_p, _ = calibrated(self.logits(name, folds), labels)
            self._cache[key] = node_losses(log_p, labels) * self.node_weight(folds)
        return self._cache[key]

    def common_folds(self) -> tuple[list[str], list[int]]:
        """Return the finalists and the folds that all of them have finished.

        After a time limit or Ctrl-C, candidates may have finished different folds: the finalists
        are those with the most folds, at least :data:`LEAST` of them where possible.
        """
        alive = self.alive()
        if not alive:
            return [], []
        least = min(LEAST, len(alive))
        for size in range(max(len(self.folds(n)) for n in alive), 0, -1):
            finalists = [n for n in alive if len(self.folds(n)) >= size]
            common = set.intersection(*(self.folds(n) for n in finalists)) if finalists else set()
            if len(finalists) >= least and len(common) >= min(size, 1):
                return finalists, sorted(common)
        return alive[:1], sorted(self.folds(alive[0]))

    def drop(self, at_most: int) -> list[str]:
        """Drop the clearly worse candidates, and return the rest, the best first.

        The best candidate of every kind (features, graph, both) stays: their comparison says what
        the graph adds.
        """
        names, folds = self.common_folds()
        if not names:
            return []
        losses = self.losses(names, folds) + self.handicap(names, folds)[:, None]
        order = [int(i) for i in np.argsort(losses.mean(1), kind="stable")]
        best_of_kind = {self.candidates[names[i]].uses: i for i in reversed(order)}.values()
        stay = []
        for rank, i in enumerate(order):
            gap, error = paired_gap(losses[i], losses[order[0]])
            slack = error + SLACK / math.sqrt(losses.shape[1])
            room = rank < at_most or losses.shape[1] < FEW_NODES
            near = rank < LEAST or (gap <= MARGIN * slack and room)
            if near or i in best_of_kind:
                stay.append(names[i])
            else:
                count = len(folds)
                after = f"{count} folds" if count > 1 else "its first training"
                self.outcomes[names[i]] = f"dropped after {after}"
        return stay

    def best(self) -> str:
        """Return the best candidate so far with its accuracy, for progress."""
        names, folds = self.common_folds()
        if not names:
            return ""
        judged = self.losses(names, folds).mean(1) + self.handicap(names, folds)
        i = int(judged.argmin())
        right = (self.logits(names[i], folds).argmax(1) == self.labels(folds)).double().mean()
        return f"best so far {names[i]} {100 * float(right):.1f} %"


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
) -> Race:
    """Train the candidates fold by fold, and return their results.

    Parameters
    ----------
    graph : Graph
        The graph with its folds.
    candidates : sequence of Candidate
        The candidates, in the order of their start.
    folds : sequence of int
        The folds. The first is for all candidates, the next for those that are left, and the rest
        for the finalists.
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
    """
    start = time.monotonic()
    runner = start_race(
        graph, candidates, folds=folds, time_limit=time_limit, engine=engine, workers=workers,
        checkpoint=checkpoint, report=report, callbacks=callbacks,
    )  # fmt: skip
    race, units = runner.race, fold_seeds(folds, seeds, seed)
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
) -> JobRunner:
    """Prepare the features, and return the runner of jobs with an empty race.

    Parameters are those of :func:`run_portfolio`.
    """
    deadline = Deadline(time_limit)
    names = sorted({candidate.preparation for candidate in candidates})
    fitted = {name: fit_preparation(name, graph.features) for name in names}
    workload = Workload(
        {name: preparation.apply(graph) for name, preparation in fitted.items()},
        {candidate.name: candidate for candidate in candidates},
        checkpoint if engine is None and graph.num_nodes + graph.num_edges > LARGE else None,
    )
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


def _class_weight(graph: Graph, candidates: Sequence[Candidate], fold: int) -> Tensor | None:
    """Return the weight of each class: the given one, or equal classes if the metric asks so."""
    settings = candidates[0].settings
    by_class = settings.monitor in ("balanced_accuracy", "macro_f1")
    weight: Any = settings.class_weight or ("balanced" if by_class else None)
    return class_weights(graph, fold, weight)


class JobRunner:
    """Runs jobs, keeps their results in a race, and stops at the deadline.

    Attributes
    ----------
    race : Race
        The results.
    total, started, done : int
        The number of jobs in all (for progress), of those handed over, and of finished ones.
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
        try:
            for job, content in self.engine(
                run_job, self._in_time(missing), self.workload,
                workers=self.workers, at_most=len(missing),
            ):  # fmt: skip
                self._finish(job, content)
                if self.race.interrupted:
                    break
        except KeyboardInterrupt:
            self.race.interrupted = True
        if self.race.interrupted and not self.race.results:
            raise KeyboardInterrupt
        # Jobs end in any order: sort, so that the result does not depend on it.
        for results in self.race.results.values():
            results.sort(key=lambda result: (result.card["seed"], result.card["fold"]))

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
        """Return the seconds that a job of a candidate takes; at first nothing is known."""
        own = [result.wall for result in self.race.results.get(candidate, ())]
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
    """Refuse a race in which no candidate has a result."""
    if race.results:
        return
    reasons: Any = next(iter(race.outcomes.values()), "the time limit is too short")
    raise EverynodeError(f"No candidate of the portfolio could be trained: {reasons}")
