"""Dropout: its rate, its scale, and its noise."""

from __future__ import annotations

import math

import pytest
import torch

from everynode.sparse import draw_noise, drop, where_positive


@pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    count = 200_003
    ones = torch.ones(count, dtype=dtype)
    kept = drop(ones, p, draw_noise((count,), ones))
    assert kept.dtype == dtype
    assert kept.shape == (count,)
    assert set(kept.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p), dtype=dtype).item()}
    share = float((kept > 0).double().mean())
    assert abs(share - (1 - p)) < 5 * math.sqrt(p * (1 - p) / count) + 1 / 65536
    first, second = (kept[i::2][: count // 2] > 0 for i in (0, 1))
    both = float(
        (first & second).double().mean()
    )  # neighbors share a 64-bit draw; they must be independent all the same
    assert abs(both - (1 - p) ** 2) < 5 * math.sqrt((1 - p) ** 2 / (count // 2)) + 2 / 65536


@pytest.mark.parametrize("p", [0.25, 0.5, 0.75])
def test_dropout_meets_p_exactly_over_all_the_noise_there_is(p: float) -> None:
    noise = torch.arange(-32768, 32768, dtype=torch.float32)
    kept = drop(torch.ones(65536), p, noise)
    assert int((kept == 0).sum()) == p * 65536
    assert float(kept.double().mean()) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("p", [0.99999, 0.999995, 1 - 1e-9])
def test_dropout_drops_nearly_everything_when_p_is_nearly_one(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(10_000)
    assert float((drop(x, p, draw_noise(x.shape, x)) > 0).double().mean()) < 0.01


def test_dropout_scales_what_it_keeps() -> None:
    torch.manual_seed(0)
    x = torch.randn(100, 3, dtype=torch.float64)
    dropped = drop(x, 0.2, draw_noise(x.shape, x))
    kept = dropped != 0
    assert 0.6 < float(kept.double().mean()) < 0.95
    torch.testing.assert_close(dropped[kept], x[kept] / 0.8)


def test_noise_obeys_torch_manual_seed() -> None:
    like = torch.empty(0)

    def draw(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return draw_noise((7, 9), like)

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    torch.manual_seed(1)
    assert not torch.equal(draw_noise((7, 9), like), draw_noise((7, 9), like))


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (2, 3, 5), ()])
def test_noise_of_any_shape(shape: tuple[int, ...]) -> None:
    noise = draw_noise(shape, torch.empty(0))
    assert noise.shape == shape
    assert bool(((noise >= -32768) & (noise < 32768)).all())


def test_where_positive() -> None:
    x = torch.ones(2, 3)
    assert where_positive(torch.tensor([1.0, 0.0, -1.0]), x).tolist() == [[1.0, 0.0, 0.0]] * 2
    assert x.sum() == 2, "in place"
