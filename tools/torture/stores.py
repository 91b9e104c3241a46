"""Two and four processes on one store: every run once, equal to those of one process."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.torture.commands import COMMANDS, Command, results
from tools.torture.kills import template, whole


def stores(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Start the same comparison several times at once."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        number = (2, 4)[seed % 2]
        _, expected = whole("compare")
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            together = [Command(COMMANDS["compare"], place) for _ in range(number)]
            ends = [process.end() for process in together]
            detail = "\n".join(done.err for done in ends if done.code)
            if not detail and results(place) != expected:
                detail = "the results differ from those of one process"
        outcomes["processes"] += number
        outcomes["stores"] += 1
        outcomes["wrong" if detail else "as one process"] += 1
        if detail:
            failures.append({"part": "stores", "seed": seed, "detail": detail[-300:]})
    return outcomes
