"""Row numbers that programs add are not features."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet
import pytest

import everynode as en


@pytest.mark.parametrize("heading", ["", '""', "Unnamed: 0"])
@pytest.mark.parametrize("first", [0, 1])
def test_the_row_number_that_pandas_and_r_write_is_no_feature(write, heading, first):
    """A table that is sorted by its label has the label in it."""
    rows = [f"{i + first},n{i},{x},{'ab'[i > 2]}" for i, x in enumerate([3, 1, 4, 1, 5])]
    write(
        nodes_csv=f"{heading},id,x,label\n" + "\n".join(rows),
        edges_csv="source,target\nn0,n1\nn1,n9\n",
    )
    graph = en.read("nodes.csv", "edges.csv", unknown="add")
    name = "Unnamed: 0" if "Unnamed" in heading else "column 1"
    assert graph.feature_encoder.feature_names == ["x", "x is missing"]
    assert f"column    {name}: ignored, a row number" in graph.summary.lines()
    assert en.read(
        "nodes.csv", "edges.csv", unknown="drop", features=f"{name}:number"
    ).feature_encoder.feature_names == [name]
    again = en.read(
        {"id": ["n0", "n1"], "x": [1, 2]},
        {"source": ["n0"], "target": ["n1"]},
        feature_encoder=graph.feature_encoder,
    )
    assert again.num_features == 2


def test_an_index_that_pandas_wrote_into_parquet_is_no_feature(tmp_path):
    columns = {
        "id": [5, 6, 7],
        "x": [3, 1, 4],
        "label": ["a", "a", "b"],
        "__index_level_0__": [0, 1, 2],
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    graph = en.read(tmp_path / "nodes.parquet", {"source": [5], "target": [6]})
    assert graph.feature_encoder.feature_names == ["x"]
