"""Raw arrays of a reader become a checked graph."""

from __future__ import annotations

import numpy as np
import torch

from everynode.datasets.raw import Raw
from everynode.graph import Graph, Split


def test_raw_arrays_keep_loops_and_repeats_which_the_graph_drops():
    split = Split(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    raw = Raw(np.eye(3), np.array([[0, 0, 1], [1, 1, 1]]), np.array([0, 1, -1]), 2, split)
    graph = Graph.from_arrays(
        raw.features, raw.arcs, raw.labels, classes=range(raw.num_classes), splits=[raw.split]
    )
    assert raw.arcs.shape == (2, 3)
    assert graph.num_edges == 1
    assert (graph.repairs["self_loops"], graph.repairs["repeated_edges"]) == (1, 1)
    assert Raw(*raw[:4]).split is None
