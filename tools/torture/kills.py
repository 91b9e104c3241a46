"""Kill a command at a random moment, continue it, and compare with an undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.torture.commands import COMMANDS, prepare, results, run, start

#: Signals by name. SIGINT is Ctrl-C.
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
#: Undisturbed runs of this process: seconds, and results.
_whole: dict[str, tuple[float, dict[str, str]]] = {}
_template: list[tempfile.TemporaryDirectory[str]] = []


def kills(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Kill one command for each seed."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        command = list(COMMANDS)[seed % len(COMMANDS)]
        name = SIGNALS[seed // len(COMMANDS) % len(SIGNALS)]
        seconds, expected = whole(command)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            ended, detail = _kill(command, place, name, chance.uniform(0.05, 1.1) * seconds)
            outcomes["kills"] += not ended
            outcomes["ended before the signal"] += ended
            detail = detail or _continue(command, place, expected)
        outcomes["wrong" if detail else "as undisturbed"] += 1
        if detail:
            failures.append(
                {
                    "part": "kills",
                    "seed": seed,
                    "what": f"{command}, {name}",
                    "detail": detail[-300:],
                }
            )
    return outcomes


def template() -> Path:
    """Return the folder that every run begins with."""
    if not _template:
        _template.append(tempfile.TemporaryDirectory())
        prepare(Path(_template[0].name, "work"))
    return Path(_template[0].name, "work")


def whole(command: str) -> tuple[float, dict[str, str]]:
    """Return the seconds and the results of an undisturbed run."""
    if command not in _whole:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            began = time.monotonic()
            done = run(COMMANDS[command], place)
            if done.returncode:
                raise RuntimeError(f"{command} failed undisturbed: {done.stderr}")
            _whole[command] = time.monotonic() - began, results(place)
    return _whole[command]


def _kill(command: str, place: Path, name: str, after: float) -> tuple[bool, str]:
    """Kill a command; return whether it had ended, and what it did wrong."""
    process = start(COMMANDS[command], place)
    try:
        _, err = process.communicate(timeout=after)
        return True, f"it failed undisturbed: {err}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        os.kill(process.pid, getattr(signal, name))
    try:
        _, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False, f"it went on for 60 seconds after {name}"
    finally:
        _wait_for_group(process.pid)
    # Within its first second Python itself prints a traceback for Ctrl-C, while it imports.
    is_own = name == "SIGINT" and after > 3 and "Traceback" in err
    return False, f"a traceback after {name}: {err}" if is_own else ""


def _wait_for_group(leader: int) -> None:
    """Wait until the workers of a killed process have ended too."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(leader, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.05)


def _continue(command: str, place: Path, expected: dict[str, str]) -> str:
    """Run the command again; return how its results differ from those of an undisturbed run."""
    again = run(COMMANDS[command], place)
    if again.returncode:
        return f"it does not continue: {again.stderr}"
    found = results(place)
    if found == expected:
        return ""
    lost, more = sorted(expected.keys() - found), sorted(found.keys() - expected)
    changed = sorted(name for name in expected.keys() & found if expected[name] != found[name])
    return f"lost {lost}, more {more}, other content {changed}"
