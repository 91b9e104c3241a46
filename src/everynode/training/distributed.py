"""Data-parallel training: several processes, on one machine or more, started by ``torchrun``."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from everynode.errors import EverynodeError, UsageError

LOST = (
    "Another process of this training has ended. The last checkpoint is kept: "
    "run the same command again to continue."
)
CPU = torch.device("cpu")
#: Seconds to wait before a process exits. A process that exits before gloo's threads is aborted
#: ("terminate called without an active exception"), and torchrun would report a failed training.
EXIT_DELAY = 0.5
#: How long a process waits for the others. A machine that vanishes does not say so.
TIMEOUT = timedelta(minutes=10)


class Ranks:
    """The processes of a training as one of them sees them; by default it is the only one.

    Parameters
    ----------
    rank
        Number of this process, from 0.
    size
        Number of processes.
    device
        Device of the batches of this process.

    Attributes
    ----------
    first : bool
        Whether this process writes the files.
    """

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device = CPU):
        self.rank, self.size, self.device = rank, size, device
        self.first = rank == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, in place."""
        if self.size > 1:
            try:
                dist.all_reduce(tensor)
            except RuntimeError as error:
                raise EverynodeError(LOST) from error
        return tensor

    def add_up_gradients(
        self, parameters: list[torch.nn.Parameter], numbers: list[float]
    ) -> list[float]:
        """Sum the gradients over all processes, in place, and return the sums of ``numbers``."""
        if self.size == 1:
            return numbers
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([*(g.reshape(-1) for g in gradients), gradients[0].new_tensor(numbers)])
        self.add_up(flat)
        *parts, sums = flat.split([*(g.numel() for g in gradients), len(numbers)])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))
        return sums.tolist()

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return flag if self.size == 1 else self.add_up(torch.tensor(float(flag))).item() > 0

    def agree_on(self, what: str, number: int) -> None:
        """Raise an error unless all processes have the same number: they would train apart."""
        own = torch.tensor(number, dtype=torch.int64)
        if self.any(bool(self.add_up(own.clone()) != own * self.size)):
            raise EverynodeError(
                f"The processes of this training do not have the same {what}: "
                "start all with one command and one --out."
            )


def num_processes() -> int:
    """Return the number of processes that ``torchrun`` has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def process_group(device: torch.device = CPU) -> Iterator[Ranks]:
    """Join the processes that ``torchrun`` has started; without it, be the only one.

    With a ``cuda`` device, each process of a machine takes a separate GPU.
    """
    if num_processes() == 1:
        yield Ranks(device=device)
        return
    backend = "gloo"
    if device.type == "cuda":
        local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if local_size > torch.cuda.device_count():
            raise UsageError(
                f"{local_size} processes and {torch.cuda.device_count()} GPU(s): "
                "start one process for each GPU of a machine."
            )
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"  # tensors that stay on the CPU need gloo
    with _terminated_as_error():
        dist.init_process_group(backend, timeout=TIMEOUT)
        yield Ranks(dist.get_rank(), dist.get_world_size(), device)
        dist.destroy_process_group()  # not after an error: it would wait for the others
        time.sleep(EXIT_DELAY)


@contextmanager
def _terminated_as_error() -> Iterator[None]:
    """Turn SIGTERM into an error: torchrun sends it when another process has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(signum: int, frame: FrameType | None) -> NoReturn:
        raise EverynodeError(LOST)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
