"""Small races: a graph and candidates that train in a moment."""

from __future__ import annotations

import numpy as np
import torch

from everynode import Graph, Split
from everynode.selection.candidate import Candidate
from everynode.settings import Settings


def candidate(
    name: str, uses: str = "both", preparation: str = "standardize", **settings: object
) -> Candidate:
    """Return a candidate that trains in a moment."""
    quick = {"hidden_channels": 8, "epochs": 20, "monitor": "loss", "lr": 0.03, "lr_gnn": 0.03}
    chosen = Settings(**quick | settings).for_objective("ce")
    return Candidate(name, chosen, preparation, uses)


CANDIDATES = [
    candidate("gcn"),
    candidate("mlp", "features", backbone="mlp"),
    candidate("appnp", backbone="appnp"),
    candidate("blind", lr=1e-6, lr_gnn=1e-6),
    candidate("blinder", lr=1e-7, lr_gnn=1e-7),
]


def race_graph() -> Graph:
    """Return 90 nodes of three classes, and three folds of 60 of them."""
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    x = np.eye(3)[labels] @ rng.normal(size=(3, 6)) + 0.5 * rng.normal(size=(90, 6))
    source = rng.integers(0, 90, 270)
    target = (source + 3 * rng.integers(1, 30, 270)) % 90
    nodes = torch.from_numpy(rng.permutation(60))
    folds = [
        Split(nodes[torch.arange(60) % 3 != k].sort().values, nodes[k::3].sort().values, torch.arange(60, 90))
        for k in range(3)
    ]  # fmt: skip
    return Graph.from_arrays(x.astype(np.float32), np.stack([source, target]), labels, splits=folds)
