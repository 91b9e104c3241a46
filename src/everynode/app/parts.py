"""Small parts of the page that several tabs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nicegui import ui


def dot(code: int) -> None:
    """Draw the dot of a class; none for -1."""
    paint = color(code) if code >= 0 else "var(--rule)"
    ui.element("span").classes("dot").style(f"--c: {paint}")


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Draw pairs of a topic and a text. Markup in them stays text."""
    with ui.element("div").classes("facts"):
        for topic, text in rows:
            ui.label(topic)
            ui.label(text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str | Callable[[], Any]]]) -> None:
    """Draw a table; a cell is a text, or a function that draws it."""
    with ui.element("div").classes("scroll"), ui.element("table").classes("plain-table"):
        with ui.element("thead"), ui.element("tr"):
            for head in heads:
                with ui.element("th"):
                    ui.label(head)
        with ui.element("tbody"):
            for row in rows:
                with ui.element("tr"):
                    for cell in row:
                        with ui.element("td"):
                            cell() if callable(cell) else ui.label(cell)


def percent(share: float) -> str:
    """Format a share without digits, but never round up to all or down to none.

    >>> percent(0.5), percent(0.999), percent(0.001), percent(1.0)
    ('50 %', '> 99 %', '< 1 %', '100 %')
    """
    if 0.995 <= share < 1:
        return "> 99 %"
    if 0 < share < 0.005:
        return "< 1 %"
    return f"{100 * share:.0f} %"


def color(code: int) -> str:
    """Return the CSS color of a class: eight for the color-blind, then others.

    >>> color(2), color(8)
    ('var(--c2)', 'hsl(20.0 55% 50%)')
    """
    return f"var(--c{code})" if code < 8 else f"hsl({((code - 8) * 137.5 + 20) % 360} 55% 50%)"
