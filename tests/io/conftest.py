"""Helpers to write files into an empty folder and to read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import everynode as en
from everynode.errors import DataError, EverynodeError


@pytest.fixture
def write(tmp_path, monkeypatch) -> Callable[..., None]:
    """Write files into an empty folder and work there, so that messages name them without a path."""
    monkeypatch.chdir(tmp_path)

    def put(**files: str | bytes) -> None:
        for name, content in files.items():
            path = Path(name.replace("_", "."))
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return put


@pytest.fixture
def refused() -> Callable[..., None]:
    """Read nodes.csv and edges.csv, which must be refused in a message with all these parts."""

    def check(*parts: str, kind: type[EverynodeError] = DataError, **options) -> None:
        nodes, edges = options.pop("nodes", "nodes.csv"), options.pop("edges", "edges.csv")
        with pytest.raises(kind) as caught:
            en.read(nodes, edges, **options)
        text = str(caught.value)
        assert text.endswith(".")
        assert "\n" not in text
        for part in parts:
            assert part in text, f"{part!r} is not in: {text}"

    return check


@pytest.fixture
def notes() -> Callable[[en.Graph], str]:
    """The texts of all notes of a graph."""
    return lambda graph: "\n".join(note.text for note in graph.summary.notes)


@pytest.fixture
def same() -> Callable[[en.Graph, en.Graph], bool]:
    """Whether two graphs have the same content and ids."""
    return lambda a, b: a.digest == b.digest and a.node_ids == b.node_ids
