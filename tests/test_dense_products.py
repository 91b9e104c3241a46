"""Dense products: every way to compute them against torch's, values and derivatives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everynode import dense_products
from everynode.dense_products import add_product, multiply, product

SHAPES = [(300, 64, 64), (301, 70, 80), (64, 257, 128), (129, 1, 16), (200, 64, 7), (5, 3, 2)]


@pytest.fixture(params=["kernel", "torch"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run each test with the kernel and without it."""
    if request.param != "kernel":
        monkeypatch.setattr(dense_products, "kernel", lambda dtype: None)
    torch.set_num_threads(1)
    return str(request.param)


def matrices(rows: int, inner: int, columns: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows)
    shapes = (rows, inner), (inner, columns)
    a, b = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    return a, b


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    a, b = matrices(*shape, dtype)
    expected = a @ b
    for left in (a, a.T.contiguous().T):
        for right in (b, b.T.contiguous().T):
            close = {"rtol": 1e-4, "atol": 1e-4 if dtype is torch.float32 else 1e-12}
            torch.testing.assert_close(product(left, right, 0.5), 0.5 * expected, **close)
            base = torch.ones_like(expected)
            result = add_product(base, left, right, 2.0, keep=3.0)
            assert result is base
            torch.testing.assert_close(result, 3.0 + 2.0 * expected, **close)


def test_a_base_of_nan_is_not_kept() -> None:
    a, b = matrices(300, 16, 16, torch.float32)
    base = torch.full((300, 16), torch.nan)
    torch.testing.assert_close(add_product(base, a, b, keep=0.0), a @ b)


def test_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_products, "LEAST_ROWS", 1)
    function, inputs = multiply, [x.requires_grad_() for x in matrices(5, 3, 8, torch.float64)]
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_derivatives_in_float32() -> None:
    a, b = (x.requires_grad_() for x in matrices(300, 64, 16, torch.float32))
    expected = torch.autograd.grad((a @ b).square().sum(), [a, b])
    result = torch.autograd.grad(multiply(a, b).square().sum(), [a, b])
    for one, other in zip(result, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


def test_the_kernel_is_used_where_it_can_be(way: str) -> None:
    a, b = matrices(300, 16, 16, torch.float32)
    can = way == "kernel" and dense_products.kernel("float32") is not None
    assert bool(dense_products._kernel_for(a, b)) == can
    assert not dense_products._kernel_for(a, b[:, :7])
