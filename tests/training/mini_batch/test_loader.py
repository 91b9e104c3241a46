"""PyG's loader with everynode's sampler, and the objective on its batches for a model of one's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GCN, GraphSAGE

from everynode import ENC, NeighborLoader, UsageError
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.objectives import CrossValidatingGradients


def make_model(graph, kind=GCN):
    torch.manual_seed(0)
    return kind(graph.num_features, 8, num_layers=2, out_channels=graph.num_classes).double()


def dense(graph):
    return graph.features if isinstance(graph.features, torch.Tensor) else graph.features.to_dense()


def test_a_batch_is_what_a_user_of_pyg_expects(graph):
    loader = NeighborLoader(graph, [3, 2], batch_size=16, tv_edges=1)
    assert isinstance(loader, NodeLoader)
    edges = set(map(tuple, graph.to_pyg().edge_index.T.tolist()))
    epoch = list(loader)
    assert len(epoch) == len(loader) == 2
    for batch in epoch:
        batch.validate()
        assert torch.equal(batch.x, dense(graph)[batch.n_id])
        assert torch.equal(batch.y, graph.labels[batch.n_id])
        assert torch.equal(batch.n_id[: batch.batch_size], batch.input_id), "the seeds come first"
        assert len(set(batch.n_id.tolist())) == batch.num_nodes == sum(batch.num_sampled_nodes)
        assert set(map(tuple, batch.n_id[batch.edge_index].T.tolist())) <= edges
        assert torch.bincount(batch.edge_index[1]).max() <= 3
    seen = torch.cat([batch.input_id for batch in epoch]).tolist()
    assert set(graph.nodes("train").tolist()) <= set(seen), (
        "an epoch goes through the training nodes"
    )
    assert len(set(seen)) == len(seen)


def test_all_neighbors_give_the_logits_of_the_whole_graph(make_graph):
    graph = make_graph()
    model, data = make_model(graph).eval(), graph.to_pyg()
    expected = model(data.x, data.edge_index)
    for batch in NeighborLoader(
        graph, [-1, -1, -1], batch_size=10
    ):  # a hop more than layers: GCN looks at its neighbors' degrees
        found = model(batch.x, batch.edge_index)
        torch.testing.assert_close(
            found[: batch.batch_size], expected[batch.input_id], rtol=1e-10, atol=1e-12
        )


def test_the_weights_make_up_for_the_neighbors_that_were_not_drawn(make_graph):
    graph = make_graph(weighted=True)
    degree = torch.from_numpy(graph.neighbors.looped_degree) - 1.0
    mean = torch.zeros(graph.num_nodes, dtype=torch.float64)
    times = torch.zeros(graph.num_nodes, dtype=torch.float64)
    loader = NeighborLoader(graph, [2], batch_size=60, tv_edges=0)
    for _ in range(300):
        for batch in loader:
            sums = torch.zeros(batch.num_nodes, dtype=torch.float64).index_add_(
                0, batch.edge_index[1], batch.edge_weight
            )
            mean[batch.input_id] += sums[: batch.batch_size]
            times[batch.input_id] += 1
    assert times.min() > 0
    assert (mean / times - degree).abs().max() < 0.15 * degree.max()


@pytest.mark.parametrize("halves", ["stratified", "fixed"])
def test_a_batch_with_all_nodes_has_the_objective_of_the_whole_graph(graph, halves):
    """All four terms and their gradient, for a model that knows nothing of everynode."""
    model, data = make_model(graph, GraphSAGE), graph.to_pyg()
    options = {"mi": 0.7, "tv": 2.0, "cvg": 0.6, "mi_lambda": 1.5, "halves": halves}
    whole = ENC(graph, seed=3, **options)
    expected = torch.autograd.grad(
        whole(model(data.x, data.edge_index), model), list(model.parameters())
    )
    objective = ENC(graph, seed=3, **options)
    (batch,) = NeighborLoader(graph, [-1, -1], batch_size=graph.num_nodes, tv_edges=-1)
    wanted = (
        CrossValidatingGradients(halves=halves)
        .bind(graph, seed=3)
        .partition(Sample.of_graph(graph, 0))
    )
    objective.terms["cvg"]._positions = lambda sample: tuple(
        torch.isin(sample.all_labeled, half).nonzero()[:, 0] for half in wanted
    )
    loss = objective(model(batch.x, batch.edge_index), model, batch)
    for found, correct in zip(
        torch.autograd.grad(loss, list(model.parameters())), expected, strict=True
    ):
        torch.testing.assert_close(found, correct, rtol=1e-8, atol=1e-11)
    assert max(g.abs().max() for g in expected) > 1e-3


def test_the_same_batches_again_and_with_workers(make_graph):
    graph = make_graph()

    def drawn(**options):
        loader = NeighborLoader(graph, [2, 2], batch_size=12, seed=4, **options)
        return [
            (batch.n_id.tolist(), batch.edge_index.tolist()) for _ in range(2) for batch in loader
        ]

    first = drawn()
    assert drawn() == first == drawn(num_workers=2)
    assert first[: len(first) // 2] != first[len(first) // 2 :], "another epoch, other batches"


def test_a_graph_on_disk(make_graph, tmp_path):
    graph = make_graph()
    split = graph.splits[0]
    edges = graph.to_pyg().edge_index.numpy()
    disk = DiskGraph.write(
        tmp_path / "g", graph.features.float().numpy(), edges, graph.labels.numpy(), split=(split.train, split.val, split.test),
        classes=range(4), name="g",
    )  # fmt: skip
    torch.manual_seed(0)
    model = GraphSAGE(graph.num_features, 8, num_layers=2, out_channels=4)
    objective, optimizer = ENC(disk), torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        for batch in NeighborLoader(disk, [5, 5], batch_size=40, clusters=None):
            loss = objective(model(batch.x, batch.edge_index), model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])


def test_a_pass_or_two(make_graph):
    graph = make_graph()
    (batch, *_) = NeighborLoader(graph, [2], batch_size=10)
    model = make_model(graph)
    once = model(batch.x, batch.edge_index)
    assert (ENC(graph).passes, ENC(graph, consistency=1.0).passes) == (1, 2)
    torch.testing.assert_close(
        ENC(graph, seed=1)([once], model, batch), ENC(graph, seed=1)(once, model, batch)
    )
    assert torch.isfinite(
        ENC(graph, consistency=1.0)((once, model(batch.x, batch.edge_index)), model, batch)
    )
    with pytest.raises(UsageError, match="Got one"):
        ENC(graph, consistency=1.0)(once, model, batch)
    with pytest.raises(UsageError, match="at least one pass"):
        ENC(graph)([], model, batch)
    with pytest.raises(UsageError, match="The 'consistency' of ENC"):
        ENC(graph, consistency=-1.0)


def test_wrong_logits_are_refused(make_graph):
    graph = make_graph()
    (batch, *_) = NeighborLoader(graph, [2], batch_size=10)
    with pytest.raises(UsageError, match="needs the logits of the batch's first"):
        ENC(graph)(torch.zeros(3, 4), make_model(graph), batch)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"input_nodes": torch.arange(3)},
            "chooses the seeds of a step itself: leave out input_nodes",
        ),
        ({"shuffle": True, "drop_last": True}, "leave out drop_last, shuffle"),
        ({"num_neighbors": []}, "num_neighbors"),
        ({"num_neighbors": [-7]}, "num_neighbors"),
        ({"batch_size": 1}, "batch_size"),
        ({"clusters": -1}, "clusters"),
    ],
)
def test_what_the_loader_cannot_do_is_refused_in_a_sentence(make_graph, options, says):
    with pytest.raises(UsageError, match=says):
        NeighborLoader(make_graph(), **{"num_neighbors": [2]} | options)
    with pytest.raises(UsageError, match="not a Data"):
        NeighborLoader(make_graph().to_pyg(), [2])


@pytest.mark.parametrize("clusters", [None, 3])
def test_every_epoch_draws_anew_and_an_epoch_can_be_chosen(make_graph, clusters):
    """Also where the seeds are the same in every epoch."""
    graph = make_graph(n=90)
    loader = NeighborLoader(graph, [2, 2], batch_size=30, clusters=clusters)

    def epoch():
        return sorted(
            (
                sorted(batch.n_id.tolist()),
                sorted(map(tuple, batch.n_id[batch.edge_index].T.tolist())),
            )
            for batch in loader
        )

    first, second = epoch(), epoch()
    assert first != second
    loader.set_epoch(0)
    assert epoch() == first


def test_the_layers_may_leave_out_what_they_do_not_need(make_graph):
    """PyG's trimming: the logits of the nodes that were found last are not computed."""
    graph = make_graph()
    model, objective = make_model(graph, GraphSAGE), ENC(graph, cvg=0.0)
    (batch, *_) = NeighborLoader(graph, [2, 2], batch_size=10)
    whole = model(batch.x, batch.edge_index)
    hops = {
        "num_sampled_nodes_per_hop": batch.num_sampled_nodes,
        "num_sampled_edges_per_hop": batch.num_sampled_edges,
    }
    trimmed = model(batch.x, batch.edge_index, **hops)
    assert len(trimmed) < len(whole)
    first = objective(trimmed, model, batch).item()
    assert first == pytest.approx(ENC(graph, cvg=0.0)(whole, model, batch).item(), rel=1e-10)
