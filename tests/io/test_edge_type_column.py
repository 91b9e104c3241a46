"""The column of types: read, stored with the encoder, and refused where it cannot be one."""

from __future__ import annotations

import pytest

import everynode as en
from everynode.io.feature_encoder import FeatureEncoder

PEOPLE = {"id": [1, 2, 3], "x": [1.0, 2.0, 4.0], "label": ["a", "b", "a"]}
LINKS = {"source": [1, 2, 1], "target": [2, 3, 2], "kind": ["call", "mail", "mail"]}


def test_two_types_between_the_same_nodes_are_no_repetition():
    graph = en.read(PEOPLE, LINKS, edge_type="kind")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_types.names == ("call", "mail")
    assert graph.edge_types.strengths.tolist() == [[1, 1], [0, 1]]
    assert graph.repairs["repeated_edges"] == 0
    assert not graph.summary.repairs
    assert [c.name for c in graph.summary.columns if c.kind == "edge_type"] == ["kind"]


def test_a_later_file_gets_the_weights_of_the_model():
    graph = en.read(PEOPLE, LINKS, edge_type="kind").with_edge_type_weights(
        {"call": 2, "mail": 0.5}
    )
    plain = graph.feature_encoder.to_dict()
    encoder = FeatureEncoder.from_dict(plain)
    assert encoder.edge_types == {"call": 2, "mail": 0.5}
    later = en.read(PEOPLE, {**LINKS, "kind": ["mail"] * 3}, feature_encoder=encoder)
    assert later.weights.tolist() == [0.5, 0.5]
    with pytest.raises(en.DataError, match=r"'fax', which is new to the model .* call, mail"):
        en.read(PEOPLE, {**LINKS, "kind": ["mail", "fax", "call"]}, feature_encoder=encoder)
    without = {name: LINKS[name] for name in ("source", "target")}
    with pytest.raises(en.DataError, match="no column 'kind'"):
        en.read(PEOPLE, without, feature_encoder=encoder)
    with pytest.raises(en.DataError, match="not a feature encoder"):
        FeatureEncoder.from_dict(plain | {"edge_types": {"call": 0.0}})


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (["call", None, "mail"], "column 'kind' is empty .1 such row"),
        (["call"] * 3, "has one value only"),
        ([[1], [2], [3]], "a word or a whole number"),
    ],
)
def test_bad_columns_are_refused(kinds, said):
    with pytest.raises(en.DataError, match=said):
        en.read(PEOPLE, {**LINKS, "kind": kinds}, edge_type="kind")


def test_too_many_types_are_refused():
    links = {"source": [1] * 25, "target": [2] * 25, "kind": [f"at {i}" for i in range(25)]}
    with pytest.raises(en.DataError, match=r"has 25 values, such as 'at 0'.* At most 20"):
        en.read(PEOPLE, links, edge_type="kind")
    with pytest.raises(en.DataError, match="no column 'sort'"):
        en.read(PEOPLE, LINKS, edge_type="sort")
