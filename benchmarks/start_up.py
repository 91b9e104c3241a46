"""How long from the shell to the first epoch, beside ``import torch``?

``python benchmarks/start_up.py [ROUNDS] [BEFORE=src]``. The commands run in turn, as whole processes; the medians count: until the
first line of output, which comes after the epoch, until the end, and of CPU time. BEFORE is the source folder of another version.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, write

COMMANDS = {
    "help": "--help",
    "first epoch": "train citeseer --epochs 1 --no-resume --quiet",
}


def measure(words: list[str], source: Path) -> dict[str, float]:
    """Return the seconds of a Python process until its first line, until its end, and of CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stdout.readline(), words
        first = time.perf_counter() - start
        process.stdout.read()
        assert process.wait() == 0, words
        end = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"line": round(first, 3), "end": round(end, 3), "cpu": round(cpu, 3)}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    versions = {"now": ROOT / "src"}
    if len(sys.argv) > 2:
        versions["before"] = Path(sys.argv[2]).resolve()
    cases = {"import torch": (["-c", "import torch; print(flush=True)"], versions["now"])}
    for version, source in versions.items():
        for name, words in COMMANDS.items():
            cases[f"{name}, {version}"] = ["-m", "everynode", *words.split()], source
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            row = measure(*case)
            if number:  # the first round fills caches
                taken[name].append(row)
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for name, rows in taken.items()
    }
    unit = medians["import torch"]
    ratios = {
        name: {key: round(value / unit[key], 3) for key, value in row.items()}
        for name, row in medians.items()
    }
    for name, row in ratios.items():
        print(f"{name:24} {medians[name]} seconds, {row} times import torch")
    write("start-up", {"medians": medians, "to_import_torch": ratios, "rounds": taken})


if __name__ == "__main__":
    main()
