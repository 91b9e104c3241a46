"""Adam without torch's wrapper: the same numbers, the same state, no import of the compiler."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from everynode.training.adam import Adam


def _weights(dtype: torch.dtype, seed: int = 0) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(33, 7), (1,), (5, 129)]
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in shapes]


def _groups(weights: list[nn.Parameter]) -> list[dict[str, Any]]:
    return [
        {"params": weights[:1], "lr": 0.01, "weight_decay": 5e-4},
        {"params": weights[1:], "lr": 0.3, "weight_decay": 0.0},
    ]


def _walk(optimizer: Any, weights: list[nn.Parameter], steps: int, first: int = 0) -> None:
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(step)
        optimizer.zero_grad()
        for number, weight in enumerate(weights):
            gradient = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
            if number or step % 3:  # the first weight misses some steps
                weight.grad = gradient
        optimizer.step()


def _equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(map(torch.equal, one, other))


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_bit_is_that_of_torch(dtype: torch.dtype, amsgrad: bool) -> None:
    ours, theirs = _weights(dtype), _weights(dtype)
    _walk(Adam(_groups(ours), amsgrad=amsgrad), ours, 20)
    _walk(torch.optim.Adam(_groups(theirs), amsgrad=amsgrad, fused=True), theirs, 20)
    assert _equal([*ours], [*theirs])
    assert not _equal([*ours], [*_weights(dtype)])


@pytest.mark.parametrize("ours_first", [False, True])
def test_either_continues_the_state_of_the_other(ours_first: bool) -> None:
    def build(ours: bool, weights: list[nn.Parameter]) -> Any:
        groups = _groups(weights)
        return (
            Adam(groups, amsgrad=True) if ours else torch.optim.Adam(groups, amsgrad=True, fused=True)
        )  # fmt: skip

    straight, broken = _weights(torch.float32), _weights(torch.float32)
    _walk(build(True, straight), straight, 12)
    before, after = build(ours_first, broken), build(not ours_first, broken)
    _walk(before, broken, 6)
    state = before.state_dict()
    after.load_state_dict(state)
    _walk(after, broken, 6, first=6)
    assert _equal([*straight], [*broken])


def test_a_loaded_state_is_a_copy() -> None:
    weights = _weights(torch.float32)
    one, other = Adam(_groups(weights)), Adam(_groups(weights))
    _walk(one, weights, 1)
    other.load_state_dict(one.state_dict())
    _walk(other, weights, 1, first=1)
    assert {float(state["step"]) for state in one.state.values()} == {1.0}


def test_a_state_of_another_model_is_refused() -> None:
    weights = _weights(torch.float32)
    optimizer = Adam(_groups(weights))
    with pytest.raises(ValueError, match="zip"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(KeyError):
        optimizer.load_state_dict({**optimizer.state_dict(), "state": {9: {}}})


def test_no_step_imports_the_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from everynode.training.adam import Adam\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "optimizer = Adam([{'params': [weight], 'lr': 0.1, 'weight_decay': 0.0}])\n"
        "weight.sum().backward(); optimizer.step(); optimizer.zero_grad()\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
