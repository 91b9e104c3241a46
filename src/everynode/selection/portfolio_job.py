"""A job of the portfolio: one candidate, trained on one fold with one seed."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch

from everynode.batches import Batches
from everynode.errors import Diverged
from everynode.graph import Graph
from everynode.selection.candidate import Candidate
from everynode.selection.fold_result import FoldResult
from everynode.training.interrupt import deferred_interrupt
from everynode.training.loop import Training
from everynode.training.mini_batch.inference import logits


class Job(NamedTuple):
    """A candidate on a fold with a seed.

    Attributes
    ----------
    candidate : str
        The name of the candidate.
    fold, seed : int
        The fold and the seed.
    seconds : float or None
        The time left for the job; None: no limit.
    prefix : str
        The start of the names of its files.
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
    batches : mapping of str to Batches
        The mini-batches of the candidates that train on sampled subgraphs.
    any_batches : bool
        Whether results count whatever their mini-batches, since the memory chose them.
    """

    graphs: Mapping[str, Graph]
    candidates: Mapping[str, Candidate]
    states: Path | None = None
    batches: Mapping[str, Batches] = field(default_factory=dict)
    any_batches: bool = False

    def key(self, job: Job) -> str:
        """Return a digest of everything that decides the result of a job."""
        candidate = self.candidates[job.candidate]
        content = [
            sorted(candidate.settings.identity().items(), key=lambda item: item[0]),
            candidate.preparation, job.fold, job.seed, self.graphs[candidate.preparation].digest,
        ]  # fmt: skip
        if job.candidate in self.batches and not self.any_batches:
            content += [self.batches[job.candidate]]
        return hashlib.sha256(repr(content).encode()).hexdigest()


def run_job(job: Job, workload: Workload) -> bytes | str:
    """Train a candidate on a fold; return the file of its result, or the reason why not."""
    start = time.monotonic()
    candidate = workload.candidates[job.candidate]
    graph = workload.graphs[candidate.preparation]
    batches = workload.batches.get(job.candidate)
    kind = "state" if batches is None else f"state-{batches.size}"
    state = None if workload.states is None else workload.states / f"{kind}-{job.file_name}"
    with deferred_interrupt() as interrupt:
        expired = threading.Event()
        timer = _timer(job.seconds, interrupt, expired)
        try:
            training = Training(
                graph, candidate.settings, fold=job.fold, seed=job.seed, checkpoint=state,
                batches=batches,
            )  # fmt: skip
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
        predicted = logits(trained.network, graph, graph.nodes("val", job.fold))
    trained.network.clear_cache()
    if state is not None:
        state.unlink(missing_ok=True)
    wall = time.monotonic() - start
    return FoldResult.of(trained, predicted, workload.key(job), cut=cut, wall=wall).to_bytes()


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
