"""The baselines of the benchmark: the same training in PyG, written with care.

``GCNConv(cached=True)``, ``GATConv``, ``GCN2Conv(cached=True)``, torch's dropout and Adam, the TV
gate computed once, and autograd for CVG. The architecture is the paper's, with the same widths and
dropout as everynode's side. The features are dense; or, as an expert would have them, sparse, and
the adjacency too (CSR) where PyG's layer can be differentiated twice with it: in all but GAT.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCN2Conv, GCNConv
from torch_geometric.utils import degree

Dropout = Callable[[Tensor, float, bool], Tensor]


class StockNetwork(nn.Module):
    """Opening layer, L PyG layers, closing layer.

    Parameters
    ----------
    in_channels, classes : int
        Input columns and classes.
    backbone : str
        gcn, gat or gcnii.
    num_layers, hidden_channels : int
        Depth and width.
    p : float
        Dropout on the input and before the closing layer.
    alpha, theta : float
        The options of PyG's ``GCN2Conv``.

    Attributes
    ----------
    opening, closing : nn.Linear
        The linear layers.
    convs : nn.ModuleList
        The PyG layers.
    initial_residual : bool
        Whether the layers read the opening features (GCNII).
    dropout : callable
        The function that drops, which a benchmark may replace.
    """

    def __init__(
        self,
        in_channels: int,
        classes: int,
        backbone: str,
        num_layers: int,
        hidden_channels: int,
        p: float,
        alpha: float,
        theta: float,
    ):
        super().__init__()
        self.opening = nn.Linear(in_channels, hidden_channels)
        self.closing = nn.Linear(hidden_channels, classes)
        self.p = p
        if backbone == "gcn":
            convs = [
                GCNConv(hidden_channels, hidden_channels, cached=True, bias=False)
                for _ in range(num_layers)
            ]
        elif backbone == "gat":
            convs = [
                GATConv(hidden_channels, hidden_channels, heads=1, bias=False)
                for _ in range(num_layers)
            ]
        else:
            convs = [
                GCN2Conv(hidden_channels, alpha=alpha, theta=theta, layer=i + 1, cached=True)
                for i in range(num_layers)
            ]
        self.convs = nn.ModuleList(convs)
        self.initial_residual = backbone == "gcnii"
        self.dropout: Dropout = F.dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return n x k logits."""
        x = x0 = self._open(x).relu()
        for conv in self.convs:
            x = (conv(x, x0, edge_index) if self.initial_residual else conv(x, edge_index)).relu()
        logits: Tensor = self.closing(self.dropout(x, self.p, self.training))
        return logits

    def _open(self, x: Tensor) -> Tensor:
        """Return the opening layer of dense or sparse (CSR) features."""
        if x.layout is torch.strided:
            opened: Tensor = self.opening(self.dropout(x, self.p, self.training))
            return opened
        values = self.dropout(x.values(), self.p, self.training)
        parts = x.crow_indices(), x.col_indices(), values, x.shape
        dropped = torch.sparse_csr_tensor(*parts, check_invariants=False)
        return dropped @ self.opening.weight.T + self.opening.bias


class StockObjective:
    r"""CE + a MI + b TV + c CVG, written from the paper's equations.

    Parameters
    ----------
    data : torch_geometric.data.Data
        The graph.
    sigma : float
        Feature distance at which total variation sees a boundary.
    lam : float
        Pull towards classes of equal size within mutual information.
    mi, tv, cvg : float
        The weights of the terms.

    Attributes
    ----------
    src, dst : Tensor
        The ends of each undirected edge, once.
    w : Tensor
        :math:`1 / \sqrt{d + 1}` of each node, n x 1.
    gate : Tensor
        The gate of total variation at each edge.
    train : Tensor
        The training nodes.
    """

    def __init__(self, data: Data, sigma: float, lam: float, mi: float, tv: float, cvg: float):
        self.data, self.lam, self.mi, self.tv, self.cvg = data, lam, mi, tv, cvg
        src, dst = data.edge_index
        once = src < dst
        self.src, self.dst = src[once], dst[once]
        self.w = (degree(src, data.num_nodes) + 1).rsqrt().unsqueeze(1)
        gate = [
            torch.exp(-(self.w[a] * data.x[a] - self.w[b] * data.x[b]).square().sum(1) / sigma)
            for a, b in zip(self.src.split(16384), self.dst.split(16384), strict=True)
        ]
        self.gate = torch.cat(gate)
        self.train = data.train_mask.nonzero().view(-1)

    def __call__(
        self, logits: Tensor, parameters: list[Tensor], halves: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return the total loss."""
        y = self.data.y
        loss = F.cross_entropy(logits[self.train], y[self.train])
        if self.mi or self.tv:
            p = logits.softmax(1)
        if self.mi:
            mean = p.mean(0)
            entropy = -(p * torch.log(p + 1e-12)).sum(1).mean()
            loss = loss + self.mi * (entropy + self.lam * (mean * torch.log(mean + 1e-12)).sum())
        if self.tv:
            difference = self.w[self.src] * p[self.src] - self.w[self.dst] * p[self.dst]
            loss = loss + self.tv * (difference.abs().sum(1) * self.gate).mean()
        if self.cvg:
            if halves is None:
                shuffled = self.train[torch.randperm(len(self.train))]
                halves = shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]
            flat = []
            for half in halves:
                grads = torch.autograd.grad(
                    F.cross_entropy(logits[half], y[half]), parameters, create_graph=True
                )
                flat.append(torch.cat([g.flatten() for g in grads]))
            loss = loss - self.cvg * F.cosine_similarity(flat[0], flat[1], dim=0)
        return loss
