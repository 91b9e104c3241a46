"""Memory that is used again: nothing is ever overwritten that somebody still has, and no result changes."""

import resource

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from everynode.benchmarks.sides import Ours, settings_for
from everynode.data import generate
from everynode.training.recycling import Recycling


def trained(backbone: str, recycling: Recycling | None) -> list[Tensor]:
    """A network's weights after a few steps of the whole objective."""
    graph = generate(300, 1200, 16, 4)
    side = Ours(graph, settings_for(backbone, "enc", channels=32, layers=3))
    torch.manual_seed(0)
    for _ in range(4):
        if recycling is None:
            side.step()
        else:
            with recycling:
                side.step()
    return [parameter.detach().clone() for parameter in side.network.parameters()]


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_training_is_the_same_to_the_last_bit(backbone: str) -> None:
    recycling = Recycling(300 * 32 * 4)
    for recycled, plain in zip(trained(backbone, recycling), trained(backbone, None), strict=True):
        assert torch.equal(recycled, plain)
    assert any(recycling._free.values())  # or this test would say nothing


@given(st.lists(st.tuples(st.sampled_from(["multiply", "add", "forget"]), st.integers(0, 29)), max_size=30))
def test_what_is_held_is_never_overwritten(actions: list[tuple[str, int]]) -> None:
    eighth, held = torch.full((8, 8), 0.125), [(torch.ones(8, 8), 1.0)]
    with Recycling(1):
        for action, which in actions:
            x, value = held[which % len(held)]
            if action == "multiply":
                held.append((x @ eighth, value))
            elif action == "add":
                held.append((x + 1.0, value + 1.0))
            elif len(held) > 1:
                del held[which % len(held)]
    for x, value in held:
        assert (x == value).all()


def test_a_view_keeps_the_memory_of_the_whole() -> None:
    with Recycling(1) as recycling:
        one = torch.ones(64, 64)
        for _ in range(3):
            row = (one * 2.0)[5]
            others = [one * 3.0 for _ in range(3)]
            assert (row == 2.0).all()
            assert all((other == 3.0).all() for other in others)
    assert recycling._free


def test_a_result_outlives_the_block() -> None:
    with Recycling(1):
        for _ in range(2):
            result = torch.ones(64, 64) @ torch.ones(64, 64)
    assert (result == 64.0).all()


def test_autograd_keeps_what_it_needs() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(32, 32), torch.randn(50, 32)
    gradients = []
    for mode in (Recycling(1), None):
        for _ in range(3):
            layer.zero_grad()
            if mode:
                with mode:
                    (layer(layer(x).relu()) * 2.0).square().sum().backward()
            else:
                (layer(layer(x).relu()) * 2.0).square().sum().backward()
        assert layer.weight.grad is not None
        gradients.append(layer.weight.grad.clone())
    assert torch.equal(*gradients)


def test_other_types_and_layouts_come_out_as_ever() -> None:
    x, y = torch.arange(12).view(3, 4), torch.rand(4, 3).T
    sparse = torch.eye(3).to_sparse_csr()
    with Recycling(1):
        for _ in range(3):
            assert (x * 0.5).dtype == torch.float32
            assert (y + y).stride() == y.stride()
            assert torch.equal(torch.addmm(torch.zeros(3, 4), sparse, torch.ones(3, 4)), torch.ones(3, 4))
            assert torch.equal(torch.index_select(x, 1, torch.tensor([0, 2])), x[:, [0, 2]])
            assert torch.equal(y.new_zeros(2, 2), torch.zeros(2, 2))


def test_the_same_pages_serve_again() -> None:
    x = torch.ones(4 * 1024 * 1024)  # 16 MB, 4096 pages
    with Recycling(1024):
        for _ in range(3):
            x * 2.0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(10):
            x * 2.0
        assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 4096
