"""The held-out labels that a model folder keeps."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from everynode.errors import DataError
from everynode.evaluation.held_out_labels import FILE, HeldOutLabels


def made(neighbors: bool = True) -> HeldOutLabels:
    log_p = torch.log_softmax(torch.arange(6.0).double().reshape(3, 2) ** 2, 1)
    near = torch.full((3, 2), 0.25) if neighbors else None
    return HeldOutLabels(
        torch.tensor([4, 2, 7]), ("a", 5, "ü"), torch.tensor([0, 1, 1]), log_p, 1.5, near
    )


@pytest.mark.parametrize("neighbors", [True, False])
def test_what_is_saved_is_loaded(tmp_path, neighbors):
    kept = made(neighbors)
    again = HeldOutLabels.load(tmp_path, kept.save(tmp_path))
    assert (again.ids, again.temperature) == (kept.ids, kept.temperature)
    for name in ("nodes", "labels", "log_probabilities", "probabilities"):
        assert torch.equal(getattr(again, name), getattr(kept, name))
    assert (again.neighbors is None) == (not neighbors)


def test_a_damaged_or_missing_file_is_refused(tmp_path):
    digest = made().save(tmp_path)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[-1] ^= 1
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(DataError, match=r"does not belong to model\.json"):
        HeldOutLabels.load(tmp_path, digest)
    (tmp_path / FILE).unlink()
    with pytest.raises(DataError, match="restore the folder"):
        HeldOutLabels.load(tmp_path, digest)


def test_without_a_temperature_the_scores_of_neighbors_do_not_fit():
    plain = made().uncalibrated()
    assert plain.neighbors is None
    torch.testing.assert_close(plain.probabilities, plain.log_probabilities.exp())
    assert plain.uncalibrated().temperature == 1.0


def test_the_same_labels_are_the_same_bytes(tmp_path):
    assert len({made().save(tmp_path) for _ in range(8)}) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ids": ("a",)}, "different lengths"),
        ({"labels": torch.tensor([0, 1, 2])}, "out of range"),
        ({"nodes": torch.tensor([4, -2, 7])}, "out of range"),
        ({"temperature": 0.0}, "temperature is 0"),
        ({"log_probabilities": torch.full((3, 2), math.nan)}, "NaN"),
    ],
)
def test_values_that_are_never_saved_are_refused(tmp_path, wrong, message):
    digest = dataclasses.replace(made(), **wrong).save(tmp_path)
    with pytest.raises(DataError, match=message):
        HeldOutLabels.load(tmp_path, digest)
