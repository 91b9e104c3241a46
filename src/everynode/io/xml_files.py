"""Streaming reader of XML with line numbers, for files that hold a graph.

Only the elements that a handler keeps stay in memory. Entities are refused, because a few lines can
expand to gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol
from xml.parsers import expat

from everynode.errors import DataError
from everynode.io.formats import open_binary

CHUNK = 1 << 18
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
#: Conversions by the type names of GraphML and GEXF. Others are text.
CONVERSIONS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "integer", "long", "short", "byte"), int),
    **dict.fromkeys(("float", "double", "bigdecimal"), float),
    "boolean": lambda text: BOOLEANS[text.lower()],
}


class Handler(Protocol):
    """Receive the elements of a file in their order. Names come without namespace."""

    def start(self, name: str, attributes: dict[str, str], parent: str, line: int) -> None:
        """Handle the start of an element; ``parent`` is its parent element, "" at the root."""

    def end(self, name: str, text: str, parent: str, line: int) -> None:
        """Handle the end of an element; ``text`` excludes the text of inner elements."""


def parse_xml(path: Path, format: str, handler: Handler) -> None:
    """Feed the elements of a file to a handler. Compressed files are unpacked on the way."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: list[str] = [""]
    texts: list[list[str]] = [[]]

    def start(name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(" ")[2]
        plain = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        handler.start(local, plain, names[-1], parser.CurrentLineNumber)
        names.append(local)
        texts.append([])

    def end(name: str) -> None:
        text = "".join(texts.pop()).strip()
        handler.end(names.pop(), text, names[-1], parser.CurrentLineNumber)

    def refuse_entity(name: str, *_: Any) -> NoReturn:
        raise DataError(
            f"{path}, line {parser.CurrentLineNumber} declares the entity {name!r}. Entities are "
            "not read: export the file without a document type."
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.EntityDeclHandler = refuse_entity
    try:
        with open_binary(path) as file:
            while chunk := file.read(CHUNK):
                parser.Parse(chunk)
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = f"line {error.lineno}: {expat.ErrorString(error.code)}"
        raise DataError(f"{path} is not valid {format} ({reason}). Export it again.") from None
    except (ValueError, LookupError) as error:  # an unknown encoding, for example
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not valid {format} ({error}). Export it again.") from None


def convert(text: str, type_name: str, where: str, attribute: str) -> Any:
    """Convert the text of a value by the name of its declared type. Empty text is missing."""
    if not text:
        return None
    try:
        return CONVERSIONS.get(type_name.lower(), str)(text)
    except (ValueError, KeyError):
        raise DataError(
            f"{where}: attribute {attribute!r} holds {text[:40]!r}, declared {type_name}. Correct "
            "the value or the declaration."
        ) from None


def required(attributes: dict[str, str], name: str, where: str) -> str:
    """Return an attribute of an element, and refuse an element without it."""
    if name not in attributes:
        raise DataError(f"{where} has no {name!r}. Export the file again.")
    return attributes[name]
