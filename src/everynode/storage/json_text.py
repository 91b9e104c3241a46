"""Strict JSON: an object with a repeated name is refused."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, and raise ValueError if it is invalid or names a value twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique_object)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"an object holds {repeated!r} twice")
    return values
