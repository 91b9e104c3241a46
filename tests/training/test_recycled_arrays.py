"""Memory that is used again: nothing is ever overwritten that somebody still has, and no result changes."""

import os
import subprocess
import sys
from contextlib import nullcontext
from typing import Self

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from everynode.batches import Batches
from everynode.benchmarks.sides import Ours, settings_for
from everynode.datasets import generate
from everynode.settings import Settings
from everynode.training import memory
from everynode.training.loop import train
from everynode.training.recycled_arrays import Recycling


def trained(backbone: str, recycling: Recycling | None) -> list[Tensor]:
    """A network's weights after a few steps of the whole objective."""
    graph = generate(300, 1200, 16, 4)
    side = Ours(graph, settings_for(backbone, "enc", hidden_channels=32, num_layers=3))
    torch.manual_seed(0)
    with recycling or nullcontext():
        for _ in range(4):
            side.step()
        assert (
            recycling is None or sum(map(len, recycling._free.values())) > 5
        )  # or this test would say nothing
    return [parameter.detach().clone() for parameter in side.network.parameters()]


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gcnii"])
def test_training_is_the_same_to_the_last_bit(backbone: str) -> None:
    for recycled, plain in zip(
        trained(backbone, Recycling(300 * 32 * 4)), trained(backbone, None), strict=True
    ):
        assert torch.equal(recycled, plain)


@given(
    st.lists(
        st.tuples(st.sampled_from(["multiply", "add", "forget"]), st.integers(0, 29)), max_size=30
    )
)
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
    with Recycling(1):
        one = torch.ones(64, 64)
        for _ in range(3):
            row = (one * 2.0)[5]
            others = [one * 3.0 for _ in range(3)]
            assert (row == 2.0).all()
            assert all((other == 3.0).all() for other in others)


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
            for number in (2, 2.0, True):
                assert (x * number).dtype == torch.result_type(x, number)
                assert torch.equal(x * number, torch.stack([row * number for row in x]))
            assert (y + y).stride() == y.stride()
            assert torch.equal((sparse * 2.0).to_dense(), 2.0 * torch.eye(3))
            assert torch.equal(
                torch.addmm(torch.zeros(3, 4), sparse, torch.ones(3, 4)), torch.ones(3, 4)
            )
            assert torch.equal(torch.index_select(x, 1, torch.tensor([0, 2])), x[:, [0, 2]])
            assert torch.equal(y.new_zeros(2, 2), torch.zeros(2, 2))
            assert (x * 2).device.type == "cpu"
            assert (x.to("meta") * 2).device.type == "meta"
            assert torch.equal(torch.add(y, y, alpha=3.0), 4.0 * y)


def test_many_numbers_are_one_operation() -> None:
    x = torch.ones(64)
    with Recycling(1) as recycling:
        for number in range(100):
            assert (x * (number / 7) == number / 7).all()
        assert len(recycling._results) < 5


def test_nothing_is_kept_after_the_block() -> None:
    with Recycling(1) as recycling:
        results = [torch.ones(64, 64) * 2.0 for _ in range(5)]
        del results[1:]
        assert recycling._free
    assert not recycling._free
    del results
    assert not recycling._free


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only Unix can fork")
def test_a_forked_process_has_its_own() -> None:
    with Recycling(1):
        for _ in range(2):
            x = torch.ones(64, 64) * 2.0
        child = os.fork()
        if not child:
            x.zero_()
            os._exit(0)
        os.waitpid(child, 0)
        assert (x == 2.0).all()


def test_training_on_a_large_graph_enters_it(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, settings = generate(300, 1200, 16, 4), Settings(hidden_channels=32, epochs=3)
    plain = train(graph, settings)
    entered = []

    class Counted(Recycling):
        def __enter__(self) -> Self:
            entered.append(self.least)
            return super().__enter__()

    monkeypatch.setattr(memory, "Recycling", Counted)
    train(graph, settings)
    assert not entered  # 38 kB are not large
    monkeypatch.setattr(memory, "KEPT", 10_000)
    monkeypatch.setattr(memory, "_kept_by_malloc", nullcontext)  # which would tell malloc so
    recycled = train(graph, settings)
    assert entered == [10_000]
    assert recycled.history == plain.history
    train(graph, settings, batches=Batches(64, (5, 5)))
    assert entered == [10_000]


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="counts page faults, and other systems than Linux hand out and count memory differently",
)
def test_the_same_pages_serve_again() -> None:
    code = """
import resource
from contextlib import nullcontext

import torch

from everynode.training.recycled_arrays import Recycling


def faults(block):
    x = torch.ones(9 * 1024 * 1024)  # 36 MB: malloc never keeps more than 32
    with block:
        for turn in range(8):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt if turn <= 3 else before
            x * 2.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


anew, again = faults(nullcontext()), faults(Recycling(1024))
assert again < anew / 4, (again, anew)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
