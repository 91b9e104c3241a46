"""The pages of the command reference, written from the commands themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def command_pages() -> dict[str, str]:
    """Markdown of every top-level command, by its name."""
    from everynode.cli import app, resolve

    resolve([])
    whole = app.generate_docs(heading_level=1, usage_name="everynode")
    _, *sections = re.split(r"^## (?=everynode )", whole, flags=re.MULTILINE)
    pages = {}
    for section in sections:
        name = section.split("\n", 1)[0].removeprefix("everynode ").strip()
        text = re.sub(r"^### ", "## ", f"# {section}", flags=re.MULTILINE)
        text = re.sub(r"^(everynode .*?) -m [\w.]+", r"\1", text, flags=re.MULTILINE)  # how it runs
        text = re.sub(r"\n {4,}(?=\S)", " ", text)  # a wrapped help text is one line
        text = re.sub(r"\*\*Commands\*\*:\n(\n?\*.*)+", "", text)  # they follow on the page
        text = re.sub(r""" \*\[default: (\(\)|""|False)\]\*""", "", text)  # what a flag is for
        # Flags in running text become code; what is code already stays.
        pages[name] = re.sub(
            r"(`[^`]*`)|(?<![\w-])(--[a-z][\w-]*)", lambda m: m[1] or f"`{m[2]}`", text
        )
    return pages


def write(app: Sphinx) -> None:
    """Write the pages where they differ, so that an unchanged command is not read again."""
    folder = Path(app.srcdir) / "generated" / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in command_pages().items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before sources are read."""
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
