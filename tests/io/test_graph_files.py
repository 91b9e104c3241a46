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
    assert found.summary.unlabeled == 1
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
    path.write_text('<graphml><node id="a"></graphml>')
    with pytest.raises(DataError, match=f"club.{kind} is not valid {kind}"):
        en.read(path)


#: Nodes a and b (b with a label), and an edge to a node that is not declared.
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="team" attr.type="string"/>
<graph edgedefault="undirected">
{nodes}
{edges}
</graph></graphml>"""
GEXF = """<?xml version="1.0" encoding="utf-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2"><graph defaultedgetype="undirected">
<attributes class="node"><attribute id="0" title="team" type="string"/></attributes>
<nodes>
{nodes}
</nodes><edges>
{edges}
</edges></graph></gexf>"""


def graph_file(kind: str, nodes: dict | list, edges: list) -> str:
    """A file with nodes (pairs of an id and a team) and edges (pairs of ids)."""
    if kind == "json":
        content = {
            "nodes": [{"id": name, "team": team} for name, team in nodes],
            "links": [{"source": a, "target": b} for a, b in edges],
        }
        return json.dumps(content)
    if kind == "graphml":
        node = '<node id="{}"><data key="d0">{}</data></node>'
        edge = '<edge source="{}" target="{}"/>'
    else:
        node = '<node id="{}"><attvalues><attvalue for="0" value="{}"/></attvalues></node>'
        edge = '<edge id="{0}{1}" source="{0}" target="{1}"/>'
    return {"graphml": GRAPHML, "gexf": GEXF}[kind].format(
        nodes="\n".join(node.format(*pair) for pair in nodes),
        edges="\n".join(edge.format(*pair) for pair in edges),
    )


NODES = [("a", "red"), ("b", "blue"), ("c", "red")]
EDGES = [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("kind", ["graphml", "gexf", "json"])
def test_an_edge_to_an_undeclared_node_is_refused_unless_unknown_says_otherwise(tmp_path, kind):
    path = tmp_path / f"club.{kind}"
    path.write_text(graph_file(kind, NODES, [*EDGES, ("c", "ghost")]))
    with pytest.raises(DataError, match=r"1 edge to nodes that are not .* \(edge 3.*: 'ghost'\)"):
        en.read(path, label="team")
    added = en.read(path, label="team", unknown="add")
    assert added.node_ids == ("a", "b", "c", "ghost")
    dropped = en.read(path, label="team", unknown="drop")
    assert dropped.node_ids == ("a", "b", "c")
    assert dropped.num_edges == 2


@pytest.mark.parametrize("kind", ["graphml", "gexf", "json"])
def test_a_second_node_with_the_same_id_is_refused(tmp_path, kind):
    path = tmp_path / f"club.{kind}"
    path.write_text(graph_file(kind, [*NODES, ("a", "blue")], EDGES))
    with pytest.raises(DataError, match=r"node 4.*id 'a' appears twice \(first in node 1"):
        en.read(path, label="team")


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_messages_about_xml_name_the_line(tmp_path, kind):
    path = tmp_path / f"club.{kind}"
    text = graph_file(kind, [*NODES, ("a", "blue")], EDGES)
    path.write_text(text)
    line = next(
        i
        for i, row in enumerate(text.splitlines(), 1)
        if "a" in row and "blue" in row and 'id="a"' in row
    )
    with pytest.raises(DataError, match=rf"node 4 \(line {line}\)"):
        en.read(path, label="team")


@pytest.mark.parametrize(
    "ids",
    [
        ["1", "2", "3"],
        [1, 2, 3],
        [1, "1", 2],
        [(0, 0), (0, 1), (1, 0)],
        [1.5, "x", print],
        ["a", " a", ""],
    ],
    ids=str,
)
def test_the_nodes_of_networkx_keep_their_type(ids):
    graph = networkx.Graph([(ids[0], ids[1]), (ids[1], ids[2])])
    for node, side in zip(ids, ("north", "south", "north"), strict=True):
        graph.nodes[node]["side"] = side
    read = en.read(graph, label="side")
    assert list(read.node_ids) == ids
    assert list(map(type, read.node_ids)) == list(map(type, ids))
    assert en.Graph.from_networkx(graph, features=None, label="side").node_ids == tuple(ids)
    assert {frozenset(pair) for pair in read.edges.T.tolist()} == {
        frozenset((0, 1)),
        frozenset((1, 2)),
    }


def test_another_attribute_may_be_the_id_of_a_networkx_graph():
    graph = networkx.Graph([(0, 1), (1, 2)])
    networkx.set_node_attributes(graph, {0: "2", 1: "0", 2: "1"}, "key")
    networkx.set_node_attributes(graph, {0: "a", 1: "b", 2: "a"}, "label")
    assert en.read(graph, id="key").node_ids == (2, 0, 1)
