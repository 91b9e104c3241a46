"""Dropout and ReLU masks in few passes over the data."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

#: Random numbers drawn at once, so that their bits need little memory.
CHUNK = 2**22


def draw_noise(shape: torch.Size | tuple[int, ...], like: Tensor) -> Tensor:
    """Draw uniform whole numbers in [-32768, 32768) for :func:`drop`.

    On a CPU, torch's random numbers take longer than all the arithmetic of a small network. There
    the bits come from NumPy's SFC64, 16 per number, seeded by one draw from torch's generator, so
    that ``torch.manual_seed`` decides them.
    """
    if like.device.type != "cpu":
        noise = torch.randint(-32768, 32768, shape, device=like.device, dtype=torch.int16)
        return noise.to(like.dtype)
    source = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
    noise = like.new_empty(shape)
    for part in noise.view(-1).split(CHUNK):
        bits = source.random_raw(-(-len(part) // 4)).view(np.int16)
        part.copy_(torch.from_numpy(bits[: len(part)]))
    return noise


def drop(x: Tensor, p: float, noise: Tensor) -> Tensor:
    """Apply inverted dropout: 0 where the noise is below its p-quantile, otherwise ``x / (1 - p)``.

    ``p`` is met to 1/65536.
    """
    # One kernel, the derivative of ReLU, does "x where noise > t, else 0"; torch.where takes 20
    # times as long.
    kept = torch.ops.aten.threshold_backward(x, noise, round(p * 65536) - 32769)
    return kept.mul_(1.0 / (1.0 - p))


def where_positive(values: Tensor, x: Tensor) -> Tensor:
    """Zero ``x`` where the ``values`` are not positive, in place; not differentiable.

    ``x`` may have more dimensions than ``values``.
    """
    return torch.ops.aten.threshold_backward.grad_input(x, values, 0.0, grad_input=x)
