"""People's own files, small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def own_files(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Writes people.csv and links.csv: three teams, easy to tell apart, every second label missing."""

    def make(
        n: int = 120,
        *,
        known: float = 0.6,
        seed: int = 0,
        folder: Path = tmp_path,
        team: str = "team",
    ) -> tuple[Path, Path]:
        rng = np.random.default_rng(seed)
        labels = np.arange(n) % 3
        rows = [f"id,height,city,{team}"]
        for i, label in enumerate(labels):
            city = ["Graz", "Oslo", "Porto"][label if rng.random() < 0.8 else rng.integers(3)]
            rows.append(
                f"p{i},{rng.normal(2 * label, 1):.3f},{city},{['red', 'green', 'blue'][label] if rng.random() < known else ''}"
            )
        links = ["source,target"]
        for a in range(n):
            for b in rng.choice(np.flatnonzero(labels == labels[a]), 2):
                links += [f"p{a},p{b}"] if a != b else []
        folder.mkdir(exist_ok=True)
        (folder / "people.csv").write_text("\n".join(rows) + "\n")
        (folder / "links.csv").write_text("\n".join(links) + "\n")
        return folder / "people.csv", folder / "links.csv"

    return make
