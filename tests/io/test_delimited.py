"""Delimited text: encodings, quotes, newlines in cells."""

from __future__ import annotations

import pytest

import everynode as en


def test_other_encodings_are_read_and_said(write):
    write(
        nodes_csv="id,stadt,label\n1,Zürich,a\n2,Köln,b\n3,Köln,b\n".encode("cp1252"),
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv")
    assert graph.feature_encoder.feature_names == ["stadt = Köln", "stadt = Zürich"]
    assert "cp1252" in graph.summary.warnings[0].text


def test_quoted_newlines_and_delimiters_and_quotes(write, refused):
    text = 'id,about,label\n1,"a, b\nc ""quoted""",x\n2,"\n",y\n3,a b c,x\n4,b c d,y\n,5,\n'
    write(nodes_csv=text, edges_csv="1,2\n2,3\n3,4\n")
    refused(
        "nodes.csv, row 6", "'id'", "empty"
    )  # as a spreadsheet counts: a record with a newline in it is one row


@pytest.mark.parametrize("rows", [(5, 30), (38, 39), (5, 30, 35)])
@pytest.mark.parametrize("text", ['"so', '"so" and', 'and "so'])
def test_stray_quotes_do_not_swallow_rows(write, rows, text, refused):
    """Two cells that begin with a quote make one cell of all between: half of the edges were gone without a word."""
    lines = [
        "source,target,remark",
        *(f"{i},{i + 1},{text if i in rows else 'fine'}" for i in range(40)),
    ]
    write(edges_csv="\n".join(lines) + "\n")
    if text == '"so':
        refused(
            f"edges.csv, row {rows[0] + 2}: a double quote",
            "never closes, or only some rows later",
            nodes=None,
        )
    else:
        assert en.read(edges="edges.csv").num_edges == 40


def test_a_stray_quote_in_the_first_column_or_with_other_line_ends(write, refused):
    write(edges_csv='remark,source,target\r\n"a,1,2\r\nb,2,3\r\n"c,3,4\r\nd,4,5\r\n')
    refused("edges.csv, row 2: a double quote", nodes=None)


def test_ditto_marks_do_not_swallow_rows(write, refused):
    between = "".join(f"{i},{i + 1},fine\n" for i in range(2, 20))
    write(edges_csv=f'source,target,remark\n1,2,"\n{between}20,21,"\n21,22,fine\n')
    refused("edges.csv, row 2: a double quote", nodes=None)


def test_an_address_of_three_lines_is_no_stray_quote(write):
    write(
        nodes_csv='id,text\n1,"first\nsecond, part\nthird, part"\n2,"a\nb"\n3,c\n',
        edges_csv="source,target\n1,2\n2,3\n",
    )
    assert en.read("nodes.csv", "edges.csv").num_nodes == 3


def test_text_of_several_lines_is_read(write):
    cells = [
        "one,\ntwo, three, four\nfive",
        "Dear all,\n\nsee you, then\n",
        "a, b\nc, d",
        "1,2\n3,4\n5,6",
    ]
    lines = ["id,about,label", *(f'{i},"{cell}",{"xy"[i % 2]}' for i, cell in enumerate(cells))]
    write(nodes_csv="\n".join([*lines, '4,"so" and so,x', '5,"a\nb",y']), edges_csv="0,1\n2,3\n")
    assert en.read("nodes.csv", "edges.csv").num_nodes == 6
