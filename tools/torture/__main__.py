"""Run parts of the torture for some time, and add their counts to results/torture.json."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: Each part with the number of its inputs in `make torture`, and how many one step takes.
PARTS = {
    "fuzz": (100_000, 200),
    "models": (5_000, 20),
    "kills": (1_000, 1),
    "disk": (100, 1),
    "stores": (20, 1),
    "memory": (1_000, 20),
}


def main() -> None:
    """Continue each part from its last seed until its number or the time is reached."""
    parser = argparse.ArgumentParser(prog="python -m tools.torture", description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each part")
    parser.add_argument("--count", type=int, help="inputs of each part in all")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "torture.json")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"unknown part {part!r}; expected some of {', '.join(PARTS)}")
        total, step = PARTS[part]
        run(part, options.count or total, step, options.seconds, options.results)


def run(part: str, total: int, step: int, seconds: float, results: Path) -> None:
    """Run one part. The results are written after every step."""
    module = importlib.import_module(f"tools.torture.{part}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        record = load(results)
        own = record["parts"].setdefault(part, {"next_seed": 0, "seconds": 0.0, "counts": {}})
        seeds = range(own["next_seed"], min(own["next_seed"] + step, total))
        if not seeds:
            return
        began, failures = time.monotonic(), []
        counts: Counter[str] = getattr(module, part)(seeds, failures)
        own["counts"] = dict(sorted((Counter(own["counts"]) + counts).items()))
        own["seconds"] = round(own["seconds"] + time.monotonic() - began, 1)
        own["next_seed"] = seeds.stop
        record["failures"] += failures
        save(results, record)
        print(f"{part} {seeds.stop:,}: {own['counts']}", flush=True)


def load(results: Path) -> dict[str, Any]:
    """Return the results so far."""
    if not results.exists():
        return {"parts": {}, "failures": []}
    record: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    return record


def save(results: Path, record: dict[str, Any]) -> None:
    """Write the results, complete or not at all."""
    results.parent.mkdir(parents=True, exist_ok=True)
    temporary = results.with_name(f".{results.name}.{os.getpid()}")
    text = json.dumps(record, indent=1).replace(f"{sys.base_prefix}/", "")  # in tracebacks
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(results)


if __name__ == "__main__":
    main()
