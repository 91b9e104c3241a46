"""The options of mini-batches: their ranges, and the places that follow from them."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from everynode import NeighborLoader, UsageError
from everynode.batches import Batches, batch_declarations, check_batch_option


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"size": 1}, "'size' of Batches must be >= 2"),
        ({"size": 8, "fan_out": (0,)}, "numbers >= 1, or -1"),
        ({"size": 8, "fan_out": ()}, "numbers >= 1, or -1"),
        ({"size": 8, "tv_edges": 0}, "'tv_edges'"),
        ({"size": 8, "clusters": 1}, "'clusters'"),
        ({"size": 8.5}, "'size' of Batches must be a whole number. Got 8.5"),
    ],
)
def test_bad_batches_are_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        Batches(**options)


def test_as_many_fan_outs_as_layers():
    with pytest.raises(UsageError, match="one number, or one for each of the 3 layers"):
        Batches(8, (5, 4)).for_layers(3)


def test_the_docstring_lists_every_option():
    for f in fields(Batches):
        assert f"{f.name} : {f.type}" in (Batches.__doc__ or "")
        assert batch_declarations()[f.name].help in (Batches.__doc__ or "")


def test_the_loader_has_the_same_defaults_and_ranges():
    parameters = inspect.signature(NeighborLoader).parameters
    assert parameters["clusters"].default == Batches.clusters
    assert parameters["tv_edges"].default == Batches.tv_edges
    with pytest.raises(UsageError, match="'num_neighbors' of NeighborLoader must be numbers >= 1"):
        check_batch_option("fan_out", (0,), owner="NeighborLoader", parameter="num_neighbors")
