"""The flags of parallel runs: how many, and on which machines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from everynode.cli.options import GROUPS
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.training.process_pool import Engine


@Parameter(name="*", group=GROUPS["Workers"])
@dataclass(frozen=True)
class EngineOptions:
    """Parallel runs.

    Parameters
    ----------
    workers : int, optional
        Number of parallel runs. Default: one per core.
    engine : {"local", "ray"}
        Processes on this machine, or a Ray cluster.
    address : str, optional
        Address of the Ray cluster, such as 10.0.0.1:6379. Default: the cluster of this machine.
    """

    workers: int | None = None
    engine: Literal["local", "ray"] = "local"
    address: str | None = None

    def workers_on(self, device: str) -> int | None:
        """Return the number of parallel runs: 1 on a GPU, which forked processes cannot share."""
        return self.workers if device == "cpu" else 1

    def start(self, device: str = "cpu") -> Engine:
        """Return the engine that runs many trainings."""
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers must be at least 1. Got {self.workers}.")
        if device != "cpu" and (self.workers or 1) > 1:
            raise UsageError(f"--device {device} does one run at a time: leave out --workers.")
        if self.engine == "ray":
            if device != "cpu":
                raise UsageError("--engine ray runs on CPUs: leave out --device.")
            from everynode.training.ray_engine import run_on_ray

            return partial(run_on_ray, address=self.address)
        if self.address is not None:
            raise UsageError("--address is for a Ray cluster: add --engine ray.")
        from everynode.training.process_pool import run_many

        return run_many
