"""What the three kinds of layers have in common: they mix every node with its neighbours, multiply, and cut off at zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from everynode.models.receptive_field import Hop


class Step(NamedTuple):
    """What a layer did in a pass: S, what S was made of, M, and the result after ReLU."""

    mixed: Tensor
    made_of: tuple[Tensor, ...]
    matrix: Tensor
    result: Tensor


class Layer(nn.Module, ABC):
    r"""A layer :math:`f^{(l+1)} = \sigma(S^{(l)} M^{(l)})` with a :math:`\sigma` that is ReLU.

    :math:`S` is what :meth:`mix` makes of the nodes and their neighbours, :math:`M = (1 - \beta) I + \beta W`. :math:`W`, the
    ``weight``, starts as the identity, and there is no bias.
    """

    #: The share of the opening features in S, and of the weight in M.
    alpha, beta = 0.0, 1.0

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(channels))

    @abstractmethod
    def mix(self, f: Tensor, f_0: Tensor, hop: Hop) -> tuple[Tensor, tuple[Tensor, ...]]:
        """S from the features ``f`` and the opening layer's ``f_0``; and what its derivatives need to know of how it was made."""

    def matrix(self) -> Tensor:
        """M."""
        return self.weight

    def forward(self, f: Tensor, f_0: Tensor, hop: Hop, steps: list[Step] | None = None) -> Tensor:
        """n x c features ``f`` and opening features ``f_0`` to n x c features; what was done is added to ``steps``."""
        mixed, made_of = self.mix(f, f_0, hop)
        matrix = self.matrix()
        result = torch.relu_(mixed @ matrix)
        if steps is not None:
            steps.append(Step(mixed, made_of, matrix, result))
        return result
