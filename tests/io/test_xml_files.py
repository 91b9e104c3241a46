"""Streaming XML."""

from __future__ import annotations

import pytest

from everynode.errors import DataError
from everynode.io.xml_files import convert, parse_xml


class Recorder:
    def __init__(self):
        self.events = []

    def start(self, name, attributes, parent, line):
        self.events.append((name, attributes, parent, line))

    def end(self, name, text, parent, line):
        self.events.append((name, text, parent))


def test_elements_come_in_order_with_line_parent_and_own_text(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text('<a xmlns="urn:x" xmlns:y="urn:y">\n<y:b y:c="1">one<d/> two</y:b></a>')
    recorder = Recorder()
    parse_xml(path, "graphml", recorder)
    assert recorder.events == [
        ("a", {}, "", 1),
        ("b", {"c": "1"}, "a", 2),
        ("d", {}, "b", 2),
        ("d", "", "b"),
        ("b", "one two", "a"),
        ("a", "", ""),
    ]


BROKEN = {
    "open": ("<a>\n<b>", r"line 2: no element found"),
    "crossed": ("<a>\n<b></a>", r"line 2: mismatched tag"),
    "empty": ("", r"no element found"),
    "encoding": ('<?xml version="1.0" encoding="nonsense"?><a/>', r"not valid graphml"),
    "entities": ('<!DOCTYPE a [<!ENTITY lol "lol">]><a>&lol;</a>', r"line 1 declares the entity"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken(tmp_path, case):
    text, message = BROKEN[case]
    path = tmp_path / "a.xml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        parse_xml(path, "graphml", Recorder())


def test_values_follow_their_declared_type():
    assert convert("3", "int", "f", "a") == 3
    assert convert("3.5", "double", "f", "a") == 3.5
    assert convert("False", "boolean", "f", "a") is False
    assert convert("3", "string", "f", "a") == "3"
    assert convert("", "int", "f", "a") is None
    with pytest.raises(DataError, match=r"f, line 3: attribute 'age' holds 'x', declared int"):
        convert("x", "int", "f, line 3", "age")
