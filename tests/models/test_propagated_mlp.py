"""The base of APPNP and GPRGNN."""

from __future__ import annotations

import pytest
import torch

from everynode.errors import UsageError
from everynode.models.appnp import APPNP
from everynode.models.mlp import MLP
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.training.mini_batch.sampler import Sampler


def test_without_a_spread_it_is_an_mlp(random_graph) -> None:
    graph = random_graph()
    ours, mlp = (cls(5, 3, seed=4).double().eval() for cls in (PropagatedMLP, MLP))
    torch.testing.assert_close(ours(graph), mlp(graph), rtol=0, atol=0)


def test_a_batch_is_refused(random_graph) -> None:
    import numpy as np

    batch = Sampler(random_graph()).batch(np.arange(3), [-1], np.random.default_rng(0))
    with pytest.raises(UsageError, match="APPNP trains on the full graph only"):
        APPNP(5, 3).double()(batch)
