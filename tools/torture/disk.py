"""Full disks at random moments: one sentence, and nothing half-written.

A limit on the size of a file stands in for a full disk: from a random size on, writes fail.
"""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.torture.commands import COMMANDS, results, run
from tools.torture.kills import _continue, template, whole


def disk(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Run one command for each seed with a limit on the size of its files."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        command = list(COMMANDS)[seed % len(COMMANDS)]
        _, expected = whole(command)
        limit = int(2 ** random.Random(seed).uniform(4, 18))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            done = run(COMMANDS[command], place, preexec_fn=lambda limit=limit: _limit(limit))
            outcomes["full disks"] += done.returncode != 0
            outcomes["had room"] += done.returncode == 0
            detail = ""
            if "Traceback" in done.stderr:
                detail = f"a traceback: {done.stderr}"
            elif done.returncode == 0 and results(place) != expected:
                detail = "it ended without an error, and its results differ"
            detail = detail or _continue(command, place, expected)
        outcomes["wrong" if detail else "as undisturbed"] += 1
        if detail:
            failures.append(
                {"part": "disk", "seed": seed, "what": f"{command}, files up to {limit} bytes",
                 "detail": detail[-300:]}
            )  # fmt: skip
    return outcomes


def _limit(size: int) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
