"""Pages that live beside docs/: the changelog, and how to contribute."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGES = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def page(path: Path) -> str:
    """The text of a page: links to docs/ lead within the site, other files are only named."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\[([^\]]+)\]\((?!https?:|docs/|#)([^)]+)\)", r"\1 (`\2`)", text)
    return re.sub(r"\]\(docs/", "](../", text)


def write(app: Sphinx) -> None:
    """Copy the pages into the folder of what is generated."""
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(app.srcdir).parent
    for name, file in PAGES.items():
        if (root / file).exists():
            (folder / f"{name}.md").write_text(page(root / file), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before sources are read."""
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
