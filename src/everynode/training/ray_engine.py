"""Many independent jobs on the machines of a Ray cluster: what :mod:`everynode.training.many` does on one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import chain, islice
from typing import Any

import torch

from everynode import __version__
from everynode.errors import EverynodeError, UsageError
from everynode.training.many import Job, Result

#: How often a job may be lost with its worker before that is taken for the job's own fault.
CHANCES = 3
#: In a worker: the shared object of the driver's latest call, by its id in the object store.
_kept: dict[str, Any] = {}


def run_on_ray(
    work: Callable[[Job, Any], Result],
    jobs: Iterable[Job],
    shared: Any,
    *,
    address: str | None = None,
    workers: int | None = None,
    at_most: int | None = None,
) -> Iterator[tuple[Job, Result]]:
    """As :func:`everynode.training.many.run_many`, on the cluster at ``address``; default: the one that this machine belongs to.

    ``shared``, the graph, goes once into the cluster's object store and once from there to each worker process. A job whose worker or
    machine is lost is done again elsewhere; machines may come and go. ``workers``: how many jobs at once; default: one per CPU that the
    cluster has at the moment. The machines need the same versions of everynode and torch, but no data.
    """
    coming = iter(jobs)
    first = list(islice(coming, 1))
    if not first:  # nothing to do is no reason to connect
        return
    coming = chain(first, coming)
    ray, ours = _connect(address)
    waiting: dict[Any, tuple[Job, int]] = {}
    try:
        task = ray.remote(num_cpus=1, max_retries=0)(_call)  # no retries of Ray's own: what is done again is counted here
        box = [ray.put(shared)]  # in a list, Ray hands the reference on and not a copy of the object for every job

        def submit(job: Job, losses: int) -> None:
            waiting[task.remote(work, job, box, _versions())] = (job, losses)

        while True:
            at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
            for job in islice(coming, max(0, at_once + 1 - len(waiting))):  # one waits in line, so that no worker does
                submit(job, 0)
            if not waiting:
                return
            (ended, *_), _ = ray.wait(list(waiting))
            job, losses = waiting.pop(ended)
            try:
                result: Result = ray.get(ended)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                if losses + 1 == CHANCES:
                    why = f"A run was lost with its worker {CHANCES} times (out of memory?). What has ended is kept: run it again."
                    raise EverynodeError(why) from error
                submit(job, losses + 1)
                continue
            yield job, result
    finally:
        for running in waiting:
            ray.cancel(running, force=True)
        if ours:
            ray.shutdown()


def _connect(address: str | None) -> tuple[Any, bool]:
    """Ray, connected, and whether the connection is ours to close."""
    try:
        import ray
    except ImportError as error:
        raise UsageError("--engine ray needs Ray: pip install 'everynode[ray]', here and on the cluster's machines.") from error
    if ray.is_initialized():
        return ray, False
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UsageError(f"There is no Ray cluster {where}: start one with `ray start --head`, or give its --address.") from error
    return ray, True


def _versions() -> dict[str, str]:
    return {"everynode": __version__, "torch": version("torch").partition("+")[0]}


def _call(work: Callable[[Job, Any], Result], job: Job, box: list[Any], expected: dict[str, str]) -> Result:
    """In a worker process: do a job."""
    import ray

    if _versions() != expected:
        here, there = (", ".join(f"{name} {number}" for name, number in found.items()) for found in (_versions(), expected))
        raise UsageError(f"A machine of the Ray cluster has {here}; here it is {there}: install the same everywhere.")
    if box[0].hex() not in _kept:
        _kept.clear()
        _kept[box[0].hex()] = ray.get(box[0])
    torch.set_num_threads(1)
    return work(job, _kept[box[0].hex()])
