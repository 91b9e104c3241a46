"""MagNet: filters of a complex Laplacian that keeps the direction of arcs (Zhang et al. 2021)."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import scipy.sparse
import torch
from torch import Tensor, nn

from everynode.graph import Graph
from everynode.models.chebnet import ChebLayer
from everynode.models.edge_list import EdgeList
from everynode.models.feature_network import FeatureNetwork, Propagation, full_graph_only
from everynode.models.linear import Linear
from everynode.models.receptive_field import Batch
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class Phases(NamedTuple):
    r"""The products with the two parts of :math:`H = D_s^{-1/2} A_s D_s^{-1/2} \odot e^{i\Theta}`.

    Attributes
    ----------
    real, imaginary : callable
        The product with each part.
    """

    real: Propagation
    imaginary: Propagation


class MagNet(FeatureNetwork):
    r"""Layers of Chebyshev filters of the magnetic Laplacian, whose phases are the directions.

    From `MagNet: A Neural Network for Directed Graphs <https://arxiv.org/abs/2102.11391>`_:

    .. math:: f^{(l+1)} = \rho\Big(\sum_{t=0}^{K-1} T_t(\hat L) f^{(l)} W_t^{(l)} + b^{(l)}\Big),
              \qquad z = [\mathrm{Re} f^{(L)} \| \mathrm{Im} f^{(L)}]\, W + b

    .. math:: \hat L = -D_s^{-1/2} A_s D_s^{-1/2} \odot e^{i \Theta}, \qquad
              A_s = \tfrac12 (A + A^\top), \qquad \Theta = 2 \pi q (A - A^\top)

    :math:`f^{(0)} = x + 0 i`. :math:`T_t` are the Chebyshev polynomials, and the largest eigenvalue
    is taken to be 2. The bias is added to both parts, and :math:`\rho` keeps a number whose real
    part is at least 0. An undirected graph, or q = 0, leaves :class:`~everynode.models.chebnet.
    ChebNet` with a linear layer at the end. The authors' settings: 2 layers, K = 2 filters, dropout
    0.5 before the last layer, weight decay 5e-4; learning rate, width and q from a grid.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number L of layers.
    chebnet_filters : int
        Number K of filters in each layer.
    magnet_charge : float
        q, between 0 and 0.25.
    dropout : float
        Dropout on the features and before the last layer.
    layer_dropout : float
        Dropout before every further layer.
    seed : int
        Seed of the initial weights. Dropout follows ``torch.manual_seed``.
    **options
        See :class:`~everynode.models.feature_network.FeatureNetwork`.

    Attributes
    ----------
    layers : nn.ModuleList of ChebLayer
        The L layers.
    closing : Linear
        The last layer.
    charge : float
        ``magnet_charge``.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> MagNet(8, 3, hidden_channels=16)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        chebnet_filters: int = Settings.chebnet_filters,
        magnet_charge: float = Settings.magnet_charge,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, **options)
        check_settings("MagNet", chebnet_filters=chebnet_filters, magnet_charge=magnet_charge)
        self.charge = magnet_charge
        generator = torch.Generator().manual_seed(seed)
        widths = [num_features, *[self.hidden_channels] * self.num_layers]
        self.layers = nn.ModuleList(
            ChebLayer(inputs, outputs, chebnet_filters, generator=generator)
            for inputs, outputs in pairwise(widths)
        )
        self.closing = Linear(2 * self.hidden_channels, num_classes, generator=generator)

    def compute(self, x: SparseMatrix | Tensor, hops: Phases) -> Tensor:
        """Return the logits."""
        f: Tensor | SparseMatrix = self.drop_features(x)
        for place, layer in enumerate(self.layers):
            if place and isinstance(f, Tensor):
                f = self.drop(f, self.layer_dropout)
            f = _filtered(layer, f, hops, is_real=place == 0)
            half = f.shape[1] // 2
            f = f * (f[:, :half] >= 0).to(f).repeat(1, 2)
        assert isinstance(f, Tensor)
        logits: Tensor = self.closing(self.drop(f, self.dropout))
        return logits

    def hops_of(self, graph: Graph | Batch) -> Phases:
        """Return the products with the parts of H."""
        graph = full_graph_only(self, graph)
        key = "magnetic operator", self.charge
        parts = graph.cached(key, lambda: _operators(graph, self.charge), of_structure=True)
        return Phases(*(part.__matmul__ for part in parts))

    def plain_hops(self, edges: EdgeList) -> Phases:
        """Return the same products in plain torch operations."""
        entries = magnetic_entries(edges, self.charge)

        def times(values: Tensor, f: Tensor) -> Tensor:
            messages = values[:, None] * f[entries.column]
            return torch.zeros_like(f).index_add(0, entries.row, messages)

        return Phases(partial(times, entries.real), partial(times, entries.imaginary))


