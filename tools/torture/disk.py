"""Full disks and read-only folders at random moments: one sentence, and nothing half-written.

A limit on the size of a file stands in for a full disk: from a random size on, writes fail.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.torture.commands import COMMANDS, Command, Ended, results, run
from tools.torture.kills import _continue, template, whole


def disk(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Run one command for each seed on a disk that fills up, or in a folder that gets read-only."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        command = list(COMMANDS)[seed % len(COMMANDS)]
        seconds, expected = whole(command)
        is_full = seed // len(COMMANDS) % 2 == 0
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            if is_full:
                limit = int(2 ** chance.uniform(4, 18))
                what = f"files up to {limit} bytes"
                done = run(COMMANDS[command], place, limit=limit)
            else:
                after = chance.uniform(0, 1) * seconds
                what = f"read-only after {after:.2f} s"
                done = _read_only(command, place, after)
            outcomes["full disks" if is_full else "read-only folders"] += done.code != 0
            outcomes["ended before"] += done.code == 0
            detail = ""
            if "Traceback" in done.err:
                detail = f"a traceback: {done.err}"
            elif done.code == 0 and results(place) != expected:
                detail = "it ended without an error, and its results differ"
            detail = detail or _continue(command, place, expected)
        outcomes["wrong" if detail else "as undisturbed"] += 1
        if detail:
            failures.append(
                {
                    "part": "disk",
                    "seed": seed,
                    "what": f"{command}, {what}",
                    "detail": detail[-300:],
                }
            )
    return outcomes


def _read_only(command: str, place: Path, after: float) -> Ended:
    """Run a command in a folder that becomes read-only after some seconds."""
    process = Command(COMMANDS[command], place, obey_modes=True)
    process.wait(after)
    _let_write(place, False)
    done = process.end()
    _let_write(place, True)
    return done


def _let_write(place: Path, may_write: bool) -> None:
    """Allow or forbid writing a folder and everything in it."""
    for path in (place, *place.rglob("*")):
        if path.exists():  # temporary files come and go
            mode = path.stat().st_mode
            path.chmod(mode | 0o200 if may_write else mode & ~0o222)
