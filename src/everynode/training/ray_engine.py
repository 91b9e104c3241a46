"""Many independent jobs on a Ray cluster; :mod:`.process_pool` does the same on one machine.

Ray: https://docs.ray.io
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from itertools import chain, islice
from typing import Any

import torch

from everynode import __version__, plugins
from everynode.errors import EverynodeError, UsageError
from everynode.extras import need_extra
from everynode.training.process_pool import Job, Result

#: A job fails when its worker is lost this many times.
CHANCES = 3
#: In a worker: the shared object of the latest call, by its id in the object store.
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
    """Yield each job with ``work(job, shared)``, in the order of completion.

    The machines need the same versions of everynode and torch, and the plugin files at the same
    paths. They need no data: ``shared`` is copied to the object store once, and from there once to
    each worker. A job whose worker or machine is lost runs again elsewhere. Machines may join and
    leave.

    Parameters
    ----------
    work, jobs, shared
        As in :func:`everynode.training.process_pool.run_many`.
    address
        Address of the cluster; None: the cluster of this machine.
    workers
        Number of parallel jobs; None: one per CPU that the cluster has at the moment.
    at_most
        Ignored.
    """
    remaining = iter(jobs)
    first = list(islice(remaining, 1))
    if not first:  # without a job, no connection is needed
        return
    remaining = chain(first, remaining)
    ray, opened = _connect(address)
    pending: dict[Any, tuple[Job, int]] = {}
    try:
        submit = _submitter(ray, work, shared)
        stopped: BaseException | None = None
        while True:
            at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 0)))
            try:
                for job in islice(remaining, 0 if stopped else max(0, at_once - len(pending))):
                    pending[submit(job)] = (job, 0)
            except BaseException as error:  # Ctrl-C too: finished jobs are yielded first
                stopped = error
            done = ray.wait(list(pending), timeout=0 if stopped else None)[0] if pending else []
            if stopped and not done:
                raise stopped
            if not done:
                return
            job, losses = pending.pop(done[0])
            result, loss = _fetch(ray, done[0])
            if loss is None:
                yield job, result
            elif losses + 1 < CHANCES:
                pending[submit(job)] = (job, losses + 1)
            else:
                raise EverynodeError(
                    f"A run was lost with its worker {CHANCES} times (out of memory?). "
                    "Finished runs are kept: run the command again."
                ) from loss
    finally:
        for running in pending:
            ray.cancel(running, force=True)
        if opened:
            ray.shutdown()


def _submitter(ray: Any, work: Callable[[Job, Any], Result], shared: Any) -> Callable[[Job], Any]:
    """Return a function that submits a job and returns the reference of its result."""
    # Ray must not retry by itself: lost jobs are counted here.
    task = ray.remote(num_cpus=1, max_retries=0, runtime_env=_environment())(_call)
    # In a list Ray passes the reference; a bare reference would be copied for every job.
    box = [ray.put(shared)]
    return lambda job: task.remote(work, job, box, _versions())


def _fetch(ray: Any, reference: Any) -> tuple[Any, Exception | None]:
    """Return the result of a job and None, or None and the error that lost its worker.

    An error of the job itself is raised.
    """
    try:
        return ray.get(reference), None
    except ray.exceptions.RayTaskError as error:
        if missing := re.search(r"No module named '([^']+)'", str(error)):
            raise UsageError(
                f"A machine of the Ray cluster has no {missing[1]}: "
                "install everynode there as here."
            ) from error
        raise (error.cause or error) from error
    except ray.exceptions.RayError as error:
        return None, error


def _environment() -> dict[str, Any]:
    """Return the runtime environment of the workers: the plugins of this process."""
    files = os.environ.get(plugins.VARIABLE)
    return {"env_vars": {plugins.VARIABLE: files}} if files else {}


def _connect(address: str | None) -> tuple[Any, bool]:
    """Return Ray, connected, and whether this call opened the connection."""
    if address is not None:
        _reach(address)
    ray: Any = need_extra(
        "ray", "--engine ray", otherwise=", here and on the machines of the cluster"
    )
    if ray.is_initialized():
        return ray, False
    try:
        ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise _no_cluster(address) from error
    return ray, True


def _reach(address: str) -> None:
    """Raise an error at once if nothing answers: Ray would retry for a quarter of an hour."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    loopback = host in ("127.0.0.1", "localhost")
    if loopback and port.isdigit() and _answers(_own_address(), int(port)):
        return  # Ray replaces the loopback by the outer address of this machine
    if not (port.isdigit() and _answers(host, int(port))):
        raise _no_cluster(address)
    if loopback:  # the cluster listens on the loopback only; keep Ray from replacing the address
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except (OSError, OverflowError):
        return False
    return True


def _own_address() -> str:
    """Return the outer address of this machine; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:  # no network
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _no_cluster(address: str | None) -> UsageError:
    where = f"at {address}" if address else "on this machine"
    return UsageError(
        f"There is no Ray cluster {where}: start one with `ray start --head`, "
        "or give its --address, such as 10.0.0.1:6379."
    )


def _versions() -> dict[str, str]:
    return {"everynode": __version__, "torch": version("torch").partition("+")[0]}


def _call(
    work: Callable[[Job, Any], Result], job: Job, box: list[Any], expected: dict[str, str]
) -> Result:
    """Run a job in a worker process."""
    import ray

    if _versions() != expected:
        remote, local = (
            ", ".join(f"{name} {number}" for name, number in versions.items())
            for versions in (_versions(), expected)
        )
        raise UsageError(
            f"A machine of the Ray cluster has {remote}; this one has {local}: "
            "install the same versions everywhere."
        )
    if box[0].hex() not in _kept:
        _kept.clear()
        _kept[box[0].hex()] = ray.get(box[0])
    torch.set_num_threads(1)
    return work(job, _kept[box[0].hex()])
