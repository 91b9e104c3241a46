"""Mutual information between nodes and classes."""

from __future__ import annotations

from torch import Tensor, nn

from everynode.errors import require
from everynode.numerics import entropy_of_mass, entropy_of_rows, log_class_mass


def mutual_information(logits: Tensor, *, lam: float = 2.0) -> Tensor:
    r"""Each node should be sure of its class, and all nodes together should use all classes.

    .. math:: \mathcal{L}_{MI} = \frac{1}{|V|} \sum_{i \in V} \sum_{s=1}^{k} -\hat y_{i,s} \log \hat y_{i,s}
              + \lambda \sum_{s=1}^{k} \tilde y_s \log \tilde y_s,
              \qquad \tilde y_s = \frac{1}{|V|} \sum_{i \in V} \hat y_{i,s}

    ``logits``: n x k, of *every* node. ``lam``: :math:`\lambda`; 1 is the mutual information proper (Bridle et al. 1991), 2 the
    paper's choice, and the larger it is, the more equal the predicted class sizes.

    >>> import torch
    >>> mutual_information(torch.zeros(3, 2), lam=1.0)  # knows nothing: no information
    tensor(0.)
    >>> mutual_information(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), lam=1.0)  # -log 2: all that two classes can carry
    tensor(-0.6931)
    """
    return entropy_of_rows(logits).mean() - lam * entropy_of_mass(log_class_mass(logits), len(logits))


class MutualInformation(nn.Module):
    """:func:`mutual_information` with its :math:`\\lambda` fixed."""

    def __init__(self, *, lam: float = 2.0):
        super().__init__()
        require(lam >= 0, "lam", "MutualInformation", ">= 0", lam)
        self.lam = lam

    def forward(self, logits: Tensor) -> Tensor:
        """The term for the n x k ``logits``."""
        return mutual_information(logits, lam=self.lam)
