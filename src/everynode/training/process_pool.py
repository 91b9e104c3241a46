"""Many independent jobs on one machine: one single-threaded process per core."""

from __future__ import annotations

import ctypes
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
#: The option of prctl(2) that sends a signal to a process when its parent ends.
_PR_SET_PDEATHSIG = 1
#: Trainings on smaller graphs (nodes and edges) run in this process: a pool would cost more.
SMALL = 1500
#: In a worker process: the object that all jobs share.
_shared: Any = None


class Engine(Protocol):
    """Runs many jobs.

    :func:`run_many` uses this machine, :func:`everynode.training.ray_engine.run_on_ray` a cluster.
    """

    def __call__(
        self,
        work: Callable[[Job, Any], Result],
        jobs: Iterable[Job],
        shared: Any,
        *,
        workers: int | None = None,
        at_most: int | None = None,
    ) -> Iterator[tuple[Job, Result]]:
        """Yield each job with ``work(job, shared)``, in the order of completion."""
        ...


def run_many(
    work: Callable[[Job, Any], Result],
    jobs: Iterable[Job],
    shared: Any,
    *,
    workers: int | None = None,
    at_most: int | None = None,
) -> Iterator[tuple[Job, Result]]:
    """Yield each job with ``work(job, shared)``, in the order of completion.

    Each worker has one thread: two torch threads on two busy cores spin, and are slower than one.
    Workers inherit the environment, and with it the plugins. On Linux they are forked and do not
    copy ``shared``; elsewhere each worker receives a copy.

    Parameters
    ----------
    work
        Function of one job and the shared object.
    jobs
        The jobs. One is taken only when a worker is free: another process may want it. If the
        iterable raises an error, finished jobs are yielded first.
    shared
        Object that all jobs need, such as the graph.
    workers
        Number of processes; None: one per core.
    at_most
        Largest number of jobs, if known.
    """
    num_jobs = len(jobs) if isinstance(jobs, Sized) else at_most
    workers = workers or cores()
    workers = workers if num_jobs is None else min(workers, num_jobs)
    if workers <= 1:
        yield from _run_here(work, jobs, shared)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(shared, os.getpid())
    )
    try:
        pending: dict[Future[Result], Job] = {}
        remaining = iter(jobs)
        while True:
            try:
                busy = sum(not future.done() for future in pending)
                for job in islice(remaining, workers - busy):
                    pending[_submit(pool, work, job)] = job
            finally:  # also if ``jobs`` raised an error: finished jobs are kept
                done = [future for future in pending if future.done()]
                # An exception ends everything, so the successful jobs come first.
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    yield pending.pop(future), _result(future)
            if not (pending or done):
                return
            if not done:  # otherwise a worker may be free already
                wait(pending, return_when=FIRST_COMPLETED)
    finally:
        # Do not wait for the current jobs: after Ctrl-C the user wants to leave.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


def _run_here(
    work: Callable[[Job, Any], Result], jobs: Iterable[Job], shared: Any
) -> Iterator[tuple[Job, Result]]:
    """Run the jobs in this process, with one thread."""
    for job in jobs:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            result = work(job, shared)
        finally:  # before the caller continues
            torch.set_num_threads(threads)
        yield job, result


def _submit(
    pool: ProcessPoolExecutor, work: Callable[[Job, Any], Result], job: Job
) -> Future[Result]:
    """Submit a job; if the pool has broken in the meantime, the job has failed too."""
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
        raise EverynodeError(
            "A worker process was killed (out of memory?). Finished runs are kept: "
            "run the command again, perhaps with --workers 1 or, for fit, with --batch-size 256."
        ) from error


def _start_worker(shared: Any, parent: int) -> None:
    global _shared
    _shared = shared
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    end_with(parent)


def end_with(parent: int) -> None:
    """End this process when its ``parent`` ends, however that happens."""
    _die_with_parent()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _die_with_parent() -> None:
    """Ask Linux to kill this worker together with its parent.

    The claims of a killed parent are free at once: a worker that lived on would do the same work
    as the next owner.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: int) -> None:
    """End this worker when its parent is gone: a killed parent cannot end its workers."""
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


def _call(work: Callable[[Job, Any], Result], job: Job) -> Result:
    return work(job, _shared)
