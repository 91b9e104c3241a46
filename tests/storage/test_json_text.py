"""JSON that loses nothing."""

from __future__ import annotations

import pytest

from everynode.storage.json_text import parse_json


def test_a_name_twice_is_refused_at_any_depth():
    assert parse_json('{"a": [{"b": 1}]}') == {"a": [{"b": 1}]}
    for text in ('{"a": 1, "a": 2}', '[{"a": {"b": 1, "c": 2, "b": 1}}]'):
        with pytest.raises(ValueError, match="twice"):
            parse_json(text)


def test_deep_nesting_is_a_value_error():
    with pytest.raises(ValueError, match=r"deeply|Expecting"):
        parse_json("[" * 200_000)
