"""Kill a command at a random moment, continue it, and compare with an undisturbed run."""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.torture.commands import CLUSTERS, COMMANDS, Command, prepare, results, run

#: Signals by name. SIGINT is Ctrl-C.
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
#: The number of kills for each one that meets a new interpreter, perhaps while it imports, for START seconds.
FRESH, START = 10, 3
#: The number of kills for each one of a command on a cluster.
CLUSTERED = 20
#: Seconds for a command to end; a busy machine may stop it for minutes.
PATIENCE = 600
#: Undisturbed runs of this process: seconds, and results.
_whole: dict[str, tuple[float, dict[str, str]]] = {}
_template: list[tempfile.TemporaryDirectory[str]] = []


def kills(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Kill one command for each seed."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        command = choose(seed)
        name = SIGNALS[seed // len(COMMANDS) % len(SIGNALS)]
        seconds, expected = whole(command)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "work")
            shutil.copytree(template(), place)
            after, fresh = chance.uniform(0.05, 1.1) * seconds, seed % FRESH == 0
            after += chance.uniform(0, START) * fresh
            ended, detail = _kill(command, place, name, after, fresh)
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


def choose(seed: int) -> str:
    """Return the name of the command that a seed kills."""
    if seed % CLUSTERED == CLUSTERED - 1:
        return list(CLUSTERS)[seed // CLUSTERED % len(CLUSTERS)]
    return list(COMMANDS)[seed % len(COMMANDS)]


def arguments(command: str) -> tuple[str, ...]:
    """Return the arguments of a command by its name."""
    words = (COMMANDS | CLUSTERS)[command]
    return (*words, "--address", ray_address()) if "ray" in words else words


@functools.cache
def ray_address() -> str:
    """Start a Ray cluster of one node, which ends with this process, and return its address."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False}
    )
    atexit.register(cluster.shutdown)
    return str(cluster.address)


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
            done = run(arguments(command), place)
            if done.code:
                raise RuntimeError(f"{command} failed undisturbed: {done.err}")
            _whole[command] = time.monotonic() - began, results(place)
    return _whole[command]


def _kill(command: str, place: Path, name: str, after: float, fresh: bool) -> tuple[bool, str]:
    """Kill a command; return whether it had ended, and what it did wrong."""
    process = Command(arguments(command), place, fresh=fresh)
    if process.wait(after):
        done = process.end()
        return True, f"it failed undisturbed: {done.err}" if done.code else ""
    os.kill(process.pid, getattr(signal, name))
    done = process.end(PATIENCE)
    if done.late:
        return False, f"it went on for {PATIENCE} seconds after {name}"
    if "torchrun" in command or "Traceback" not in done.err:  # PyTorch's launcher shows its own
        return False, ""
    return False, f"a traceback after {name}: {done.err}"


def _continue(command: str, place: Path, expected: dict[str, str]) -> str:
    """Run the command again; return how its results differ from those of an undisturbed run."""
    again = run(arguments(command), place)
    if again.code:
        return f"it does not continue: {again.err}"
    found = results(place)
    if found == expected:
        return ""
    lost, more = sorted(expected.keys() - found), sorted(found.keys() - expected)
    changed = sorted(name for name in expected.keys() & found if expected[name] != found[name])
    return f"lost {lost}, more {more}, other content {changed}"
