"""Shared by all studies: where results go, and what the machine was doing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def write(name: str, content: dict[str, Any]) -> None:
    """Write a result to results/, with its command, the load of the machine and the number of cores."""
    path = ROOT / "results" / f"{name}.json"
    given = [
        Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]
    ]  # the folder of a file is private
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *given])
    path.write_text(
        json.dumps(
            {"command": command, "load": os.getloadavg(), "cores": os.cpu_count(), **content},
            indent=1,
        )
    )
    print(f"written to {path.relative_to(ROOT)}")
