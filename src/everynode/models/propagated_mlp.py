"""The base of models that apply an MLP to each node and then propagate its predictions."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from everynode.graph import Graph
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import Propagation, full_graph_only
from everynode.models.mlp import MLP
from everynode.models.receptive_field import Batch
from everynode.sparse import SparseMatrix

#: The nodes of a large graph that the MLP computes at once.
ROWS = 32768


class PropagatedMLP(MLP):
    r"""An MLP with propagated logits; a subclass implements :meth:`spread`.

    The logits have one column per class, which makes propagation cheap. The model trains on
    the full batch only.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    **options
        See :class:`~everynode.models.mlp.MLP`.
    """

    num_hops = None

    def spread(self, z: Tensor, propagate: Propagation) -> Tensor:
        """Return the logits from those of the MLP; linear in ``z``."""
        return z

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the propagated logits."""
        return self.spread(self.own_logits(x), hops)

    def own_logits(self, x: SparseMatrix | Tensor) -> Tensor:
        """Return the logits of the MLP.

        On a large graph, a block of rows at a time: its hidden values are computed again for the
        gradient, instead of kept.
        """
        n = x.shape[0]
        if torch.compiler.is_exporting() or n <= ROWS:
            return super().compute(x, None)
        own, logits = super().compute, []
        for start in range(0, n, ROWS):
            end = min(start + ROWS, n)
            if isinstance(x, Tensor):
                part: SparseMatrix | Tensor = x[start:end]
            else:
                part = x.rows(torch.arange(start, end, device=x.values.device))[0]
            keep = not (self.training and torch.is_grad_enabled())
            logits.append(
                own(part, None) if keep else checkpoint(own, part, None, use_reentrant=False)
            )
        return torch.cat(logits)

    def hops_of(self, graph: Graph | Batch) -> Propagation:
        r"""Return the product with :math:`\tilde P`."""
        return full_graph_only(self, graph).gcn_operator.__matmul__

    def plain_hops(self, edges: EdgeList) -> Propagation:
        """Return the same product in plain torch operations."""
        return partial(edges.propagate, edges.gcn_weight())
