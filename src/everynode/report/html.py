"""HTML and SVG as text, escaped by construction: what is not markup already becomes text."""

from __future__ import annotations

import html
from collections.abc import Iterable
from importlib import resources

#: Elements without content, written ``<x/>`` (right for SVG, tolerated in HTML).
EMPTY = frozenset(("meta", "link", "br", "path", "line", "rect", "circle"))
#: Elements whose end HTML infers: in thousands of table rows the end tags would be a tenth of a page.
INFERRED = frozenset(("td", "th", "tr", "thead", "tbody", "dt", "dd", "li"))


class Html(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


Child = str | Iterable["Child"] | None


def h(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. ``class_`` stands for ``class``, ``data_x`` for ``data-x``; an attribute that is None or False is left out.

    >>> h("p", "a < b", h("b", "c"), class_="note", title='"', hidden=None)
    '<p class="note" title="&quot;">a &lt; b<b>c</b></p>'
    """
    made = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        made.append(f" {key}" if value is True else f' {key}="{html.escape(str(value))}"')
    if name in EMPTY:
        return Html("".join((*made, "/>")))
    return Html("".join((*made, ">", join(*children), "" if name in INFERRED else f"</{name}>")))


def join(*children: Child) -> Html:
    """Pieces one after another: text is escaped, markup stays, None is nothing.

    >>> join("<", [h("i", "x"), None], "&")
    '&lt;<i>x</i>&amp;'
    """
    made: list[str] = []
    for child in children:
        if isinstance(child, Html):
            made.append(child)
        elif isinstance(child, str):
            made.append(html.escape(child, quote=False))
        elif child is not None:
            made.append(join(*child))
    return Html("".join(made))


def scroll(table: Html, label: str) -> Html:
    """A table that scrolls by itself where it is too wide, with the keyboard too; the page never does."""
    return h("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)


def bar(what: str) -> Html:
    """The bar on top of a page: whose it is, what it is, and the choice of light and dark."""
    toggle = h("button", "Theme: system", id="theme", type="button", hidden=True)
    return h(
        "header",
        h("a", "everynode", href="#top", class_="brand"),
        h("span", what, class_="quiet"),
        toggle,
        class_="top",
    )


def listed(
    heads: Iterable[str], rows: Iterable[Iterable[Html]], caption: str, *, sortable: bool = False
) -> Html:
    """A plain table with a row of heads; a row's cells are ``td`` or ``th`` already."""
    top = h("tr", [h("th", text, scope="col") for text in heads])
    body = h("tbody", [h("tr", row) for row in rows])
    return scroll(
        h(
            "table",
            h("caption", caption),
            h("thead", top),
            body,
            class_=f"plain{' sortable' if sortable else ''}",
        ),
        caption,
    )


def prose(text: str) -> Html:
    """A text in which `so` marked words are code.

    >>> prose("try `a < b`")
    'try <code>a &lt; b</code>'
    """
    return join(h("code", part) if i % 2 else part for i, part in enumerate(text.split("`")))


def document(title: str, *body: Child) -> str:
    """A whole page: the style and the script are in it, and its policy forbids the browser to load anything else."""
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
