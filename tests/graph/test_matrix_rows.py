"""Matrices by rows: a file gives the same as memory."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.errors import DataError
from everynode.graph.matrix_rows import FileRows, MemoryRows, room

X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)


@given(st.lists(st.integers(0, 49), max_size=60))
@settings(max_examples=40)
def test_rows_of_a_file_are_those_of_memory(rows):
    with tempfile.TemporaryFile() as file:
        on_disk, in_memory = (
            FileRows(file, (50, 6), np.float32, offset=13),
            MemoryRows(np.empty((50, 6), np.float32)),
        )
        for matrix in (on_disk, in_memory):
            assert matrix.shape == (50, 6)
            for start in (30, 0, 15):
                matrix.write(start, X[start : start + 20])
        wanted = np.array(rows, dtype=np.int64)
        np.testing.assert_array_equal(on_disk.read(wanted), X[wanted])
        np.testing.assert_array_equal(in_memory.read(wanted), X[wanted])


def test_a_small_matrix_stays_in_memory(tmp_path):
    assert isinstance(room(50, 6, np.float32, tmp_path), MemoryRows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.zeros(3), "is not a matrix of numbers"),
        (np.zeros((2, 3), order="F"), "row after row"),
        (np.array([[None]], dtype=object), "is not a matrix of numbers"),
    ],
)
def test_other_arrays_are_refused(tmp_path, content, message):
    np.save(tmp_path / "x.npy", content)
    with pytest.raises(DataError, match=message):
        FileRows.of_npy(tmp_path / "x.npy")


def test_a_full_disk_is_one_sentence(monkeypatch):
    monkeypatch.setattr("everynode.graph.matrix_rows._write_at", lambda *arguments: 7)
    with tempfile.TemporaryFile() as file, pytest.raises(DataError, match="The disk is full"):
        FileRows(file, (50, 6), np.float32).write(0, X)
