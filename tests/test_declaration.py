"""The declaration of a setting: its range in words, its search range, its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everynode.declaration import Declaration, Search, plain_value
from everynode.errors import UsageError
from everynode.settings import Settings


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({}, ""),
        ({"low": 1}, ">= 1"),
        ({"above": 0}, "> 0"),
        ({"high": 1}, "<= 1"),
        ({"below": 1}, "< 1"),
        ({"low": 0, "high": 1}, "in [0, 1]"),
        ({"above": 0, "below": 1}, "in (0, 1)"),
        ({"choices": ("a", "b")}, "one of a, b"),
    ],
)
def test_a_range_in_words(limits: dict[str, Any], sentence: str) -> None:
    assert Declaration("", "Model", **limits).expected == sentence


@pytest.mark.parametrize(
    ("value", "default", "sentence"),
    [
        (1.5, 1, "The 'x' of Settings must be a whole number. Got 1.5."),
        (True, 1, "The 'x' of Settings must be a whole number. Got True."),
        (2, 1, "The 'x' of Settings must be in [0, 1]. Got 2."),
    ],
)
def test_a_value_that_is_refused(value: Any, default: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        Declaration("", "Model", low=0, high=1).check("x", value, default)
    assert str(refused.value) == sentence


def test_text_and_none_have_no_range() -> None:
    declared = Declaration("", "Model", low=0)
    assert declared.allows("text")
    assert declared.allows(None)
    declared.check("x", None, None)


def test_a_setting_of_one_backbone() -> None:
    declared = Declaration("", "Model", of_backbones=("gcnii",))
    assert declared.is_of("gcnii")
    assert not declared.is_of("gcn")
    assert declared.is_of("a model of a plugin")


def test_a_search_has_a_backbones_own_choices() -> None:
    search = Search(choices=(2, 4), backbones={"gat": (2,)})
    assert search.space("gcn") == {"choices": [2, 4]}
    assert search.space("gat") == {"choices": [2]}


def test_values_are_stored_in_one_form() -> None:
    assert plain_value(np.int64(2), "x", 1.0) == 2.0
    assert type(plain_value(np.int64(2), "x", 1)) is int
    assert plain_value([["b", 1], ["a", 2]], "x", ()) == (("a", 2.0), ("b", 1.0))


def test_numbers_of_numpy_are_the_same_settings():
    assert repr(Settings(dropout=np.float64(0.25), epochs=np.int64(2))) == repr(
        Settings(dropout=0.25, epochs=2)
    )
