"""Lazy packages load a name when it is used."""

from __future__ import annotations

import pytest

from everynode._lazy import lazy


def test_names_come_from_their_modules():
    get, directory = lazy("everynode", {"UsageError": "errors", "Bar": "progress"})
    from everynode.errors import UsageError

    assert get("UsageError") is UsageError
    assert directory() == ["Bar", "UsageError"]
    with pytest.raises(AttributeError, match="module 'everynode' has no attribute 'Foo'"):
        get("Foo")
