"""Many fits in one process: memory does not grow."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

#: Growth in MB over the fits of one call, after the first ones.
LIMIT, WARM_UP = 20.0, 5


def memory(seeds: Iterable[int], failures: list[dict[str, Any]]) -> Counter[str]:
    """Fit and predict once for each seed; compare the memory after the first fits with the last."""
    outcomes: Counter[str] = Counter()
    sizes = []
    for seed in seeds:
        _fit(seed)
        sizes.append(resident_mb())
        outcomes["fits"] += 1
    warm = _grown[0] if _grown else sizes[min(WARM_UP, len(sizes) - 1)]
    _grown[:] = [warm]
    if sizes[-1] - warm > LIMIT:
        failures.append(
            {
                "part": "memory",
                "seed": list(seeds)[-1],
                "detail": f"from {warm:.0f} to {sizes[-1]:.0f} MB",
            }
        )
        outcomes["grown"] += 1
    return outcomes


#: The memory after the first fits of this process.
_grown: list[float] = []


def resident_mb() -> float:
    """Return the memory of this process, on Linux."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def _fit(seed: int) -> None:
    import everynode as en

    chance = np.random.default_rng(seed)
    labels = np.arange(60) % 3
    features = (chance.normal(size=(60, 8)) + labels[:, None]).astype(np.float32)
    edges = np.stack([np.arange(60), (np.arange(60) + 3) % 60])
    model = en.NodeClassifier("gcn", cv=2, settings={"epochs": 2}, n_jobs=1, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(features, labels, edge_index=edges).predict(features, edge_index=edges)
