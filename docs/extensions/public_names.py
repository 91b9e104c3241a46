"""Docstrings of the public names, which load on first use, and equations in Markdown's eyes."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def skip(app: Sphinx, kind: str, name: str, member: Any, skipped: bool, options: Any) -> bool:
    """Leave out what torch and scikit-learn document themselves."""
    module = getattr(member, "__module__", None) or ""
    return skipped or module.split(".")[0] in ("torch", "sklearn")


def setup(app: Sphinx) -> dict[str, Any]:
    """Leave out inherited members of other libraries."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
