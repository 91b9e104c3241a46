"""A known gradient reaches its tensors, added up, scaled and spread."""

from __future__ import annotations

import torch

from everynode.models.known_gradient import KnownGradient, times


def test_gradients_add_up_and_take_the_factor_of_the_loss() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    gradient = KnownGradient()
    gradient.add(a, torch.tensor([1.0, 2.0]))
    gradient.add(a, torch.tensor([10.0, 20.0]))
    gradient.add(b, torch.tensor([5.0]), lambda part, factor: factor * part.expand(3))
    value = gradient.attach(torch.tensor(7.0))
    assert value.item() == 7.0
    (2.0 * value).backward()
    assert a.grad.tolist() == [22.0, 44.0]
    assert b.grad.tolist() == [10.0] * 3


def test_a_factor_of_one_copies_nothing() -> None:
    x = torch.ones(2)
    assert times(x, 1.0) is x
    assert times(x, 3.0).tolist() == [3.0, 3.0]
