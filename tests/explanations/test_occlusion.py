"""Occlusion of a whole classifier: every member and every kind of network predicts as on the changed graph."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import everynode as en
from everynode.datasets import generate
from everynode.evaluation.contrast import with_contrast
from everynode.explanations.changes import Change
from everynode.explanations.occlusion import Occlusion
from everynode.graph import Graph
from everynode.graph.preparation import fit_preparation
from everynode.selection.candidate import Candidate
from everynode.selection.portfolio_ensemble import Member, PortfolioEnsemble
from everynode.settings import Settings
from everynode.training import train

NODE = 9
#: The shift of the classes of the ensemble.
SHIFT = (0.0, 0.3, -0.2)
#: The contrast of its mean.
CONTRAST = 0.4
#: A member of every kind, with the preparations that suit it.
MEMBERS = {
    "logistic": "standardize", "logistic_hops": "raw", "boosting": "standardize", "boosting_hops": "quantile",
    "label_propagation": "raw", "gprgnn": "standardize", "appnp": "row", "gcn": "row", "sage": "structure",
    "mlp": "standardize", "resgcn": "raw", "dirsage": "raw", "sgc": "raw",
}  # fmt: skip


@pytest.fixture(scope="module")
def drawn() -> Graph:
    return generate(150, 300, 6, 3, seed=2)


def fitted(graph: Graph) -> en.NodeClassifier:
    """A classifier whose ensemble has a member of every kind."""
    model = en.NodeClassifier(objective="ce", settings={"epochs": 2}, verbose=False).fit(graph)
    members = []
    for place, (name, preparation) in enumerate(MEMBERS.items()):
        settings = Settings(backbone=name, hidden_channels=8, epochs=15).for_objective("ce")
        prepared = fit_preparation(preparation, graph.features)
        results = tuple(
            dataclasses.replace(train(prepared.apply(graph), settings, seed=seed), fold=seed)
            for seed in (0, 1)
        )
        candidate = Candidate(name, settings, preparation, "both")
        members.append(Member(candidate, prepared, results, 1 + place / 10, 1 + place % 3))
    model.ensemble_ = PortfolioEnsemble(
        tuple(members), graph.num_nodes, graph.num_features, SHIFT, CONTRAST
    )
    model.temperature_ = 1.3
    return model


def changed(graph: Graph, change: Change, neutral: np.ndarray) -> Graph:
    features = graph.dense_features.clone()
    for i in change.features:
        features[NODE, i] = float(neutral[i])
    stay = [not set(change.removed) & set(pair) for pair in graph.edges.T.tolist()]
    return Graph.from_arrays(
        features, graph.edges[:, stay], graph.labels, classes=graph.classes, splits=graph.splits
    )


def test_every_member_predicts_as_on_the_changed_graph(drawn):
    model = fitted(drawn)
    occlusion = Occlusion(model, drawn)
    near = int(occlusion.surroundings.neighbors(np.array([NODE]))[0])
    changes = [Change(), Change((0, 3)), Change(removed=(near,)), Change((1,), (NODE,))]
    found = occlusion.probabilities(NODE, changes)
    np.testing.assert_allclose(found[0], model.predict_proba(drawn)[NODE], atol=1e-6)
    for row, change in zip(found, changes, strict=True):
        whole = changed(drawn, change, occlusion.surroundings.neutral)
        each = []
        for member in model.ensemble_.members:
            prepared = member.preparation.apply(whole)
            if member.preparation.name == "structure":  # kept, as the docstring says
                prepared = whole.with_features(member.preparation.apply(drawn).features)
            each.append(np.exp(member.log_probabilities(prepared, None)[NODE].numpy()))
        weights = np.array([member.weight for member in model.ensemble_.members])
        mean = (weights[:, None] * each).sum(0) / weights.sum()
        log_mean = with_contrast(torch.from_numpy(np.log(mean))[None], CONTRAST)[0].numpy()
        expected = np.exp((log_mean + SHIFT) / 1.3)
        np.testing.assert_allclose(row, expected / expected.sum(), atol=2e-6)
    assert np.abs(found[1:] - found[0]).max(1).min() > 1e-4


def test_a_single_model_and_a_module_of_pyg_are_occluded_too(drawn):
    from torch_geometric.nn import GCN

    for backbone in ("gat", GCN):
        settings = {"epochs": 5, "hidden_channels": 8, "num_layers": 2, "n_estimators": 2}
        if backbone is GCN:
            settings = {"epochs": 5}
        model = en.NodeClassifier(
            backbone if isinstance(backbone, str) else _Module,
            "ce",
            settings=settings,
            verbose=False,
        ).fit(drawn)
        found = Occlusion(model, drawn).probabilities(NODE, [Change(), Change(removed=(NODE,))])
        np.testing.assert_allclose(found[0], model.predict_proba(drawn)[NODE], atol=1e-6)
        alone = changed(drawn, Change(removed=(NODE,)), np.zeros(6))
        np.testing.assert_allclose(found[1], model.predict_proba(alone)[NODE], atol=1e-6)


def _module() -> type:
    from torch import nn
    from torch_geometric.nn import GCNConv

    class Module(nn.Module):
        def __init__(self, num_features: int, num_classes: int):
            super().__init__()
            self.conv = GCNConv(num_features, num_classes)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    return Module


_Module = _module()
