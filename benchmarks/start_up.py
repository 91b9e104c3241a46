"""How long from the shell to the first epoch, and to a fit of the bundled example, beside ``import torch``?

``python benchmarks/start_up.py [ROUNDS] [BEFORE=src]``. The commands run in turn, as whole processes on idle cores; the medians
count. BEFORE is the source folder of another version.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, write

PEOPLE, LINKS = (ROOT / "examples" / name for name in ("people.csv", "links.csv"))
COMMANDS = {
    "help": "--help",
    "first epoch": "train citeseer --epochs 1 --no-resume --quiet",
    "fit": f"fit --nodes {PEOPLE} --edges {LINKS} --label team --weight messages --effort quick --no-resume --quiet",
}


def seconds(words: list[str], source: Path, cores: int) -> float:
    """Return the seconds of a Python process with some words, on so many cores."""
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(source)},
            check=True,
            capture_output=True,
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
        )
        return time.perf_counter() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    versions = {"now": ROOT / "src"}
    if len(sys.argv) > 2:
        versions["before"] = Path(sys.argv[2]).resolve()
    cases = {"import torch": (["-c", "import torch"], versions["now"], 1)}
    for version, source in versions.items():
        for name, words in COMMANDS.items():
            for cores in (1, 2) if name == "fit" else (1,):
                title = f"{name}, {version}" + (f", {cores} cores" if cores > 1 else "")
                cases[title] = (["-m", "everynode", *words.split()], source, cores)
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            one = seconds(*case)
            if number:  # the first round fills caches
                taken[name].append(round(one, 3))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, value in medians.items():
        print(f"{value:6.2f} s  {value / medians['import torch']:5.2f} x import torch  {name}")
    ratios = {name: round(v / medians["import torch"], 3) for name, v in medians.items()}
    write("start-up", {"seconds": taken, "medians": medians, "to_import_torch": ratios})


if __name__ == "__main__":
    main()
