"""The files of a round, and two rounds compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.conftest import make_round
from everynode.app.round import Comparison, Round
from everynode.errors import DataError


def test_a_round_comes_back(tmp_path: Path) -> None:
    written = make_round(tmp_path / "0003", [0, 1, 2, 1], held_out={0: (0, 0), 3: (1, 2)})
    written.write()
    again = Round.load(tmp_path / "0003")
    assert again.facts == written.facts
    assert again.number == 3
    assert again.predicted.tolist() == [0, 1, 2, 1]
    assert again.judged == {0: 0, 3: 2}
    assert again.set_of(0) is None
    again.arrays["sets"] = np.eye(4, 3) > 0
    assert again.set_of(1) == [1]


def test_a_damaged_round_is_refused(tmp_path: Path) -> None:
    make_round(tmp_path / "0001", [0, 1], held_out={0: (0, 0)}).write()
    (tmp_path / "0001" / "round.safetensors").write_bytes(b"x")
    with pytest.raises(DataError, match="cannot be read"):
        Round.load(tmp_path / "0001")


def test_the_map_has_one_array_after_the_other(tmp_path: Path) -> None:
    one = make_round(tmp_path / "0001", [0, 1, 2], held_out={0: (0, 1), 1: (1, 1)})
    content = one.map_bytes([3, 2, -1], ["z", "b", "c", "a"])
    assert np.frombuffer(content, np.uint32, 1).tolist() == [3]
    assert np.frombuffer(content, np.float32, 6, 4).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.frombuffer(content, np.int16, 3, 28).tolist() == [3, 1, 2]  # a, b, c among z, b, c, a
    assert np.frombuffer(content, np.int16, 3, 34).tolist() == [3, 2, -1]
    assert np.frombuffer(content, np.uint8, 3, 40).tolist() == [204] * 3
    # Node 0 is labeled a, and networks that had not seen it say b; node 1 is labeled c, they say b.
    assert np.frombuffer(content, np.uint8, 3, 43).tolist() == [1, 1, 0]
    assert len(content) == 46


def test_rounds_are_compared_on_the_labels_that_both_held_out(tmp_path: Path) -> None:
    before = make_round(tmp_path / "0001", [0, 1, 2, 0], held_out={0: (0, 1), 1: (1, 1)})
    after = make_round(
        tmp_path / "0002", [0, 1, 2, 1], held_out={0: (0, 0), 1: (1, 1), 2: (2, 0), 3: (1, 1)}
    )
    assert Comparison.of(before, after) == Comparison(
        nodes=2, before=1, after=2, new=2, new_right=1
    )
