"""A graph on which a run takes milliseconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch

from everynode.experiments.run_spec import Run
from everynode.graph import Graph, Split
from everynode.settings import Settings


@pytest.fixture(scope="session")
def graph() -> Graph:
    rng = np.random.default_rng(0)
    n = 60
    first, second = (
        Split(*(p.sort().values for p in torch.from_numpy(rng.permutation(n)).split([15, 20, 25]))) for _ in range(2)
    )  # fmt: skip
    return Graph.from_arrays(
        rng.normal(size=(n, 5)),
        rng.integers(0, n, (2, 3 * n)),
        np.arange(n) % 3,
        splits=[first, second],
    )


@pytest.fixture(scope="session")
def make_run(graph: Graph) -> Callable[..., Run]:
    """A short run on that graph; keywords change a field of the run, or else a setting."""

    def make(seed: int = 0, objective: str = "enc", **changes: object) -> Run:
        of_run = {f.name: changes.pop(f.name) for f in dataclasses.fields(Run) if f.name in changes}
        settings = dataclasses.replace(
            Settings(hidden_channels=8, epochs=4), **changes
        ).for_objective(objective)
        return dataclasses.replace(
            Run("toy", graph.digest, "public", 0, seed, "default", objective, settings), **of_run
        )

    return make
