"""Should the default estimate the class shares of the unlabeled nodes, and how far should it trust the estimate?

    python benchmarks/unseen_shares.py STORE

Replays the ensemble of every finished cell of unseen.py from the stored logits: no training. The prior around the class
shares among the labels gets several weights; "none" keeps these shares. Each half of the graphs chooses the weight with
the lowest mean log-loss on the test nodes of its cells, and the other half reports it. Related graphs are in one half.
Writes results/unseen-class-shares.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import ROOT
from everynode.selection import class_shares
from unseen import GRAPHS
from unseen_replay import Replay

#: Weights of the prior; None: no estimate.
PRIORS = (None, 1.0, 0.5, 0.3, 0.1)
#: The first half of the graphs. Web pages, streamers and citations stay together.
FIRST = ("texas", "cornell", "wisconsin", "twitch-engb", "twitch-es", "amazon-photo", "actor", "blogcatalog")  # fmt: skip
REGIMES = ("5", "20", "48%")


def replay(store: Path) -> list[dict[str, Any]]:
    """Return log-loss and regret of every cell under every prior."""
    rows, shipped = [], class_shares.PRIOR
    for path in sorted(store.glob("*.json")):
        cell = json.loads(path.read_text())["cell"]
        if cell["regime"] not in REGIMES:
            continue
        stored = Replay.read(path)
        scores = []
        for prior in PRIORS:
            class_shares.PRIOR = shipped if prior is None else prior
            scores.append([round(float(x), 5) for x in stored.scores(shift=prior is not None)])
        rows.append({**cell, "scores": scores})
    class_shares.PRIOR = shipped
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of each prior by half and regime, over graphs, and what each half chooses."""
    halves = FIRST, tuple(name for name in GRAPHS if name not in FIRST)
    means, cells = [], []
    for half in halves:
        of_regime = {}
        for regime in REGIMES:
            of = [row for row in rows if row["graph"] in half and row["regime"] == regime]
            graphs = sorted({row["graph"] for row in of})
            if graphs:
                by_graph = [
                    np.mean([row["scores"] for row in of if row["graph"] == name], 0)
                    for name in graphs
                ]
                of_regime[regime] = np.mean(by_graph, 0).round(5).tolist()
        means.append(of_regime)
        cells.append(sum(row["graph"] in half for row in rows))
    chosen = [
        PRIORS[int(np.mean([np.array(s)[:, 0] for s in of.values()], 0).argmin())] if of else None
        for of in means
    ]
    names = [[n for n in half if any(row["graph"] == n for row in rows)] for half in halves]
    return {"priors": PRIORS, "graphs": names, "cells": cells, "means": means, "chosen": chosen}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    store = parser.parse_args().store
    torch.set_num_threads(1)
    rows = replay(store)
    report = {"command": "python benchmarks/unseen_shares.py STORE", **summary(rows), "rows": rows}
    path = ROOT / "results" / "unseen-class-shares.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    for half, chosen in zip(report["means"], report["chosen"], strict=True):
        print(f"chosen: {chosen}")
        for regime, scores in half.items():
            print(f"  {regime:4}", *(f"{p}: {a:.3f} {b:+.1f};" for p, (a, b) in zip(PRIORS, scores, strict=True)))  # fmt: skip


if __name__ == "__main__":
    main()
