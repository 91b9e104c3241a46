"""SGC: logistic regression on propagated features (Wu et al. 2019)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from everynode.models.feature_network import Propagation
from everynode.models.propagated_mlp import PropagatedMLP
from everynode.settings import Settings, check_settings
from everynode.sparse import SparseMatrix


class SGC(PropagatedMLP):
    r"""One linear layer on features that were propagated K times.

    From `Simplifying Graph Convolutional Networks <https://arxiv.org/abs/1902.07153>`_:

    .. math:: z = \tilde P^K x W + b

    :math:`K` is ``num_layers``. The product :math:`x W` comes first, because it has few columns:
    :math:`\tilde P^K x` of sparse features would be dense.

    Parameters
    ----------
    num_features, num_classes : int
        Input columns and classes.
    num_layers : int
        Number K of propagations.
    **options
        See :class:`~everynode.models.mlp.MLP`; the width is not used.

    Attributes
    ----------
    steps : int
        K.

    Examples
    --------
    >>> from everynode.datasets import generate
    >>> SGC(8, 3)(generate(20, 40, 8, 3)).shape
    torch.Size([20, 3])
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        num_layers: int = Settings.num_layers,
        **options: Any,
    ):
        super().__init__(num_features, num_classes, num_layers=1, **options)
        check_settings("SGC", num_layers=num_layers)
        self.steps = num_layers

    @property
    def reach(self) -> int:
        """The number of propagations."""
        return self.steps

    def compute(self, x: SparseMatrix | Tensor, hops: Propagation) -> Tensor:
        """Return the logits."""
        layer: Any = self.layers[0]
        dropped = self.drop_features(x)
        z: Tensor = dropped @ layer.weight
        for _ in range(self.steps):
            z = hops(z)
        return torch.add(z, layer.bias)
