"""How does Cora's GAT do with cross-entropy, seed by seed?

    python benchmarks/gat_seeds.py FIRST LAST > scores.json

Run it in an environment with the version of everynode in question; docs/archive/speed.md compares two versions.
"""

from __future__ import annotations

import json
import sys

import torch

from everynode.datasets import load
from everynode.settings import Settings
from everynode.training import evaluate, train


def main() -> None:
    torch.set_num_threads(1)
    graph = load("cora", "public")
    settings = Settings.preset(
        "default", graph="cora", split="public", backbone="gat"
    ).for_objective("ce")
    first, last = map(int, sys.argv[1:])
    found = {
        seed: evaluate(train(graph, settings, seed=seed).network, graph, "test")
        for seed in range(first, last + 1)
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
