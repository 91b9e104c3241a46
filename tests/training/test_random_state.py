"""Random generators: own numbers within a block, the caller's afterwards."""

from __future__ import annotations

import torch

from everynode.training.random_state import (
    own_random_numbers,
    random_state,
    seed_random,
    set_random_state,
)

CPU = torch.device("cpu")


def test_a_block_has_its_own_numbers():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    with own_random_numbers(CPU):
        seed_random(5, CPU)
        inside = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), inside)


def test_a_state_continues_where_it_was():
    with own_random_numbers(CPU):
        seed_random(2, CPU)
        state = random_state(CPU)
        first = torch.rand(3)
        set_random_state(state, CPU)
        assert torch.equal(torch.rand(3), first)
        assert list(state) == ["rng"]
