"""GCN-LPA: a GCN with a learned weight for each edge of one graph (Wang and Leskovec 2020)."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from everynode.errors import DataError, UsageError
from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.gat import edge_softmax
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix, spmm


class GCNLPA(FeatureNetwork):
    r"""Graph convolutions with one free weight for each edge, normalized over each node.

    From `Unifying Graph Convolutional Neural Networks and Label Propagation
    <https://arxiv.org/abs/2002.06755>`_:

    .. math:: A^*_{ij} = \mathrm{softmax}_{j \in N_i \cup \{i\}}(a_{ij}), \qquad
              f^{(l+1)} = \mathrm{ReLU}(A^* f^{(l)} W^{(l)}), \qquad
              z = A^* f^{(L-1)} W^{(L-1)}

    :math:`f^{(0)}` are the features, and there are no biases. The term ``lpa``
    (:class:`~everynode.objectives.label_loss.LabelLoss`) trains the weights to propagate the
    labels. They belong to the edges of one graph, so the model cannot predict for another. The
    weights start near 0, all alike. The authors' settings (200 epochs): on Cora 5 layers of 32
    channels, dropout 0.2, learning rate 0.05, weight decay 1e-4, 5 steps, weight 10; on Citeseer 2
    layers of 16, 0, 0.2, 5e-4, 5 steps, weight 1; on Pubmed 2 of 32, 0, 0.1, 2e-4, 1 step,
    weight 1.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of convolutions.
    dropout : float
        Dropout on the features.
    layer_dropout : float
        Dropout before every further layer.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    weights : nn.ParameterList
        :math:`W^{(l)}` of each convolution.
    edge_scores : Parameter
        :math:`a`; empty before :meth:`prepare`.
    edges_seen : Tensor
        The number and a hash of these edges.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), GCNLPA(8, 3, hidden_channels=16)
    >>> model.prepare(graph)
    >>> model(graph).shape
    torch.Size([20, 3])
    """

    for_new_nodes = False
    edges_seen: Tensor

    def __init__(self, num_features: int, num_classes: int, *, seed: int = 0, **options: Any):
        super().__init__(num_features, num_classes, **options)
        self._generator = torch.Generator().manual_seed(seed)
        widths = [num_features, *[self.hidden_channels] * (self.num_layers - 1), num_classes]
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(*pair), generator=self._generator)
            for pair in pairwise(widths)
        )
        self.edge_scores = nn.Parameter(torch.empty(0))
        self.register_buffer("edges_seen", torch.zeros(2, dtype=torch.int64))

    def prepare(self, graph: Graph) -> None:
        """Draw a weight for each edge and self-loop of a graph."""
        entries = graph.looped_adjacency.pattern.nnz
        bound = (6.0 / entries) ** 0.5
        scores = torch.empty(entries).uniform_(-bound, bound, generator=self._generator)
        self.edge_scores = nn.Parameter(scores.to(self.edge_scores))
        self.edges_seen = _fingerprint(graph).to(self.edges_seen.device)

    def edge_weights(self, graph: Graph) -> Tensor:
        """Return :math:`A^*`, one value for each entry of the graph's looped adjacency."""
        return edge_softmax(self.edge_scores, graph.looped_adjacency.pattern)

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        first, *others = self.weights
        f = hops(self.drop_features(x) @ first)
        for weight in others:
            f = hops(self.drop(torch.relu(f), self.layer_dropout) @ weight)
        return f

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        """Return the product with :math:`A^*`."""
        graph = full_graph_only(self, graph)
        return partial(spmm, graph.looped_adjacency.pattern, self.edge_weights(graph))

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Refuse: see :meth:`check_export`."""
        raise NotImplementedError

    def check_export(self) -> None:
        """Refuse: the weights belong to the edges of one graph."""
        raise UsageError(
            "GCNLPA cannot be exported: its weights belong to the edges of one graph. Save the "
            "model instead."
        )

    def export(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Refuse: see :meth:`check_export`."""
        self.check_export()
        raise NotImplementedError

    def check_graph(self, graph: Graph | Batch) -> None:
        """Refuse a graph with other edges than the one it was made for."""
        super().check_graph(graph)
        seen = _fingerprint(full_graph_only(self, graph))
        if not torch.equal(seen, self.edges_seen.cpu()):
            raise DataError(
                f"GCN-LPA has a weight for each edge of one graph, but graph {graph.name!r} has "
                "other edges. Use a model for new nodes, and leave out drop_edge and replace_edges."
            )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Take the number of edges of the state before its values."""
        scores = state_dict.get(prefix + "edge_scores")
        if scores is not None and scores.shape != self.edge_scores.shape:
            empty = torch.empty_like(scores, dtype=self.edge_scores.dtype)
            self.edge_scores = nn.Parameter(empty.to(self.edge_scores.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _fingerprint(graph: Graph) -> Tensor:
    """Return the number and a hash of the places of the edges."""

    def compute() -> Tensor:
        pattern = graph.looped_adjacency.pattern
        codes = pattern.row.cpu() * graph.num_nodes + pattern.column.cpu()
        mixed = (codes % 1_000_003) * (torch.arange(len(codes)) % 999_983 + 1)
        return torch.stack([torch.tensor(pattern.nnz), (mixed % 2_147_483_647).sum()])

    found: Tensor = graph.cached("edge fingerprint", compute, of_structure=True)
    return found
