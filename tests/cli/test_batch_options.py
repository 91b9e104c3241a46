"""The flags of mini-batches: one for each declared option."""

from __future__ import annotations

from dataclasses import fields

import pytest

from everynode.batches import Batches, batch_declarations
from everynode.cli.batch_options import BatchOptions, FitBatchOptions, block_size
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
        ({"clusters": 3}, "--fan-out, --tv-edges and --clusters need --batch-size with a number."),
        ({"size": 64, "tv_edges": "1,2"}, "--tv-edges takes a number, or 'all'. Got '1,2'."),
        ({"size": 64, "fan_out": ""}, "--fan-out takes numbers such as 15,10, or 'all'. Got ''."),
    ],
)
def test_a_bad_flag_is_refused(options, sentence):
    with pytest.raises(UsageError) as error:
        BatchOptions(**options).batches()
    assert str(error.value) == sentence


def test_fit_takes_a_number_or_a_word():
    assert FitBatchOptions().batch_size() == "auto"
    assert FitBatchOptions(size="full").batch_size() is None
    assert FitBatchOptions(size="64", fan_out="5,all").batch_size() == Batches(64, (5, -1))
    with pytest.raises(UsageError, match=r"--batch-size takes a number, or 'auto' or 'full'\. Got"):
        FitBatchOptions(size="many").batch_size()
    with pytest.raises(UsageError, match="need --batch-size with a number"):
        FitBatchOptions(fan_out="3").batch_size()


@pytest.mark.parametrize("text", ["0", "-3", "1,2", "all"])
def test_predict_refuses_other_blocks(text):
    with pytest.raises(UsageError):
        block_size(text)
