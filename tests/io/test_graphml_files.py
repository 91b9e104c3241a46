"""GraphML, and what is refused in it."""

from __future__ import annotations

import pytest

from everynode.errors import DataError
from everynode.io.graphml_files import read_graphml

KEYS = """<graphml>
<key id="d0" for="node" attr.name="team" attr.type="string"><default>red</default></key>
<key id="d1" for="node" attr.name="age" attr.type="int"/>
<key id="d2" for="node" yfiles.type="nodegraphics"/>
<graph edgedefault="{}">
"""


def write(folder, text, default="undirected"):
    path = folder / "g.graphml"
    path.write_text(KEYS.format(default) + text)
    return path


def test_defaults_types_nested_nodes_and_captions(tmp_path):
    text = (
        '<node id="a"><data key="d1">3</data><graph><node id="b"><data key="d0">blue</data></node>'
        '</graph></node><node id="c"><port name="p"><data key="d1">9</data></port><data key="d2">'
        '<y:ShapeNode xmlns:y="urn:y"><y:NodeLabel>Ann</y:NodeLabel></y:ShapeNode></data></node>'
        '<edge source="a" target="b"/></graph></graphml>'
    )
    nodes, edges, directed = read_graphml(write(tmp_path, text, "directed"))
    assert dict(nodes.columns("g")) == {
        "id": ["b", "a", "c"],
        "team": ["blue", "red", "red"],
        "age": [None, 3, None],
        "label": [None, None, "Ann"],
    }
    assert edges.columns("g") == [("source", ["a"]), ("target", ["b"])]
    assert directed


REFUSED = {
    "hyperedge": ("<hyperedge/>", "line 6 is a hyperedge"),
    "two graphs": ("</graph>\n<graph>", "line 7: a second graph"),
    "undeclared key": ('<node id="a"><data key="x">1</data></node>', "'x' is not declared"),
    "a value twice": (
        '<node id="a"><data key="d1">1</data><data key="d1">2</data></node>',
        "two values of 'age'",
    ),
    "no number": ('<node id="a"><data key="d1">old</data></node>', "holds 'old', declared int"),
    "no end": ('<edge source="a"/>', "an edge has no 'target'"),
    "one directed edge": ('<edge source="a" target="b" directed="true"/>', "directed='true'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path, case):
    text, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        read_graphml(write(tmp_path, f"{text}</graph></graphml>"))


def test_another_root_is_refused(tmp_path):
    (tmp_path / "g.graphml").write_text("<html/>")
    with pytest.raises(DataError, match="its root is <html>"):
        read_graphml(tmp_path / "g.graphml")
