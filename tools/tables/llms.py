"""``docs/llms.txt``: every page of the documentation with its first sentence, for programs that read."""

from __future__ import annotations

import re
from pathlib import Path

from tables.common import ROOT

FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
    prose = re.sub(r"^```.*?^```$", "", text[title.end() :], flags=re.DOTALL | re.MULTILINE)
    paragraphs = (part.strip() for part in prose.split("\n\n"))
    first = next(part for part in paragraphs if part and part[0] not in "|#<-!{")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)|[*]+", r"\1", " ".join(first.split()))
    sentence = re.split(r"(?<=[.?])\s|:$", plain)[0].rstrip(":")
    place = page.relative_to(ROOT / "docs").as_posix()
    return f"- [{title[1]}]({place.removesuffix('.md')}.html): {sentence}"


def navigation(page: Path) -> list[tuple[str, list[Path]]]:
    """The tables of contents of a page: their captions, and the pages, each with those below it."""
    parts = []
    for kind, content in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "{toctree}":
            caption = re.search(r"^:caption: (.+)$", content, re.MULTILINE)
            entries = [line for line in content.splitlines() if line and line[0] != ":"]
            files = [page.parent / f"{entry}.md" for entry in entries]
            files = [file for file in files if file.exists() and "generated" not in file.parts]
            pages = []
            for file in files:
                pages += [file, *(lower for _, under in navigation(file) for lower in under)]
            parts.append((caption[1] if caption else "", pages))
    return parts


def llms() -> str:
    """The whole text, in the order of the site's navigation; the archive is last."""
    docs, parts = ROOT / "docs", [HEAD]
    optional: list[Path] = []
    for caption, pages in navigation(docs / "index.md"):
        kept = [page for page in pages if page.parent.name != "archive"]
        optional += [page for page in pages if page not in kept]
        parts.append("\n".join([f"## {caption}", "", *map(described, kept)]) + "\n")
    parts.append("\n".join(["## Optional", "", *map(described, optional)]) + "\n")
    return "\n".join(parts)