class Entries(NamedTuple):
    """The entries of a complex matrix.

    Attributes
    ----------
    row, column : Tensor
        Their places.
    real, imaginary : Tensor
        Their parts.
    """

    row: Tensor
    column: Tensor
    real: Tensor
    imaginary: Tensor


def magnetic_entries(edges: EdgeList, charge: float) -> Entries:
    """Return the entries of H; row and column are source and target, and some may be 0.

    Parameters
    ----------
    edges : EdgeList
        The arcs. Self-loops do not count.
    charge : float
        q.

    Examples
    --------
    >>> arc = EdgeList.of(torch.tensor([[0], [1]]), torch.ones(1), num_nodes=2)
    >>> magnetic_entries(arc, 0.25).imaginary.round().abs()
    tensor([1., 0., 0., 1., 0., 0.])
    """
    n, source, target = edges.num_nodes, edges.source, edges.target
    weight = torch.where(source == target, 0.0, edges.weight)
    code, reverse = source * n + target, target * n + source
    order = code.argsort()
    place = torch.searchsorted(code[order], reverse).clamp_max(len(code) - 1)
    has_reverse = code[order][place] == reverse
    back = torch.where(has_reverse, weight[order][place], 0.0)
    alone = torch.where(has_reverse, 0.0, weight)  # the reverse of such an arc has an entry, too
    row, column = torch.cat([source, target]), torch.cat([target, source])
    size = torch.cat([(weight + back) / 2, alone / 2])
    phase = 2 * math.pi * charge * torch.cat([weight - back, -alone])
    degree = size.new_zeros(n).index_add(0, row, size)
    scale = torch.where(degree > 0, degree, 1.0).rsqrt()
    size = size * scale[row] * scale[column]
    return Entries(row, column, size * phase.cos(), size * phase.sin())


def _operators(graph: Graph, charge: float) -> tuple[SparseMatrix, SparseMatrix]:
    """Return the real and the imaginary part of H."""
    arcs, weight = graph.edge_index, graph.edge_weight
    weight = graph.degree.new_ones(arcs.shape[1]) if weight is None else weight
    n = graph.num_nodes
    entries = magnetic_entries(EdgeList.of(arcs, weight.double(), n), charge)
    places = entries.row.cpu().numpy(), entries.column.cpu().numpy()
    real, imaginary = (
        scipy.sparse.coo_array((values.cpu().numpy(), places), shape=(n, n))
        for values in (entries.real, entries.imaginary)
    )
    device = graph.labels.device
    return (
        SparseMatrix.from_scipy(real, graph.dtype).to(device),
        SparseMatrix.from_scipy(imaginary, graph.dtype).to(device),
    )


def _filtered(layer: Any, f: Any, hops: Phases, *, is_real: bool) -> Tensor:
    """Return the filtered rows, with the real and the imaginary part side by side.

    As in :class:`~everynode.models.chebnet.ChebLayer`, the sum is evaluated from its end.
    """
    first, *others = layer.weight.unbind()
    c = layer.weight.shape[1]

    def times(weight: Tensor) -> Tensor:
        real = f @ weight if is_real else f[:, :c] @ weight
        return torch.cat([real, torch.zeros_like(real) if is_real else f[:, c:] @ weight], 1)

    def propagate(g: Tensor) -> Tensor:
        re, im = g.chunk(2, 1)
        parts = [hops.real(re) - hops.imaginary(im), hops.real(im) + hops.imaginary(re)]
        return torch.cat(parts, 1)

    last = before = torch.zeros_like(own := times(first))
    for weight in reversed(others):
        last, before = times(weight) - 2 * propagate(last) - before, last
    bias: Tensor = layer.bias
    return own - propagate(last) - before + bias.repeat(2)
