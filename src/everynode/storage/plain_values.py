"""Check the values of a JSON file against the annotations of the dataclass they become."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def from_plain(cls: type[T], values: Any) -> T:
    """Return a dataclass made of plain values, each of the annotated type.

    Numbers must be finite. Lists become tuples.

    Raises
    ------
    ValueError
        For an unknown, missing or wrong value; the message names it.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Scale:
    ...     center: tuple[float, ...]
    ...     log: bool = False
    >>> from_plain(Scale, {"center": [0.5, 2]})
    Scale(center=(0.5, 2), log=False)
    >>> from_plain(Scale, {"center": "wide"})
    Traceback (most recent call last):
    ValueError: 'center' is of the wrong type: 'wide'
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{_shown(values)} is not an object")
    hints = typing.get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ValueError(f"{_shown(name)} is unknown")
    for name, one in fields.items():
        optional = {one.default, one.default_factory} != {dataclasses.MISSING}
        if name not in values and not optional:
            raise ValueError(f"{name!r} is missing")
        if name in values and not matches(values[name], hints[name]):
            raise ValueError(f"{name!r} is of the wrong type: {_shown(values[name])}")
    return cls(**{name: _tuples(value) for name, value in values.items()})


def matches(value: Any, annotation: Any) -> bool:
    """Return whether a plain value is of an annotated type.

    Examples
    --------
    >>> matches([1, 2.5], tuple[float, ...]), matches(True, int), matches(None, str | None)
    (True, False, True)
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in arguments)
    if origin is typing.Literal:
        return isinstance(value, str) and value in arguments
    if annotation is None or annotation is type(None):
        return value is None
    if origin in (tuple, list, Sequence):
        return isinstance(value, list | tuple) and _items_match(value, arguments)
    if origin in (dict, Mapping):
        key, item = arguments
        return isinstance(value, Mapping) and all(
            matches(k, key) and matches(v, item) for k, v in value.items()
        )
    if annotation is Hashable:
        return isinstance(value, str | bool) or matches(value, float)
    if isinstance(value, bool):
        return annotation is bool
    if annotation is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, annotation)


def _items_match(values: Sequence[Any], annotations: tuple[Any, ...]) -> bool:
    if len(annotations) == 1 or annotations[-1] is Ellipsis:
        return all(matches(value, annotations[0]) for value in values)
    return len(values) == len(annotations) and all(map(matches, values, annotations))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
