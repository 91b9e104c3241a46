"""HTML as text: everything is escaped once, and a page loads nothing."""

from __future__ import annotations

from everynode.report.html import Html, document, h, join, layout, table

ODD = "<b>x</b>&\"'</script><!--"


def test_text_and_attributes_are_escaped_and_markup_is_not_escaped_again():
    inner = h("i", ODD, title=ODD)
    assert isinstance(inner, Html)
    assert ODD not in inner
    assert h("p", inner) == f"<p>{inner}</p>"
    assert join(ODD, [inner, None]).endswith(inner)


def test_heads_are_texts_or_cells_and_the_title_names_the_region():
    own = h("th", "own", scope="col", class_="number")
    drawn = table(["text", own], [[h("td", "1"), h("td", "2")]], "A title", caption=False)
    assert own in drawn
    assert '<th scope="col">text' in drawn
    assert 'aria-label="A title"' in drawn
    assert "<caption>" not in drawn
    assert "<caption>A title</caption>" in table([], [], "A title")


def test_a_page_has_its_contents_and_forbids_loading():
    page = document("everynode: x", layout("fit", {"a": "First"}, h("p", "hello")))
    assert '<a href="#a">First</a>' in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert page.startswith("<!doctype html>")
