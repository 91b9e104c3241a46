"""GCN-LPA against loops written from its equation, and its parameters for one graph's edges."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from everynode.datasets import generate
from everynode.errors import DataError, UsageError
from everynode.models.gcn_lpa import GCNLPA
from everynode.settings import Settings
from everynode.training import load_model, save_model, train


def make(graph, **options):
    model = GCNLPA(5, 3, hidden_channels=4, **options)
    model.prepare(graph)
    model = model.double().eval()
    with torch.no_grad():
        model.edge_scores.normal_()
    return model


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_it_is_the_equation(random_graph, layers: int) -> None:
    graph = random_graph(4)
    ours = make(graph, num_layers=layers)
    pattern = graph.looped_adjacency.pattern
    score = {}
    for e, place in enumerate(zip(pattern.row.tolist(), pattern.column.tolist(), strict=True)):
        score[place] = ours.edge_scores[e]
    near = {i: {i} for i in range(20)}
    for a, b in graph.edges.T.tolist():
        near[a].add(b)
        near[b].add(a)
    assert len(score) == sum(map(len, near.values()))
    with torch.no_grad():
        f = graph.features
        for depth, weight in enumerate(ours.weights):
            mapped, out = f @ weight, torch.zeros(20, weight.shape[1]).double()
            for i, others in near.items():
                total = sum(score[i, j].exp() for j in others)
                for j in others:
                    out[i] += score[i, j].exp() / total * mapped[j]
            f = out if depth == layers - 1 else torch.relu(out)
        torch.testing.assert_close(ours(graph), f)


def test_gradients_reach_every_parameter(random_graph) -> None:
    graph = random_graph(4)
    ours = make(graph)
    names = [name for name, _ in ours.named_parameters()]

    def logits(*values: torch.Tensor) -> torch.Tensor:
        pairs = dict(zip(names, values, strict=True))
        return torch.func.functional_call(ours, pairs, (graph,))

    parameters = tuple(p.detach().clone().requires_grad_() for p in ours.parameters())
    assert torch.autograd.gradcheck(logits, parameters)


def test_sparse_features_rows_and_dropout(random_graph) -> None:
    graph = random_graph(4, sparse=True)
    ours = make(graph)
    dense = graph.with_features(graph.dense_features)
    torch.testing.assert_close(ours(graph), ours(dense))
    nodes = torch.tensor([4, 0, 4])
    torch.testing.assert_close(ours(graph, nodes), ours(graph)[nodes])
    ours.train()
    assert not torch.equal(ours(graph), ours(graph))


def test_edges_start_alike(random_graph) -> None:
    graph = random_graph(4)
    model = GCNLPA(5, 3, seed=1)
    model.prepare(graph)
    again = GCNLPA(5, 3, seed=1)
    again.prepare(graph)
    assert torch.equal(model.edge_scores, again.edge_scores)
    assert 0 < model.edge_scores.abs().max() <= (6 / len(model.edge_scores)) ** 0.5


def test_edges_train_and_come_back_from_a_folder(tmp_path: Path) -> None:
    graph = generate(60, 120, 8, 3)
    settings = Settings(backbone="gcn_lpa", epochs=5, lpa=1.0).for_objective("lpa")
    result = train(graph, settings, seed=4)
    start = GCNLPA(8, 3, seed=4)
    start.prepare(graph)
    assert not torch.equal(start.edge_scores, result.network.edge_scores)
    save_model(tmp_path / "model", result)
    network, _ = load_model(tmp_path / "model")
    torch.testing.assert_close(network(graph), result.network(graph))


def test_other_graphs_and_export_are_refused(random_graph) -> None:
    graph = random_graph(4)
    ours = make(graph)
    other = random_graph(5)
    assert other.num_edges == graph.num_edges, "the number alone does not tell them apart"
    with pytest.raises(DataError, match=r"has other edges\. Use a model for new nodes"):
        ours(other)
    with pytest.raises(UsageError, match="cannot be exported"):
        ours.export(graph.features, graph.edge_index, torch.ones(graph.edge_index.shape[1]))
    assert not ours.for_new_nodes


def test_drop_edge_is_refused() -> None:
    settings = Settings(backbone="gcn_lpa", epochs=2, drop_edge=0.5).for_objective("ce")
    with pytest.raises(DataError, match="leave out drop_edge"):
        train(generate(60, 120, 8, 3), settings)
