"""Entropies and cosines against their textbook form where that is safe, and against their limits where it is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from everynode.numerics import cosine, log_softmax_by_class, mean_prediction

logits = st.integers(0, 2**32).flatmap(
    lambda seed: st.tuples(st.just(seed), st.integers(1, 8), st.integers(1, 6))
)


def random(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 2, shape))


@settings(deadline=None, max_examples=50)
@given(logits)
def test_predictions_are_the_textbook_ones(given_shape: tuple[int, int, int]) -> None:
    x = random(*given_shape)
    y = torch.softmax(x, 1)
    torch.testing.assert_close(log_softmax_by_class(x), y.log().T, rtol=1e-10, atol=1e-12)
    mean, log_mean = mean_prediction(log_softmax_by_class(x).exp())
    torch.testing.assert_close(mean, y.mean(0), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(log_mean, y.mean(0).log(), rtol=1e-10, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 5))
def test_the_mean_prediction_adds_up_over_batches(seed: int, first: int, second: int) -> None:
    y = torch.softmax(random(seed, 3, first + second), 0)
    parts = first * mean_prediction(y[:, :first])[0] + second * mean_prediction(y[:, first:])[0]
    torch.testing.assert_close(
        parts / (first + second), mean_prediction(y)[0], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_class_that_nobody_predicts_counts_for_nothing(dtype: torch.dtype) -> None:
    mean, log_mean = mean_prediction(torch.tensor([[1.0, 1.0], [0.0, 0.0]], dtype=dtype))
    assert (mean * log_mean).tolist() == [0.0, 0.0]
    assert log_mean.isfinite().all()


vectors = st.lists(
    st.floats(-10, 10).filter(lambda v: v == 0 or abs(v) > 1e-3), min_size=1, max_size=6
)
# Within these powers of ten the squares of a vector's entries are numbers that the type can hold.
RANGES = [(torch.float64, 24, 1e-12), (torch.float32, 10, 2e-6)]


@pytest.mark.parametrize(("dtype", "power", "tolerance"), RANGES)
@settings(deadline=None, max_examples=60)
@given(
    values=vectors,
    seed=st.integers(0, 2**32),
    shares=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    cut=st.integers(0, 6),
)
def test_the_cosine_of_vectors_of_any_length_and_in_any_pieces(
    dtype: torch.dtype,
    power: int,
    tolerance: float,
    values: list[float],
    seed: int,
    shares: tuple[float, float],
    cut: int,
) -> None:
    a, b = np.array(values), np.random.default_rng(seed).normal(size=len(values))
    expected = 0.0 if not a.any() else float(a @ b / np.sqrt((a @ a) * (b @ b)))
    scaled = [
        torch.tensor(v * 10.0 ** (power * share), dtype=dtype)
        for v, share in zip((a, b), shares, strict=True)
    ]
    assert float(cosine(*([v[:cut], v[cut:]] for v in scaled))) == pytest.approx(
        expected, abs=tolerance
    )


@pytest.mark.parametrize("shapes", [[(5,)], [(2, 2), (3,), (1, 1)]])
def test_derivatives_of_the_cosine(shapes: list[tuple[int, ...]]) -> None:
    tensors = [random(seed, *shape).requires_grad_() for seed, shape in enumerate(shapes * 2)]
    half = len(shapes)

    def value(*both: Tensor) -> Tensor:
        return cosine(both[:half], both[half:])

    assert gradcheck(value, tensors)
    assert gradgradcheck(value, tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38, 1e-30, 1e-20, 1e-17, 1e-15, 1e-12, 1e12, 1e18])
@pytest.mark.parametrize("which", ["a", "b", "both"])
def test_vectors_of_extreme_length_have_a_finite_cosine_and_finite_derivatives(
    which: str, size: float, dtype: torch.dtype
) -> None:
    a, b = torch.tensor([3.0, 4.0, 0.0], dtype=dtype), torch.tensor([4.0, 3.0, 0.0], dtype=dtype)
    a, b = (v * size if which in (name, "both") else v for name, v in (("a", a), ("b", b)))
    a.requires_grad_()
    b.requires_grad_()
    value = cosine([a], [b])
    assert float(value.detach()) in (0.0, pytest.approx(24 / 25, rel=1e-6)), "right, or given up"
    gradients = torch.autograd.grad(value, [a, b], create_graph=True)
    assert all(g.isfinite().all() for g in gradients)
    if float(value.detach()) == 0.0:
        assert all(not g.any() for g in gradients)


@pytest.mark.parametrize("size", [1e20, 1e24, 1e30])
def test_the_cosine_of_huge_float32_vectors_is_finite(size: float) -> None:
    a, b = (torch.tensor(v) * size for v in ([3.0, 4.0], [4.0, 3.0]))
    a.requires_grad_()
    value = cosine([a], [b])
    assert value.isfinite()
    assert torch.autograd.grad(value, a)[0].isfinite().all()


@pytest.mark.parametrize("which", ["a", "b", "both"])
def test_a_vanishing_vector_has_no_cosine_and_no_gradient(which: str) -> None:
    a, b = torch.ones(3), torch.ones(3)
    for vector, name in ((a, "a"), (b, "b")):
        if which in (name, "both"):
            vector.zero_()
        vector.requires_grad_()
    value = cosine([a], [b])
    assert value.tolist() == 0.0
    for gradient in torch.autograd.grad(value, [a, b]):
        assert gradient.tolist() == [0.0] * 3


def test_the_cosine_reaches_one_and_minus_one() -> None:
    a = torch.tensor([3.0, 4.0])
    assert float(cosine([a], [5 * a])) == pytest.approx(1.0)
    assert float(cosine([a], [-a])) == pytest.approx(-1.0)
    assert float(cosine([a], [torch.tensor([4.0, -3.0])])) == 0.0
