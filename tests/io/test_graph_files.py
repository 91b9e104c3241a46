"""Graph files and NetworkX graphs."""

from __future__ import annotations

import gzip
import json

import networkx
import pytest

import everynode as en
from everynode.errors import DataError
from everynode.io import FeatureEncoder


def club(directed: bool = False) -> networkx.Graph:
    """Zachary's karate club with a label, a number and weights."""
    graph = networkx.karate_club_graph()
    if directed:
        graph = networkx.DiGraph(graph.edges(data=True))
    for node in graph:
        graph.nodes[node].pop("club", None)
        graph.nodes[node]["side"] = "left" if node < 17 else "right"
        graph.nodes[node]["age"] = 20 + node
    del graph.nodes[5]["side"]
    return graph


def tables(graph: networkx.Graph):
    nodes = {
        "id": list(graph),
        "side": [graph.nodes[i].get("side") for i in graph],
        "age": [graph.nodes[i]["age"] for i in graph],
    }
    edges = list(graph.edges(data="weight"))
    return nodes, {
        "source": [a for a, *_ in edges],
        "target": [b for _, b, _ in edges],
        "weight": [w for *_, w in edges],
    }


@pytest.mark.parametrize("kind", ["graphml", "gexf", "json", "graphml.gz", "json.gz"])
@pytest.mark.parametrize("directed", [False, True])
def test_through_networkx(tmp_path, kind, directed):
    graph = club(directed)
    path = tmp_path / f"club.{kind}"
    if kind.startswith("json"):
        content = json.dumps(networkx.node_link_data(graph, edges="links")).encode()
        path.write_bytes(gzip.compress(content) if kind.endswith(".gz") else content)
    else:
        (networkx.write_gexf if kind == "gexf" else networkx.write_graphml)(graph, path)
    expected = en.read(*tables(graph), label="side", directed=directed)
    found = en.read(path, label="side", directed=directed, features="age")
    assert found.digest == expected.digest
    assert found.node_ids == expected.node_ids
    assert found.summary.unlabelled == 1
    assert found.name == "club"
    again = en.read(
        path,
        feature_encoder=FeatureEncoder.from_dict(found.feature_encoder.to_dict()),
        directed=directed,
    )
    assert again.digest == found.digest


def test_a_networkx_graph_with_attributes_of_any_kind():
    graph = networkx.relabel_nodes(club(), {node: f"member {node}" for node in range(34)})
    for node, number in zip(graph, range(34), strict=True):
        graph.nodes[node]["colour"] = "red" if number % 3 else "blue"
    found = en.read(graph, label="side")
    assert found.node_ids[:2] == ("member 0", "member 1")
    assert found.feature_encoder.feature_names == ["age", "colour = blue", "colour = red"]
    assert found.summary.weighted
    with pytest.raises(DataError, match="0 nodes and 0 edges"):
        en.read(networkx.Graph())


def test_the_name_that_gexf_gives_every_node_is_no_label(tmp_path):
    networkx.write_gexf(club(), tmp_path / "club.gexf")
    assert en.read(tmp_path / "club.gexf").num_classes == 0


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_attributes_that_are_called_like_something_else_are_kept(tmp_path, kind):
    graph, path = club(), tmp_path / f"club.{kind}"
    for node in graph:
        graph.nodes[node].update(
            {"name": f"group {node % 3}"} if kind == "gexf" else {"id": node % 4}
        )
    for number, edge in enumerate(graph.edges.values()):
        edge["target"] = number % 2
    (networkx.write_gexf if kind == "gexf" else networkx.write_graphml)(graph, path)
    found = en.read(path, label="side")
    columns = {column.name: column.kind for column in found.summary.columns}
    if kind == "gexf":
        assert "name" in columns  # the caption
        assert columns["name (attribute)"] == "category"
    else:
        assert columns["id (attribute)"] == "number"
        assert [column.name for column in found.summary.columns if column.kind == "id"] == ["id"]
        assert "target (attribute)" in columns
    for node in graph:
        graph.nodes[node]["id"] = node
    networkx.write_graphml(graph, tmp_path / "same.graphml")
    assert "id (attribute)" not in str(en.read(tmp_path / "same.graphml", label="side").summary), (
        "the id once more"
    )


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_a_file_that_is_directed_and_taken_for_undirected_is_remarked_on(tmp_path, kind):
    for directed in (False, True):
        path = tmp_path / f"club.{kind}"
        (networkx.write_gexf if kind == "gexf" else networkx.write_graphml)(club(directed), path)
        graph = en.read(path, label="side")
        remarks = [note.text for note in graph.summary.warnings if "--directed" in note.text]
        assert len(remarks) == directed
        for options in ({"directed": True}, {"feature_encoder": graph.feature_encoder}):
            assert "--directed" not in str(en.read(path, **options).summary)


@pytest.mark.parametrize("kind", ["graphml", "gexf", "json"])
def test_broken_files(tmp_path, kind):
    path = tmp_path / f"club.{kind}"
    path.write_text("<graphml><node></graphml>")
    with pytest.raises(DataError, match=f"club.{kind} is not valid {kind}"):
        en.read(path)
