"""Torch's random numbers, of the CPU and of the device that a training is on. Those of other devices are somebody else's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def own_random_numbers(device: torch.device) -> Iterator[None]:
    """Within this block random numbers may be seeded and drawn; after it the generators are as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


def seed_random(seed: int, device: torch.device) -> None:
    """Seed the generators that a training on ``device`` draws from. (``torch.manual_seed`` would seed those of all devices.)"""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Where these generators are, by name."""
    state = {"rng": torch.get_rng_state()}
    return (
        state | {"rng_cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else state
    )


def set_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Put these generators where they were."""
    torch.set_rng_state(state["rng"])
    if device.type == "cuda" and "rng_cuda" in state:  # a state that was begun on a CPU has none
        torch.cuda.set_rng_state(state["rng_cuda"], device)
