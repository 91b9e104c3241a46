"""GraphMix's network: a GCN whose weights also work as an MLP (Verma et al. 2021)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.models.model import input_features
from everynode.models.plain_gcn import PlainGCN


class GraphMix(PlainGCN):
    r"""A GCN that shares its weights with an MLP, which mixes the hidden values of two nodes.

    From `GraphMix: Improved Training of GNNs for Semi-Supervised Learning
    <https://arxiv.org/abs/1909.11715>`_. The logits are those of
    :class:`~everynode.models.plain_gcn.PlainGCN`. For the term ``graphmix``
    (:class:`~everynode.objectives.graph_mix.GraphMixLoss`), the same weights without the edges are

    .. math:: h_i = \mathrm{ReLU}(x_i W^{(0)} + b^{(0)}), \qquad
              m_i = \lambda h_i + (1 - \lambda) h_{\pi(i)}, \qquad
              z_i = m_i W^{(1)} + b^{(1)}

    with a permutation :math:`\pi` of the nodes. Further layers follow with ReLU between them. The
    authors' settings: 2 layers of 16 channels, dropout 0.5 on the features and none in the network,
    learning rate 0.01, weight decay 5e-4, 2000 epochs.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    **options
        See :class:`~everynode.models.plain_gcn.PlainGCN`.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> graph, model = generate(20, 40, 8, 3), GraphMix(8, 3, hidden_channels=16)
    >>> model.mixed(graph, torch.tensor([3, 5]), torch.tensor([1, 0]), 0.7).shape
    torch.Size([2, 3])
    """

    def mixed(self, graph: Graph, nodes: Tensor, order: Tensor, share: float) -> Tensor:
        r"""Return the logits of the MLP for mixtures of pairs of nodes.

        Parameters
        ----------
        graph : Graph
            The graph. Only its features count.
        nodes : Tensor
            The nodes, as indices.
        order : Tensor
            :math:`\pi`, as positions in ``nodes``.
        share : float
            :math:`\lambda`.
        """
        layers: Any = self.layers
        first, *others = layers
        x = input_features(graph, self.normalize_features)
        x = x.index_select(0, nodes) if isinstance(x, Tensor) else x.rows(nodes)[0]
        h = first(self.drop_features(x))
        for place, layer in enumerate(others):
            h = torch.relu(h)
            if place == 0:
                h = share * h + (1 - share) * h[order]
            h = layer(self.drop(h, self.layer_dropout))
        return h
