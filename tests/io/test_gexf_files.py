"""GEXF, and what is refused in it."""

from __future__ import annotations

import pytest

from everynode.errors import DataError
from everynode.io.gexf_files import read_gexf
from everynode.io.summary import Notes

HEAD = """<gexf><graph defaultedgetype="undirected">
<attributes class="node"><attribute id="0" title="label" type="string"><default>x</default></attribute>
<attribute id="1" title="age" type="integer"/></attributes>
"""


def write(folder, text):
    path = folder / "g.gexf"
    path.write_text(f"{HEAD}{text}</graph></gexf>")
    return path


def test_captions_attributes_defaults_and_values_over_time(tmp_path):
    text = (
        '<node id="a" label="Ann"><attvalues><attvalue for="1" value="1"/>'
        '<attvalue for="1" value="2"/></attvalues></node><node id="b" label="Bob"><attvalues>'
        '<attvalue for="0" value="y"/></attvalues></node><edge source="a" target="b" weight="2"/>'
    )
    notes = Notes()
    nodes, edges, directed = read_gexf(write(tmp_path, text), notes)
    assert dict(nodes.columns("g")) == {
        "id": ["a", "b"],
        "name": ["Ann", "Bob"],
        "age": [2, None],
        "label": ["x", "y"],
    }
    assert dict(edges.columns("g"))["weight"] == [2.0]
    assert not directed
    assert "The last value is used" in notes.notes[0].text


REFUSED = {
    "no id": ("<node/>", "line 4: a node has no 'id'"),
    "no source": ('<edge target="a"/>', "an edge has no 'source'"),
    "undeclared": ('<node id="a"><attvalue for="7" value="1"/></node>', "'7' is not declared"),
    "a directed edge": ('<edge source="a" target="b" type="directed"/>', "an edge is directed"),
    "two graphs": ("</graph><graph>", "a second graph"),
    "weight": ('<edge source="a" target="b" weight="much"/>', "'weight' holds 'much'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path, case):
    text, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        read_gexf(write(tmp_path, text), Notes())
