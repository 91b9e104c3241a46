"""Label propagation against PyG's."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn import LabelPropagation as Theirs

from everynode.datasets import generate
from everynode.errors import DataError
from everynode.models.label_propagation import SHARES, SMOOTHING, STEPS, LabelPropagation


def test_it_is_pygs(random_graph) -> None:
    graph = random_graph(2)
    train = graph.nodes("train")
    ours = LabelPropagation(5, 3).double()
    ours.solve(graph, train, stage=2)
    # PyG's has no self-loops, and cuts off at 0 and 1: these are added and never met here.
    loops = torch.arange(20).expand(2, -1)
    arcs = torch.cat([graph.edge_index, loops], dim=1)
    theirs = Theirs(num_layers=STEPS, alpha=SHARES[2])
    expected = theirs(graph.labels, arcs, mask=train).double()
    total = expected.sum(1, keepdim=True)
    expected = torch.where(total > 0, expected / total, 1 / 3)
    found = (ours(graph).exp() - SMOOTHING / 3) / (1 - SMOOTHING)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_another_graph_is_refused(random_graph) -> None:
    model, graph = LabelPropagation(5, 3).double(), random_graph()
    model.solve(graph, graph.nodes("train"))
    assert not model.for_new_nodes
    other = type(graph).from_arrays(torch.rand(7, 5).double(), [[0], [1]]).to(torch.float64)
    with pytest.raises(DataError, match="labels of a graph of 20 nodes"):
        model(other)


@pytest.mark.parametrize(
    ("name", "value"),
    [("seeds", 20), ("seeds", -1), ("seed_labels", 3), ("seed_labels", 2**40)],
)
def test_damaged_labels_of_a_loaded_model_are_refused(name, value):
    graph, model = generate(20, 40, 8, 3), LabelPropagation(8, 3)
    model.solve(graph, graph.nodes("train"))
    getattr(model, name)[0] = value
    with pytest.raises(DataError, match="do not belong to this graph"):
        model(graph)
