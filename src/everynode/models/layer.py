"""The base class of the layers of :class:`everynode.models.network.Network`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from everynode.dense_products import multiply
from everynode.errors import UsageError
from everynode.models.edge_list import EdgeList
from everynode.models.layer_derivatives import LayerDerivatives
from everynode.models.receptive_field import Hop, Level


class LayerTrace(NamedTuple):
    """The values of one layer in a training pass.

    Attributes
    ----------
    mixed : Tensor
        S.
    saved : tuple of Tensor
        The tensors that the derivatives of S need.
    matrix : Tensor
        M.
    output : Tensor
        The output after ReLU.
    """

    mixed: Tensor
    saved: tuple[Tensor, ...]
    matrix: Tensor
    output: Tensor


class Layer(nn.Module, ABC):
    r"""A layer :math:`f^{(l+1)} = \mathrm{ReLU}(S^{(l)} M^{(l)})`.

    :meth:`mix` computes :math:`S` from the nodes and their neighbors, and
    :math:`M = (1 - \beta) I + \beta W`. The ``weight`` :math:`W` starts as the identity. There is
    no bias. A new layer implements :meth:`mix`. It may also bring :meth:`derivatives` (for fast
    cross-validating gradients) and :meth:`export`. Without derivatives, autograd computes the same
    numbers in more time. Without an export, ``export`` refuses the model.

    Parameters
    ----------
    channels : int
        Width of the input and of the output.
    position : int
        Number of the layer in the network, from 1.
    generator : torch.Generator, optional
        Source of the initial weights.

    Attributes
    ----------
    weight : Parameter
        W.
    beta : float
        The share of the weight in M.
    """

    beta = 1.0

    def __init__(
        self, channels: int, *, position: int = 1, generator: torch.Generator | None = None
    ):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(channels))

    @abstractmethod
    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return S, and the tensors that :meth:`derivatives` needs.

        ``f``: the input of the layer, one row per source of the hop; ``f_0``: the output of the
        opening layer; ``hop``: the edges. ``hop.target_rows(f)`` and ``hop.opening_rows(f_0)`` are
        the rows of the targets.
        """

    def matrix(self) -> Tensor:
        """Return :math:`M = (1 - \\beta) I + \\beta W`."""
        if self.beta == 1.0:
            return self.weight
        identity = torch.eye(len(self.weight), dtype=self.weight.dtype, device=self.weight.device)
        return torch.lerp(identity, self.weight, self.beta)

    def forward(
        self, f: Tensor, f_0: Tensor, hop: Hop, traces: list[LayerTrace] | None = None
    ) -> Tensor:
        """Map n x c features to n x c features; append the values of the pass to ``traces``."""
        mixed, saved = self.mix(f, f_0, hop)
        matrix = self.matrix()
        output = torch.relu_(multiply(mixed, matrix))
        if traces is not None:
            traces.append(LayerTrace(mixed, saved, matrix, output))
        return output

    def derivatives(
        self, hop: Hop, inputs: Level, saved: tuple[Tensor, ...]
    ) -> LayerDerivatives | None:
        """Return the derivatives of :meth:`mix` along ``hop``; None: leave them to autograd.

        ``inputs``: the nodes that the hop starts from; ``saved``: from :meth:`mix`, for all nodes.
        """
        return None

    def export(self, f: Tensor, f_0: Tensor, edges: EdgeList) -> Tensor:
        """Apply the layer with plain torch operations that ``torch.export`` understands."""
        raise UsageError(
            f"{type(self).__name__} cannot be exported: it does not implement export()."
        )


@cache
def brings(layer: type[Layer], method: str) -> bool:
    """Whether the ``derivatives`` or the ``export`` of a layer describes its forward pass.

    A subclass that changes the forward pass has to bring its own: the inherited one is wrong.
    """

    def depth(name: str) -> int:
        return next(i for i, cls in enumerate(layer.__mro__) if name in vars(cls))

    return depth(method) <= min(depth(name) for name in ("forward", "mix", "matrix"))
