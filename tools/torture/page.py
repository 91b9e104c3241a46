"""Write docs/how/reliability.md from results/torture.json; with ``--check``, say whether it is right."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tools.torture.__main__ import PARTS, ROOT, load

PAGE = ROOT / "docs" / "how" / "reliability.md"
#: What each part tries, and what it must not find.
ABOUT = {
    "fuzz": "random graphs in every format, damaged in their records or bytes, each read within 10 s"
    " and 1 GB; nodes and edges counted by an independent reader",
    "models": "saved models with one damaged card or file of weights, mostly with a digest that fits",
    "kills": "SIGKILL, SIGTERM or Ctrl-C at a random moment of a command, forked from a process with"
    " loaded imports (one in ten starts anew); continued, and compared with an undisturbed run",
    "disk": "writes that fail from a random size on, and folders that become read-only at a random"
    " moment; continued, and compared",
    "stores": "two and four processes on one store, compared with one process",
    "memory": "fits in one process; memory must not grow by 20 MB",
}
TEXT = """# Reliability

`make torture` tries to break everynode. It takes several hours, and continues where it stopped. The
tests run a small share of each part. This page is generated from `results/torture.json`.

| part | what is tried | planned | tried | outcomes |
|---|---|---|---|---|
{rows}

{failures}

An input that is read or refused is right. *Compared* inputs were read, and had as many nodes and
edges as an independent reader counts. A refusal is one sentence with file, place and remedy.

## Limits

- Compressed files unpack to 100 MB or 20 times their size, whichever is larger; NumPy archives and
  Parquet to 1 GB or 20 times. Raise this with `--max-size 2G`.
- Inputs are files. A pipe or a device is refused.
- Node numbers of an npz file may reach one million, or 100 times the number of edges.
- A model card may name up to 10,000 layers, networks or members. Card and weights have digests,
  which reveal damage, not intent: load models only from people you trust with your results.
- `fit` shows an estimate of the memory that training needs. It warns if the memory is not free.
- A numeric column takes about 0.1 ms to read, any other about 1 ms: 100,000 columns take seconds, or
  minutes if they are words.
- One node may be linked to all others. Of such a graph, the structural features leave out the returns
  of a random walk after three steps (zeros) if they need more than 200 million multiplications.
- Time and memory grow with nodes times classes. Where these are many, logistic regression takes
  fewer steps, and prediction sets leave out the neighbors. The page lists the 100 largest classes,
  has a confusion matrix of up to 50, and colors the 50 largest on the map.
- Ctrl-C within the first tenth of a second, while Python itself starts, shows Python's traceback.
- A store of runs needs SQLite 3.37 or newer. Only Python 3.11 on Linux was tried; other systems are
  simulated by tests (no fcntl, no preadv, spawned processes).
"""


def page(record: dict[str, Any]) -> str:
    """Return the text of the page."""
    rows = []
    for part, (planned, _) in PARTS.items():
        own = record["parts"].get(part, {"next_seed": 0, "counts": {}})
        counts = ", ".join(f"{count:,} {name}" for name, count in own["counts"].items() if count)
        rows.append(
            f"| {part} | {ABOUT[part]} | {planned:,} | {own['next_seed']:,} | {counts or 'not run'} |"
        )
    return TEXT.format(rows="\n".join(rows), failures=_failures(record["failures"]))


def _failures(failures: list[dict[str, Any]]) -> str:
    if not failures:
        return "No input failed."
    by_part = Counter(failure["part"] for failure in failures)
    repaired = sum(failure.get("repaired", False) for failure in failures)
    listed = ", ".join(f"{count} of {part}" for part, count in by_part.items())
    if repaired == len(failures):
        return (
            f"{len(failures)} inputs failed ({listed}), because of bugs that are repaired since. The "
            "same files and models were tried again and are right; the moment of a kill cannot be "
            "repeated, but tests send the signal where it went wrong."
        )
    return f"{len(failures)} inputs failed ({listed}); {repaired} of them are repaired."


def main() -> int:
    """Write or check the page."""
    text = page(load(ROOT / "results" / "torture.json"))
    if "--check" in sys.argv:
        return int(not PAGE.exists() or Path(PAGE).read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
