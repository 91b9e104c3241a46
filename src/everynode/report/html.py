"""HTML and SVG as text. Every string is escaped unless it is :class:`Html`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from importlib import resources

#: Elements without content, written ``<x/>`` (valid in SVG, tolerated in HTML).
EMPTY = frozenset(("meta", "link", "br", "path", "line", "rect", "circle"))
#: Elements whose end tag HTML infers. Without these tags, a large page is a tenth shorter.
INFERRED = frozenset(("td", "th", "tr", "thead", "tbody", "dt", "dd", "li"))


class Html(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def h(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """Build an element.

    ``class_`` stands for ``class`` and ``data_x`` for ``data-x``. An attribute that is None or
    False is left out.

    >>> h("p", "a < b", h("b", "c"), class_="note", title='"', hidden=None)
    '<p class="note" title="&quot;">a &lt; b<b>c</b></p>'
    """
    pieces = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        pieces.append(f" {key}" if value is True else f' {key}="{html.escape(str(value))}"')
    if name in EMPTY:
        return Html("".join((*pieces, "/>")))
    return Html("".join((*pieces, ">", join(*children), "" if name in INFERRED else f"</{name}>")))


def join(*children: Child) -> Html:
    """Concatenate text, which is escaped, and markup, which is not; None is skipped.

    >>> join("<", [h("i", "x"), None], "&")
    '&lt;<i>x</i>&amp;'
    """
    pieces: list[str] = []
    for child in children:
        if isinstance(child, Html):
            pieces.append(child)
        elif isinstance(child, str):
            pieces.append(html.escape(child, quote=False))
        elif child is not None:
            pieces.append(join(*child))
    return Html("".join(pieces))


def prose(text: str) -> Html:
    """Build text with words between backquotes as code.

    >>> prose("try `a < b`")
    'try <code>a &lt; b</code>'
    """
    return join(h("code", part) if i % 2 else part for i, part in enumerate(text.split("`")))


def command(text: str) -> Html:
    """Build a shell command."""
    return h("code", text, class_="command")


def small(*children: Child) -> Html:
    """Build a paragraph in small print."""
    return h("p", *children, class_="small")


def facts(pairs: Iterable[tuple[str, Child]], look: str = "facts") -> Html:
    """Build a list of names and values."""
    return h("dl", [h("div", h("dt", name), h("dd", text)) for name, text in pairs], class_=look)


def table(
    heads: Iterable[str],
    rows: Iterable[Iterable[Html]],
    title: str,
    *,
    look: str = "plain",
    caption: bool = True,
) -> Html:
    """Build a table that scrolls if it is too wide, also with the keyboard.

    Parameters
    ----------
    heads : iterable of str
        The column heads: texts, or ``th`` elements.
    rows : iterable of iterable of Html
        The cells of each row, as ``td`` and ``th`` elements.
    title : str
        The caption, and the name for screen readers.
    look : str
        CSS classes of the table.
    caption : bool
        Whether the title is shown.
    """
    cells = [head if isinstance(head, Html) else h("th", head, scope="col") for head in heads]
    built = h(
        "table",
        h("caption", title) if caption else None,
        h("thead", h("tr", cells)),
        h("tbody", [h("tr", row) for row in rows]),
        class_=look,
    )
    return h("div", built, class_="scroll", tabindex=0, role="region", aria_label=title)


def links(titles: Mapping[str, str]) -> Html:
    """Build a list of links to places on the page; ``titles`` by id."""
    return h("ol", [h("li", h("a", title, href=f"#{place}")) for place, title in titles.items()])


def layout(kind: str, titles: Mapping[str, str], *main: Child) -> Html:
    """Build the body of a page: the top bar, the table of contents and the main part.

    ``kind`` names the page in the bar; ``titles`` are the titles of its sections by id.
    """
    contents = h("nav", h("p", "Contents", class_="over"), links(titles), aria_label="Contents")
    return join(
        h(
            "header",
            h("a", "everynode", href="#top", class_="brand"),
            h("span", kind, class_="quiet"),
            h("button", "Theme: system", id="theme", type="button", hidden=True),
            class_="top",
        ),
        h("div", contents, h("main", *main, id="top"), class_="layout"),
    )


def document(title: str, *body: Child) -> str:
    """Build a whole page with its style and script; its policy forbids loading anything else."""
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    assets = resources.files("everynode.report") / "assets"
    style, script = (Html((assets / f"page.{kind}").read_text("utf-8")) for kind in ("css", "js"))
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("link", rel="icon", href="data:,"),
        h("title", title),
        h("style", style),
    )
    return f"<!doctype html>\n{h('html', head, h('body', *body, h('script', script)), lang='en')}\n"
