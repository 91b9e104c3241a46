"""Export of the ensemble."""

from __future__ import annotations

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import UsageError
from everynode.selection.candidate import Candidate
from everynode.selection.portfolio import run_portfolio
from everynode.selection.portfolio_ensemble import select
from everynode.selection.portfolio_export import PORTABLE, PortableEnsemble
from everynode.settings import Settings


def ensemble(preparation: str, backbones: tuple[str, ...] = ("gcn", "appnp")):
    graph = generate(80, 240, 6, 3, seed=0)
    quick = {"hidden_channels": 8, "epochs": 10, "monitor": "loss"}
    candidates = [
        Candidate(name, Settings(**quick, backbone=name).for_objective("ce"), preparation, "both")
        for name in backbones
    ]
    return graph, select(run_portfolio(graph, candidates, folds=[0], seeds=2)).ensemble


@pytest.mark.parametrize(
    ("preparation", "backbones"),
    [("raw", ("gcn", "appnp")), *((name, ("gcn",)) for name in PORTABLE if name != "raw")],
)
def test_the_program_predicts_as_the_ensemble(preparation, backbones, tmp_path):
    graph, fitted = ensemble(preparation, backbones)
    PortableEnsemble(fitted, 1.3).export(tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2").module()
    for other in (graph, generate(50, 90, 6, 3, seed=1)):
        weight = torch.ones(other.edge_index.shape[1])
        found = program(other.dense_features, other.edge_index, weight)
        expected = torch.softmax(fitted.log_probabilities(other) / 1.3, dim=1)
        torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-3)


def test_a_member_that_cannot_be_exported_is_named(tmp_path):
    _, fitted = ensemble("quantile")
    with pytest.raises(UsageError, match=r"member (gcn|appnp) prepares features by quantile"):
        PortableEnsemble(fitted)
