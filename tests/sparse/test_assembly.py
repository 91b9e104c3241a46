"""The kernels of sparse products against loops over the entries."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from everynode.sparse import Pattern
from everynode.sparse.compiled import compact, dots, gather, kernels, scatter

pytest.importorskip("llvmlite")
ROWS, COLUMNS = 9, 7


@pytest.fixture(params=[torch.float32, torch.float64])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    result: torch.dtype = request.param
    return result


def matrix(dtype: torch.dtype) -> tuple[Pattern, Tensor, Tensor]:
    """Return a matrix with an empty row and stored zeros, and the same matrix dense."""
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(ROWS, COLUMNS, generator=generator, dtype=dtype)
    dense[torch.rand(ROWS, COLUMNS, generator=generator) < 0.5] = 0.0
    dense[3] = 0.0
    stored = dense != 0
    stored[5] = True
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), stored.sum(1).cumsum(0)])
    pattern = Pattern(crow, stored.nonzero()[:, 1], (ROWS, COLUMNS))
    return pattern, dense[stored], dense


def functions(dtype: torch.dtype) -> dict:  # type: ignore[type-arg]
    compiled = kernels(str(dtype).removeprefix("torch."))
    assert compiled
    return compiled


#: Chunks of 256, 64 and 16 bytes, and the rest.
WIDTHS = [1, 3, 4, 17, 64, 87, 150]


@pytest.mark.parametrize("width", WIDTHS)
def test_gather(width: int, dtype: torch.dtype) -> None:
    pattern, values, dense = matrix(dtype)
    x, base = torch.randn(COLUMNS, width, dtype=dtype), torch.randn(ROWS, width, dtype=dtype)
    call = functions(dtype)["gather"]
    out = torch.full_like(base, torch.nan)
    gather(call, pattern, values, x, 0.5, None, 0.0, out)
    torch.testing.assert_close(out, 0.5 * dense @ x)
    gather(call, pattern, values, x, 0.5, base, 2.0, out)
    torch.testing.assert_close(out, 0.5 * dense @ x + 2.0 * base)
    gather(call, pattern, values, x, 1.0, out, 1.0, out)  # in place
    torch.testing.assert_close(out, 1.5 * dense @ x + 2.0 * base)


@pytest.mark.parametrize("width", WIDTHS)
def test_scatter(width: int, dtype: torch.dtype) -> None:
    pattern, values, dense = matrix(dtype)
    x, out = torch.randn(ROWS, width, dtype=dtype), torch.ones(COLUMNS, width, dtype=dtype)
    scatter(functions(dtype)["scatter"], pattern, values, x, 0.5, out)
    torch.testing.assert_close(out, 1.0 + 0.5 * dense.T @ x)


@pytest.mark.parametrize("width", WIDTHS)
def test_dots(width: int, dtype: torch.dtype) -> None:
    pattern, _, _ = matrix(dtype)
    a, b = torch.randn(ROWS, width, dtype=dtype), torch.randn(COLUMNS, width, dtype=dtype)
    result = dots(functions(dtype)["dots"], pattern, a, b)
    torch.testing.assert_close(result, (a @ b.T)[pattern.row, pattern.column])


def test_compact(dtype: torch.dtype) -> None:
    pattern, values, dense = matrix(dtype)
    values[0] = torch.nan
    crow, col, kept = compact(functions(dtype)["compact"], pattern, values)
    assert (kept != 0).all()
    assert len(kept) == (dense != 0).sum() == crow[-1]
    again = torch.sparse_csr_tensor(crow, col, kept, dense.shape).to_dense()
    dense[pattern.row[0], pattern.column[0]] = torch.nan
    assert torch.equal(again.nan_to_num(7.0), dense.nan_to_num(7.0))
