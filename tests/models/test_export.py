"""An exported network gives the probabilities of the classifier it came from, on any graph, without everynode."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from everynode import Graph, NodeClassifier
from everynode.models import Network
from everynode.models.export import Portable
from everynode.models.layer import brings
from everynode.models.names import MODELS, model_class

#: The networks with derivatives and export; a new model of another kind has tests of its own.
SMALL = {"hidden_channels": 6, "epochs": 8}
NETWORKS = [
    name
    for name in MODELS
    if issubclass(model_class(name), Network) and brings(model_class(name).layer, "derivatives")
]

LOAD = """
import sys, torch
program = torch.export.load("net.pt2").module()
x, arcs, weight, expected = torch.load("inputs.pt", weights_only=True)
print((program(x, arcs, weight) - expected).abs().max().item())
assert not [name for name in sys.modules if name.startswith("everynode")]
"""


def make(n: int, *, weighted: bool, directed: bool, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    x = rng.random((n, 7)) * (rng.random((n, 7)) < 0.5)
    edges = rng.integers(0, n - 2, (2, 3 * n))  # the last two have no neighbors
    weight = rng.uniform(0.2, 3.0, 3 * n) if weighted else None
    return Graph.from_arrays(x, edges, np.arange(n) % 3, edge_weight=weight, directed=directed)


def inputs(graph: Graph) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    arcs, weight = graph.edge_index, graph.edge_weight
    return (
        graph.dense_features,
        arcs,
        torch.ones(arcs.shape[1]) if weight is None else weight.float(),
    )


@pytest.mark.parametrize("backbone", NETWORKS)
@pytest.mark.parametrize(
    ("weighted", "directed", "normalize_features"),
    [(False, False, False), (True, False, True), (True, True, False)],
)
def test_plain_operations_give_the_same(backbone, weighted, directed, normalize_features):
    graph = make(40, weighted=weighted, directed=directed)
    model = NodeClassifier(
        backbone,
        "ce",
        settings=SMALL | {"num_layers": 3, "normalize_features": normalize_features},
        verbose=False,
    ).fit(graph)
    with torch.no_grad():
        found = Portable(model.networks_, model.temperature_)(*inputs(graph))
    assert found.numpy() == pytest.approx(model.predict_proba(graph), abs=2e-6)


def test_exported_it_predicts_another_graph_without_everynode(tmp_path):
    graph, other = (
        make(40, weighted=True, directed=False),
        make(91, weighted=True, directed=False, seed=1),
    )
    model = NodeClassifier("gat", "ce", settings=SMALL, verbose=False).fit(graph)
    model.export(tmp_path / "net.pt2")
    torch.save(
        (*inputs(other), torch.from_numpy(model.predict_proba(other)).float()),
        tmp_path / "inputs.pt",
    )
    done = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2e-6
    for backbone in ("gcn", "gcnii"):
        other_model = NodeClassifier(
            backbone, "ce", settings=SMALL | {"num_layers": 2}, verbose=False
        ).fit(graph)
        other_model.export(tmp_path / "more.pt2")
        found = torch.export.load(tmp_path / "more.pt2").module()(*inputs(other))
        assert found.detach().numpy() == pytest.approx(other_model.predict_proba(other), abs=2e-6)
