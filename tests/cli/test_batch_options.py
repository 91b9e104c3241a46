"""The flags of mini-batches: one for each declared option."""

from __future__ import annotations

from dataclasses import fields

import pytest

from everynode.batches import Batches, batch_declarations
from everynode.cli.batch_options import BatchOptions
from everynode.errors import UsageError


def test_the_flags_follow_from_the_declarations():
    assert [f.name for f in fields(BatchOptions)] == [f.name for f in fields(Batches)]
    assert BatchOptions().batches() is None
    assert BatchOptions(size=64).batches() == Batches(64)
    options = BatchOptions(size=64, fan_out="15, all", tv_edges="all", clusters=4)
    assert options.batches() == Batches(64, (15, -1), -1, 4)


def test_help_lists_every_flag(call):
    shown = call("train", "--help").stdout
    for name, declared in batch_declarations().items():
        assert declared.flag(name) in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"clusters": 3}, "--fan-out, --tv-edges and --clusters need --batch-size."),
        ({"size": 64, "tv_edges": "1,2"}, "--tv-edges takes a number, or 'all'. Got '1,2'."),
        ({"size": 64, "fan_out": ""}, "--fan-out takes numbers such as 15,10, or 'all'. Got ''."),
    ],
)
def test_a_bad_flag_is_refused(options, sentence):
    with pytest.raises(UsageError) as error:
        BatchOptions(**options).batches()
    assert str(error.value) == sentence
