"""Torch's random generators of the CPU and of one device; other devices keep theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def own_random_numbers(device: torch.device) -> Iterator[None]:
    """Restore the generators of the CPU and of ``device`` at the end of the block."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def seed_random(seed: int, device: torch.device) -> None:
    """Seed the generators of the CPU and of ``device``.

    ``torch.manual_seed`` would seed all devices.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the states of these generators by name."""
    state = {"rng": torch.get_rng_state()}
    if device.type == "cuda":
        state["rng_cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore these generators."""
    torch.set_rng_state(state["rng"])
    if device.type == "cuda" and "rng_cuda" in state:  # a state saved on a CPU has none
        torch.cuda.set_rng_state(state["rng_cuda"], device)
