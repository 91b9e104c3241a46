"""Many independent jobs at once: one single-threaded process per core, the graph shared between them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, Protocol, TypeVar

import torch

from everynode.errors import EverynodeError
from everynode.machine import cores

Job = TypeVar("Job")
Result = TypeVar("Result")
_shared: Any = None


class Engine(Protocol):
    """What does many jobs: :func:`run_many` on this machine, :func:`everynode.training.ray_engine.run_on_ray` on several."""

    def __call__(
        self,
        work: Callable[[Job, Any], Result],
        jobs: Iterable[Job],
        shared: Any,
        *,
        workers: int | None = None,
        at_most: int | None = None,
    ) -> Iterator[tuple[Job, Result]]:
        """``work(job, shared)`` for every job, each once; (job, result) in the order in which they end."""
        ...


def run_many(
    work: Callable[[Job, Any], Result],
    jobs: Iterable[Job],
    shared: Any,
    *,
    workers: int | None = None,
    at_most: int | None = None,
) -> Iterator[tuple[Job, Result]]:
    """``work(job, shared)`` for every job; (job, result) in the order in which they end.

    A job is taken from ``jobs`` only when a worker is free for it: another process may be waiting for one. ``at_most``: how many there will
    be, if that is known. If ``jobs`` raises, what has ended comes out before that.

    Two torch threads on two busy cores are slower than one (they spin while they wait), so every worker has one. On Linux workers are
    forked and ``shared``, the graph, is not copied; elsewhere it is sent once to each worker.
    """
    known = len(jobs) if isinstance(jobs, Sized) else at_most
    workers = workers or cores()
    workers = workers if known is None else min(workers, known)
    if workers <= 1:
        for job in jobs:
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                result = work(job, shared)
            finally:  # before whoever asked for it goes on
                torch.set_num_threads(before)
            yield job, result
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(shared, os.getpid())
    )
    try:
        waiting: dict[Future[Result], Job] = {}
        coming = iter(jobs)
        while True:
            try:
                for job in islice(coming, workers - sum(not future.done() for future in waiting)):
                    waiting[_submit(pool, work, job)] = job
            finally:  # when their workers have something to do again; or when ``jobs`` has raised: what has ended is kept
                done = [future for future in waiting if future.done()]
                for future in sorted(
                    done, key=lambda future: future.exception() is not None
                ):  # well first: an exception ends all
                    yield waiting.pop(future), _result(future)
            if not (waiting or done):
                return
            if (
                not done
            ):  # else one that ended while others were taken may have left its worker free
                wait(waiting, return_when=FIRST_COMPLETED)
    finally:
        # Not waiting: after Ctrl-C nobody wants to see the runs in hand end.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def _submit(
    pool: ProcessPoolExecutor, work: Callable[[Job, Any], Result], job: Job
) -> Future[Result]:
    """A pool that broke while nobody waited refuses the job: then it has failed like those that the pool had."""
    try:
        return pool.submit(_call, work, job)
    except BrokenProcessPool as error:
        refused: Future[Result] = Future()
        refused.set_exception(error)
        return refused


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except BrokenProcessPool as error:
        why = "A worker process was killed (out of memory?). What has ended is kept: run it again, perhaps with --workers 1."
        raise EverynodeError(why) from error


def _start_worker(shared: Any, parent: int) -> None:
    global _shared
    _shared = shared
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A parent that was killed cannot end its workers: they look for themselves."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(work: Callable[[Job, Any], Result], job: Job) -> Result:
    return work(job, _shared)
