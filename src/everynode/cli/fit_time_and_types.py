"""What ``everynode fit`` does with a split by time and with types of link, before the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everynode.graph import Graph


def time_and_types(graph: Graph, split_by: str | None, seed: int) -> tuple[Graph, list[str]]:
    """Return the graph with weights for its types of link, and sentences on time and types."""
    notes = []
    if graph.edge_types is not None and graph.edge_types.weights is None:
        import torch

        from everynode.evaluation.edge_type_weights import learn_edge_types

        nodes = torch.cat([graph.nodes(part) for part in ("train", "val")])
        found = learn_edge_types(graph, nodes, seed=seed)
        graph = found.graph
        notes.append(found.sentence)
    if split_by is not None:
        from everynode.evaluation.time_split import check_time_split

        if graph.summary is not None:
            notes.append(f"Split by time: {graph.summary.time_split}.")
        notes.append(check_time_split(graph, seed=seed).sentence)
    return graph, notes
