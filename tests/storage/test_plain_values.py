"""Plain values must have the types of the dataclass they become."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from everynode.storage.plain_values import from_plain


@dataclass(frozen=True)
class Card:
    name: str
    kind: Literal["a", "b"] = "a"
    scale: tuple[float, ...] = ()
    pair: tuple[int, str] = (0, "")
    roles: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[Hashable, ...] = ()
    best: float | None = None
    on: bool = False
    count: int = 0


def test_right_values_become_the_dataclass():
    values = {
        "name": "x", "kind": "b", "scale": [1, 2.5], "pair": [3, "y"], "roles": {"id": "id"},
        "classes": ["a", 1, True], "best": None, "on": True, "count": 4,
    }  # fmt: skip
    assert from_plain(Card, values) == Card(
        "x", "b", (1, 2.5), (3, "y"), {"id": "id"}, ("a", 1, True), None, True, 4
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (7, "7 is not an object"),
        ({}, "'name' is missing"),
        ({"name": "x", "size": 1}, "'size' is unknown"),
        ({"name": 1}, "'name' is of the wrong type: 1"),
        ({"name": "x", "kind": "c"}, "'kind'"),
        ({"name": "x", "kind": ["a"]}, "'kind'"),
        ({"name": "x", "scale": "12"}, "'scale'"),
        ({"name": "x", "scale": [float("nan")]}, "'scale'"),
        ({"name": "x", "scale": [True]}, "'scale'"),
        ({"name": "x", "pair": [1]}, "'pair'"),
        ({"name": "x", "roles": {"id": 1}}, "'roles'"),
        ({"name": "x", "roles": [["id", "id"]]}, "'roles'"),
        ({"name": "x", "classes": [["a"]]}, "'classes'"),
        ({"name": "x", "on": 1}, "'on'"),
        ({"name": "x", "count": True}, "'count'"),
        ({"name": "x", "count": 1.5}, "'count'"),
        ({"name": "x", "best": "high"}, "'best'"),
    ],
)
def test_wrong_values_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        from_plain(Card, values)


def test_a_long_value_is_shortened():
    with pytest.raises(ValueError, match=r"\.\.\.$") as caught:
        from_plain(Card, {"name": ["x"] * 1000})
    assert len(str(caught.value)) < 120
