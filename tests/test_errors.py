"""Errors: one sentence, with the choices and the closest one."""

from __future__ import annotations

import pytest

from everynode.errors import DataError, EverynodeError, UsageError, closest, require, unknown


def test_exit_codes():
    assert (EverynodeError.exit_code, UsageError.exit_code, DataError.exit_code) == (1, 2, 3)
    assert issubclass(UsageError, ValueError)


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(UsageError, match=r"^Unknown part 'tets' .*'test'.*from: train, val, test"):
        unknown("part", "tets", ("train", "val", "test"))
    assert closest("nothing like it", ["gcn"]) == ""


def test_require():
    require(True, "epochs", "Settings", ">= 1", 0)
    with pytest.raises(UsageError, match=r"^The 'epochs' of Settings must be >= 1\. Got 0\.$"):
        require(False, "epochs", "Settings", ">= 1", 0)
