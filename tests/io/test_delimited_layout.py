"""The layout of delimited text: headings, comments, bare edge lists."""

from __future__ import annotations

import pytest

import everynode as en


@pytest.mark.parametrize("comment", ["# exported by tool, 2024", "% from a, b"])
def test_a_comment_with_a_comma_is_no_heading(write, comment):
    write(edges_csv=f"{comment}\nsource,target\nn0,n1\nn1,n2\n")
    assert en.read(edges="edges.csv").node_ids == ("n0", "n1", "n2")
    write(
        nodes_csv=f"{comment}, c\nNode,x,team\n0,1,a\n1,2,b\n2,2,b\n",
        edges_csv="# from,to\n0,1\n1,2\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    assert graph.feature_encoder.feature_names == ["x"]
    write(nodes_csv=f"{comment}, c\nwho,x,team\n0,1,a\n1,2,b\n2,2,b\n")
    assert en.read(
        "nodes.csv", "edges.csv", label="team", id="who"
    ).feature_encoder.feature_names == ["x"]


def test_a_very_wide_table(write):
    columns = 3_000  # so that the heading alone is longer than what is read first
    heading = ",".join(f"a long name of column {i}" for i in range(columns))
    rows = "".join(
        f"{i},{'ab'[i % 2]},{','.join(str((i + j) % 3) for j in range(columns))}\n"
        for i in range(3)
    )
    write(nodes_csv=f"id,label,{heading}\n{rows}", edges_csv="0,1\n1,2\n")
    assert en.read("nodes.csv", "edges.csv").num_features == columns


@pytest.mark.parametrize(
    "text",
    [
        "1 2\n2 3\n",
        "1\t2\n2\t3\n",
        "1,2\n2,3\n",
        "# from to\n1 2\n2 3\n",
        "% comment\n1 2\n2 3\n",
        "1 2 9\n2 3 7\n",
        " 1   2\r\n 2   3 \r\n",
        "\n\n1 2\n2\t 3\n",
    ],
)
def test_bare_edge_lists(write, text):
    write(nodes_csv="id,label\n1,a\n2,b\n3,b\n", edges_txt=text)
    assert en.read("nodes.csv", "edges.txt").edges.tolist() == [[0, 1], [1, 2]]
