"""``docs/llms.txt``: every page of the documentation with its first sentence, for programs that read."""

from __future__ import annotations

import re
from pathlib import Path

from tables.common import ROOT

SECTIONS = {
    "Start": "start", "Guides": "guides", "Gallery": "gallery", "How it works": "how",
    "The paper": "paper", "Reference": "reference", "Optional": "archive",
}  # fmt: skip
HEAD = """# everynode

> Node classification on graphs, where every node counts: files or arrays in, a calibrated label for every node out. A command line, a
> scikit-learn estimator (`everynode.NodeClassifier`), and a loss for PyTorch Geometric loops (`everynode.ENC`).

Install with `pip install .`; Python 3.11 or later. `import everynode as en`; `everynode --help`.
"""


def described(page: Path) -> str:
    """A page as a list item: its title, its place, and its first sentence."""
    text = page.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    if title is None:
        raise SystemExit(f"{page.relative_to(ROOT)} has no title.")
    prose = re.sub(r"```.*?```", "", text[title.end() :], flags=re.DOTALL)
    paragraphs = (part.strip() for part in prose.split("\n\n"))
    first = next(part for part in paragraphs if part and part[0] not in "`|#<-!{")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)|[*]+", r"\1", " ".join(first.split()))
    sentence = re.split(r"(?<=[.?])\s|:$", plain)[0].rstrip(":")
    place = page.relative_to(ROOT / "docs").as_posix()
    return f"- [{title[1]}]({place.removesuffix('.md')}.html): {sentence}"


def llms() -> str:
    """The whole text."""
    docs, parts = ROOT / "docs", [HEAD]
    for title, folder in SECTIONS.items():
        pages = sorted((docs / folder).glob("*.md"))
        if folder == "how":
            pages.append(docs / "found.md")
        parts.append("\n".join([f"## {title}", "", *map(described, pages)]) + "\n")
    return "\n".join(parts)
