"""Time limits."""

import time

import pytest

from everynode.errors import UsageError
from everynode.selection.time_limit import Deadline, parse_time


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("2 min", 120), ("0.5h", 1800), (3, 3), (None, None)],
)
def test_a_limit_is_read_in_its_unit(limit, seconds):
    assert parse_time(limit) == seconds


@pytest.mark.parametrize("limit", ["soon", "10 days", 0, -1, ""])
def test_another_text_is_refused_with_examples(limit):
    with pytest.raises(UsageError, match="such as 90s, 10m"):
        parse_time(limit)


def test_a_deadline_refuses_what_does_not_end_in_time():
    deadline = Deadline(10.0)
    assert deadline.allows(5.0)
    assert not deadline.allows(9.9)  # some of the time is for the ensemble
    assert Deadline(None).allows(1e9)
    short = Deadline(0.01)
    time.sleep(0.02)
    assert short.left() == 0.0
