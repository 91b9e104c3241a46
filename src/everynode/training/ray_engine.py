"""Many independent jobs on the machines of a Ray cluster: what :mod:`everynode.training.process_pool` does on one."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import chain, islice
from typing import Any

import torch

from everynode import __version__
from everynode.errors import EverynodeError, UsageError
from everynode.training.process_pool import Job, Result

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
    """As :func:`everynode.training.process_pool.run_many`, on the cluster at ``address``; default: the one that this machine belongs to.

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
        task = ray.remote(num_cpus=1, max_retries=0)(
            _call
        )  # no retries of Ray's own: what is done again is counted here
        box = [
            ray.put(shared)
        ]  # in a list, Ray hands the reference on and not a copy of the object for every job

        def submit(job: Job, losses: int) -> None:
            waiting[task.remote(work, job, box, _versions())] = (job, losses)

        stopped: BaseException | None = None
        while True:
            at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
            try:
                for job in islice(coming, 0 if stopped else max(0, at_once - len(waiting))):
                    submit(job, 0)
            except BaseException as error:  # Ctrl-C too: what has ended comes out first, and nothing else is waited for
                stopped = error
            done = ray.wait(list(waiting), timeout=0 if stopped else None)[0] if waiting else []
            if stopped and not done:
                raise stopped
            if not done:
                return
            ended = done[0]
            job, losses = waiting.pop(ended)
            try:
                result: Result = ray.get(ended)
            except ray.exceptions.RayTaskError as error:
                if lacks := re.search(r"No module named '([^']+)'", str(error)):
                    raise UsageError(
                        f"A machine of the Ray cluster has no {lacks[1]}: install everynode there as here."
                    ) from error
                raise (error.cause or error) from error
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
    if address is not None:
        _reach(address)
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--engine ray needs Ray: pip install 'everynode[ray]', here and on the cluster's machines."
        ) from error
    if ray.is_initialized():
        return ray, False
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise _no_cluster(address) from error
    return ray, True


def _reach(address: str) -> None:
    """Make sure that something answers there: Ray itself would try for a quarter of an hour."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    loopback = host in ("127.0.0.1", "localhost")
    if loopback and port.isdigit() and _answers(_own_address(), int(port)):
        return  # Ray takes the loopback for this machine's outer address
    if not (port.isdigit() and _answers(host, int(port))):
        raise _no_cluster(address)
    if loopback:  # The cluster is bound to it, and Ray has to leave it as it is: on the systems that this variable names it does.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except (OSError, OverflowError):
        return False
    return True


def _own_address() -> str:
    """This machine's address as others see it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:  # no network at all
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _no_cluster(address: str | None) -> UsageError:
    where = f"at {address}" if address else "on this machine"
    return UsageError(
        f"There is no Ray cluster {where}: start one with `ray start --head`, or give its --address, such as 10.0.0.1:6379."
    )


def _versions() -> dict[str, str]:
    return {"everynode": __version__, "torch": version("torch").partition("+")[0]}


def _call(
    work: Callable[[Job, Any], Result], job: Job, box: list[Any], expected: dict[str, str]
) -> Result:
    """In a worker process: do a job."""
    import ray

    if _versions() != expected:
        here, there = (
            ", ".join(f"{name} {number}" for name, number in found.items())
            for found in (_versions(), expected)
        )
        raise UsageError(
            f"A machine of the Ray cluster has {here}; here it is {there}: install the same everywhere."
        )
    if box[0].hex() not in _kept:
        _kept.clear()
        _kept[box[0].hex()] = ray.get(box[0])
    torch.set_num_threads(1)
    return work(job, _kept[box[0].hex()])
