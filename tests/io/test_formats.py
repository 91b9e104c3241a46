"""File formats by their endings, and compressed files."""

from __future__ import annotations

import gzip
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everynode as en
from everynode.errors import DataError, UsageError
from everynode.io.formats import (
    GRAPH_FORMATS,
    TABLE_FORMATS,
    check_path,
    open_binary,
    parse_size,
    size_limit,
)


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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        en.read(edges=tmp_path / "pipe.csv")


#: Start, what repeats, and end of a file.
BOMBS = {
    "g.json": (b'{"nodes": [', b"{},", b"{}]}"),
    "g.graphml": (b"<graphml>", b" " * 100, b"</graphml>"),
    "e.csv": (b"a,b\n", b"1,2\n", b""),
    "e.jsonl": (b"", b'{"a": 1, "b": 2}\n', b""),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, name):
    path = tmp_path / f"{name}.gz"
    head, part, tail = BOMBS[name]
    path.write_bytes(gzip.compress(head + part * (2_000_000 // len(part)) + tail, 1))
    with (
        size_limit("1M"),
        pytest.raises(DataError, match=r"unpacks to more than 1 MB.* raise .*--max-size"),
    ):
        en.read(path) if name.startswith("g") else en.read(edges=path)


def test_without_a_limit_of_yours_100_mb_are_too_much(tmp_path):
    path = tmp_path / "g.graphml.gz"
    path.write_bytes(gzip.compress(b"<graphml>" + b" " * 101_000_000 + b"</graphml>", 1))
    with pytest.raises(DataError, match=r"unpacks to more than 100 MB.* raise .*--max-size"):
        en.read(path)


def test_the_limit_can_be_raised_and_lowered(tmp_path):
    path = tmp_path / "e.csv.gz"
    path.write_bytes(gzip.compress(b"source,target\n" + b"1,2\n2,3\n" * 1000))
    with size_limit("1k"), pytest.raises(DataError, match=r"unpacks to more than 0\.001 MB"):
        en.read(edges=path)
    with size_limit("9 kB"):
        assert en.read(edges=path).num_nodes == 3


def test_arrays_and_parquet_count_too(tmp_path):
    np.savez_compressed(tmp_path / "g.npz", edge_index=np.zeros((2, 200_000), np.int64))
    column = pa.array(np.zeros(200_000, np.int64))
    pq.write_table(pa.table({"source": column, "target": column}), tmp_path / "e.parquet")
    with size_limit("1M"):
        for options in ({"nodes": tmp_path / "g.npz"}, {"edges": tmp_path / "e.parquet"}):
            with pytest.raises(DataError, match="unpacks to more than 1 MB"):
                en.read(**options)


def test_sizes_are_numbers_with_units():
    assert [parse_size(text) for text in ("500", "1.5M", "2 GB", 7)] == [
        500,
        1_500_000,
        2 * 10**9,
        7,
    ]
    for wrong in ("0", "-1", "many", "2X", ""):
        with pytest.raises(UsageError, match="number such as 500M"):
            parse_size(wrong)
