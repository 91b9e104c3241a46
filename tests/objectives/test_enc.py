"""ENC: its options follow from the settings, and the gate of TV is paid once for a graph."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import torch

from everynode import ENC, Graph, Settings, Split, UsageError
from everynode.graph.disk_graph import DiskGraph
from everynode.objectives import CrossEntropy, TotalVariation

N, K = 20, 4


@pytest.fixture
def graph() -> Graph:
    rng = np.random.default_rng(0)
    nodes = torch.arange(N)
    splits = [Split(nodes[:8], nodes[8:14], nodes[14:]), Split(nodes[8:], nodes[:4], nodes[4:8])]
    return Graph.from_arrays(
        rng.normal(size=(N, 4)), rng.integers(0, N, (2, 40)), np.arange(N) % K, splits=splits
    )


def test_the_signature_has_every_setting_of_the_objective():
    parameters = inspect.signature(ENC).parameters
    own = {"graph", "terms", "fold", "seed"}
    options = {name: p.default for name, p in parameters.items() if name not in own}
    assert options == Settings().group("Objective") | {"tv": 0.5}  # of presets: 5, not safe
    assert own <= parameters.keys()
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name != "graph")


def test_an_unknown_option_is_refused_with_the_choices(graph):
    with pytest.raises(UsageError) as refused:
        ENC(graph, tv_sigm=3.0)
    sentence = str(refused.value)
    assert sentence.startswith("Unknown option of ENC 'tv_sigm' (did you mean 'tv_sigma'?). Choose")
    assert all(name in sentence for name in Settings().group("Objective"))


def test_the_settings_are_the_options(graph):
    options = {"mi": 0.7, "tv": 1.0, "tv_gate": "row", "tv_sigma": 2.0, "cvg": 0.0}
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0))
    found = ENC.from_settings(graph, Settings(**options), fold=1, seed=3)
    assert torch.equal(found(logits), ENC(graph, fold=1, seed=3, **options)(logits))
    assert found.weights == {"ce": 1.0, "mi": 0.7, "tv": 1.0}


def test_log_probabilities_are_logits_too(graph):
    """A loop with log_softmax and nll_loss changes in the same three lines."""
    model = torch.nn.Linear(4, K).double()
    logits = model(graph.dense_features.double())
    terms = [
        ENC(graph, mi=0.3, tv=0.5, cvg=0.5, seed=1).breakdown(outputs, model)
        for outputs in (logits, torch.log_softmax(logits, dim=1))
    ]
    for name in ("ce", "mi", "tv", "cvg", "total"):
        assert terms[0][name].item() == pytest.approx(terms[1][name].item(), rel=1e-5), name
    assert abs(terms[0]["cvg"].item()) > 0.01


def test_the_gate_is_computed_once_for_a_graph(graph, monkeypatch):
    """Whatever the fold, the seed and the weights."""
    calls = []
    module = importlib.import_module("everynode.objectives.total_variation")
    compute = module.squared_feature_gradient
    monkeypatch.setattr(
        module, "squared_feature_gradient", lambda *args: calls.append(args) or compute(*args)
    )
    logits = torch.zeros(N, K)
    for fold in range(2):
        for weight in (0.5, 1.0):
            ENC(graph, fold=fold, seed=fold, tv=weight, cvg=0)(logits)
            ENC(graph.with_splits(graph.splits[:1]), tv=weight, cvg=0)(logits)
    assert len(calls) == 1
    ENC(graph, tv_sigma=3.0, cvg=0)(logits)
    ENC(graph, tv_gate="row", cvg=0)(logits)
    assert len(calls) == 3
    ENC(graph, cvg=0)(logits.double())
    assert len(calls) == 3, "another type is converted, not computed again"


def test_a_cross_entropy_of_ones_own_takes_the_place_of_the_default(graph):
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0))
    plain = ENC(graph, tv=1.0, cvg=0).breakdown(logits)
    found = ENC(graph, tv=1.0, cvg=0, terms=[CrossEntropy(weight=0.5)]).breakdown(logits)
    torch.testing.assert_close(found["total"], plain["total"] - 0.5 * plain["ce"])


def test_terms_of_the_library_may_be_given_with_options(graph):
    logits = torch.randn(N, K, generator=torch.Generator().manual_seed(0))
    found = ENC(graph, tv=0, cvg=0, terms=[TotalVariation(1.5, sigma=2.0, gate="row")])
    assert torch.equal(
        found(logits), ENC(graph, tv=1.5, tv_sigma=2.0, tv_gate="row", cvg=0)(logits)
    )
    with pytest.raises(UsageError, match="two terms named 'tv'"):
        ENC(graph, terms=[TotalVariation()])


def test_a_batch_is_a_sample_or_has_one(graph):
    with pytest.raises(
        UsageError, match="must be a Sample or a batch of everynode's NeighborLoader"
    ):
        ENC(graph)(torch.zeros(N, K), batch=graph.to_pyg())


def test_a_graph_on_disk_needs_batches(graph, tmp_path):
    disk = DiskGraph.write(
        tmp_path, graph.features.numpy(), graph.undirected_edges[0], graph.labels,
        split=graph.splits[0], classes=range(K),
    )  # fmt: skip
    with pytest.raises(UsageError, match="The graph is on disk, so ENC needs a batch"):
        ENC(disk)(torch.zeros(N, K))
    with pytest.raises(UsageError, match="'preg' needs the predictions of every node at once"):
        ENC(disk, preg=1.0)


def test_a_weight_of_cvg_that_becomes_zero_leaves_a_number(graph):
    model = torch.nn.Linear(4, K)
    objective = ENC(graph, cvg=0.5)
    objective.weights["cvg"] = 0.0
    found = objective.breakdown(model(graph.features), model)
    assert found["cvg"].isfinite()
    assert found["total"].isfinite()
