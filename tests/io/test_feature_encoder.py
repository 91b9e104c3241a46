"""The feature encoder: the same features from later files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

import everynode as en
from everynode.errors import DataError
from everynode.io import FeatureEncoder

PEOPLE = """id,age,city,member,team
ann,30,Rome,yes,red
bob,40,Oslo,no,blue
cas,50,Rome,yes,red
dan,,Bern,no,
eve,70,Oslo,yes,blue
"""


LINKS = "source,target\nann,bob\nbob,cas\ncas,dan\ndan,eve\n"


def test_a_feature_encoder_gives_other_files_the_same_columns(write, notes, same):
    write(
        nodes_csv=PEOPLE,
        edges_csv=LINKS,
        new_csv="team,id,city,age,member\n,x,Rome,50,1\ngreen,y,Paris,,no\n",
        links_csv="x,y\n",
    )
    graph = en.read("nodes.csv", "edges.csv", label="team")
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(graph.feature_encoder.to_dict()))
    )
    assert feature_encoder == graph.feature_encoder
    again = en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder)
    assert same(again, graph)
    new = en.read("new.csv", "links.csv", feature_encoder=feature_encoder)
    assert new.classes == graph.classes
    assert new.labels.tolist() == [-1, -1]
    age = (50 - 47.5) / np.std([30, 40, 50, 70])
    expected = torch.tensor([[age, 0, 0, 0, 1, 1], [0, 1, 0, 0, 0, 0]], dtype=torch.float32)
    torch.testing.assert_close(new.dense_features, expected)
    assert "1 value not seen in training ('Paris')" in notes(new)
    assert "1 label in column 'team' not among the model's classes ('green': row 3)" in notes(new)


def test_a_feature_encoder_knows_how_a_missing_value_is_written(write, same):
    write(
        nodes_csv="id,x,colour,label\n1,1,red,a\n2,2,?,b\n3,?,blue,?\n4,5,blue,b\n",
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv", na=["?"])
    feature_encoder = FeatureEncoder.from_dict(
        json.loads(json.dumps(graph.feature_encoder.to_dict()))
    )
    again = en.read("nodes.csv", "edges.csv", feature_encoder=feature_encoder)
    assert same(again, graph)
    assert again.summary.repairs == graph.summary.repairs
    write(new_csv="id,x,colour\n1,-,?\n2,?,red\n", links_csv="1,2\n")
    new = en.read("new.csv", "links.csv", feature_encoder=feature_encoder, na=["-"])
    assert new.feature_encoder.feature_names == [
        "x",
        "x is missing",
        "colour = blue",
        "colour = red",
        "colour is missing",
    ]
    assert new.dense_features.tolist() == [[0, 1, 0, 0, 1], [0, 1, 0, 1, 0]]


def test_a_feature_encoder_knows_a_category_of_long_numbers_in_every_format(write):
    people = {"id": [1, 2, 3, 4], "phone": [49123456789012, 49123456789013, None, 49123456789012]}
    write(
        nodes_csv="id,phone\n1,49123456789012\n2,49123456789013\n3,\n4,49123456789012\n",
        edges_csv="1,2\n2,3\n",
    )
    graph = en.read("nodes.csv", "edges.csv", features="phone:category")
    assert graph.feature_encoder.feature_names == [
        "phone = 49123456789012",
        "phone = 49123456789013",
        "phone is missing",
    ]
    again = en.read(people, "edges.csv", feature_encoder=graph.feature_encoder)
    assert torch.equal(again.dense_features, graph.dense_features)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_long_whole_numbers_keep_all_their_digits(write, kind):
    """As fractions 2^60 and 2^60 + 1 are one."""
    code = [2**60 + i % 3 + (2**63 if kind == "uint64" else 0) for i in range(9)]
    nodes = {"id": list(range(9)), "code": pa.array(code, kind), "label": pa.array(code, kind)}
    edges = {"source": [0, 1], "target": [1, 2]}
    graph = en.read(nodes, edges, features="code:category")
    assert graph.feature_encoder.feature_names == [f"code = {value}" for value in code[:3]]
    assert graph.classes == tuple(map(str, code[:3]))
    write(nodes_csv="id,code,label\n" + "".join(f"{i},{c},{c}\n" for i, c in enumerate(code)))
    assert en.read("nodes.csv", edges, features="code:category").classes == graph.classes
    assert torch.equal(
        en.read("nodes.csv", edges, feature_encoder=graph.feature_encoder).dense_features,
        graph.dense_features,
    )
    assert en.read(nodes, edges, features="code:number").num_features  # rounded, as numbers are


def test_a_feature_encoder_needs_its_columns(write, refused):
    write(
        nodes_csv=PEOPLE,
        edges_csv=LINKS,
        new_csv="id,city,member\nx,Rome,1\ny,Rome,no\n",
        links_csv="x,y\n",
    )
    feature_encoder = en.read("nodes.csv", "edges.csv", label="team").feature_encoder
    refused(
        "new.csv has no column 'age'",
        nodes="new.csv",
        edges="links.csv",
        feature_encoder=feature_encoder,
    )
    for broken in (
        {},
        {**feature_encoder.to_dict(), "columns": [{"name": "x", "kind": "magic"}]},
        {**feature_encoder.to_dict(), "columns": 3},
    ):
        with pytest.raises(DataError, match="not a feature encoder"):
            FeatureEncoder.from_dict(broken)
