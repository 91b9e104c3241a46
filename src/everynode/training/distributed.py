"""Processes that train together, on one machine or several, as ``torchrun`` starts them."""

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

LOST = "Another process of this training has ended. What was kept is not lost: run the same command again and it goes on."

CPU = torch.device("cpu")
#: Seconds after the last word. gloo's threads end by themselves, and a process that exits before them is aborted ("terminate called
#: without an active exception", one job in five on a busy machine), so that a training which has ended would be reported as failed.
FAREWELL = 0.5
#: How long a process waits for the others before it says that they are lost: a host that vanishes sends no farewell.
PATIENCE = timedelta(minutes=10)


class Ranks:
    """This process among those that train together, by itself the only one; and the device on which it computes its batches."""

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device = CPU):
        self.rank, self.size, self.device = rank, size, device
        #: Whether this is the one that writes.
        self.first = rank == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """Make a tensor, in place, the sum of those of all processes."""
        if self.size > 1:
            try:
                dist.all_reduce(tensor)
            except RuntimeError as error:
                raise EverynodeError(LOST) from error
        return tensor

    def add_up_gradients(
        self, parameters: list[torch.nn.Parameter], numbers: list[float]
    ) -> list[float]:
        """Make the gradients those of all processes together, and add up some numbers too: all in one go."""
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
        """Whether it is so in any process."""
        return flag if self.size == 1 else self.add_up(torch.tensor(float(flag))).item() > 0

    def agree_on(self, what: str, number: int) -> None:
        """Refuse to go on if the processes do not have the same (whole) number: they would train different things."""
        mine = torch.tensor(number, dtype=torch.int64)
        if self.any(bool(self.add_up(mine.clone()) != mine * self.size)):
            raise EverynodeError(
                f"The processes of this training do not have the same {what}: start all with one command and one --out."
            )


def how_many() -> int:
    """How many processes ``torchrun`` has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def joined(device: torch.device = CPU) -> Iterator[Ranks]:
    """This process among those that ``torchrun`` has started; alone where there is none. With ``cuda`` each has a GPU of its own."""
    if how_many() == 1:
        yield Ranks(device=device)
        return
    backend = "gloo"
    if device.type == "cuda":
        there, mine = (
            int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
            int(os.environ.get("LOCAL_RANK", "0")),
        )
        if there > torch.cuda.device_count():
            raise UsageError(
                f"{there} processes and {torch.cuda.device_count()} GPU(s): start one process for each GPU of a machine."
            )
        device = torch.device("cuda", mine)
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"  # what stays on the CPU goes by gloo
    with _told_when_ended():
        dist.init_process_group(backend, timeout=PATIENCE)
        yield Ranks(dist.get_rank(), dist.get_world_size(), device)
        dist.destroy_process_group()  # not after an error: it would wait for the others
        time.sleep(FAREWELL)


@contextmanager
def _told_when_ended() -> Iterator[None]:
    """torchrun ends the others when one process has ended: then say so, as where a process finds out by itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(signum: int, frame: FrameType | None) -> NoReturn:
        raise EverynodeError(LOST)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
