"""File formats by their endings, and compressed files."""

from __future__ import annotations

import gzip

import pytest

from everynode.errors import DataError
from everynode.io.formats import GRAPH_FORMATS, TABLE_FORMATS, check_path, open_binary


def test_no_ending_names_two_formats():
    assert not set(TABLE_FORMATS) & set(GRAPH_FORMATS)
    assert set(TABLE_FORMATS.values()) == {"text", "parquet", "jsonl", "excel"}


def test_a_compressed_file_is_known_by_its_content(tmp_path):
    (tmp_path / "plain.gz").write_bytes(b"text")
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"text"))
    for name in ("plain.gz", "packed.csv"):
        with open_binary(tmp_path / name) as file:
            assert file.read() == b"text"


def test_folders_and_missing_files(tmp_path):
    with pytest.raises(DataError, match=r"is a folder\. Name a file"):
        check_path(tmp_path)
    with pytest.raises(DataError, match=r"There is no file .*nothing.csv"):
        check_path(tmp_path / "nothing.csv")
