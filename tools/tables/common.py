"""Numbers as the pages print them, and the files of ``results/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everynode.experiments.analysis import SIGNIFICANT
from everynode.report.text import number

ROOT = Path(__file__).parents[2]
GRAPHS = ("cora", "citeseer", "pubmed")


def pages() -> list[Path]:
    """README and every page of docs/ that people write; `make docs` writes docs/generated."""
    written = (page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)
    return [ROOT / "README.md", *sorted(written)]


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / f"results/{name}.json").read_text())
    return found


def signed(value: float, digits: int = 1) -> str:
    """A difference, written as the page writes it."""
    return number(value, digits, sign=True)


def between(mean: float, low: float, high: float, digits: int = 1) -> str:
    """A difference and its interval."""
    return f"{signed(mean, digits)} ({signed(low, digits)} to {signed(high, digits)})"


def percent(summary: dict[str, float]) -> str:
    return f"{100 * summary['mean']:.1f} ± {100 * summary['std']:.1f}"


def gain_between(gain: dict[str, float]) -> str:
    return between(100 * gain["mean"], 100 * gain["low"], 100 * gain["high"])


def significant(gain: dict[str, Any]) -> bool:
    return gain["p_holm"] is not None and gain["p_holm"] < SIGNIFICANT


def listed(values: list[Any]) -> str:
    return ", ".join(map(str, values))
