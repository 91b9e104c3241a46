"""Consistency: under another dropout a node should still be of the same class."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require
from everynode.numerics import log_softmax_by_class

#: How many passes everynode's own training compares; four gain little and cost twice as much (docs/accuracy.md).
PASSES = 2


def each_pass(logits: Tensor | Sequence[Tensor], of: str) -> list[Tensor]:
    """The logits of one pass, or of several, as a list; ``of``: who needs them."""
    views = [logits] if isinstance(logits, Tensor) else list(logits)
    if not views:
        raise UsageError(f"{of} needs the logits of at least one pass. Got none.")
    return views


def consistency(views: Sequence[Tensor], *, temperature: float = 0.5) -> Tensor:
    r"""What a network says of a node under several dropouts should agree, and be sure. Not of the paper: after Feng et al. 2020 (GRAND).

    .. math:: \mathcal{L}_{CON} = -\frac{1}{K |V|} \sum_{v=1}^{K} \sum_{i \in V} \sum_{s=1}^{k} t_{i,s} \log \hat y^{(v)}_{i,s},
              \qquad t_{i,s} = \frac{\bar y_{i,s}^{1/T}}{\sum_{r} \bar y_{i,r}^{1/T}},
              \qquad \bar y_{i,s} = \frac{1}{K} \sum_{v=1}^{K} \hat y^{(v)}_{i,s}

    ``views``: the n x k logits of *every* node from K >= 2 passes of one network in training; without dropout they would be the same,
    and all that is left is to be sure. ``temperature``: :math:`T`; 1 asks for
    agreement only, and the lower it is, the surer each node is to be. The targets :math:`t` are constants: no gradient goes through them.

    >>> import torch
    >>> consistency([torch.tensor([[9.0, 0.0]]), torch.tensor([[9.0, 0.0]])])  # they agree, and are sure
    tensor(0.0001)
    >>> consistency([torch.tensor([[9.0, 0.0]]), torch.tensor([[0.0, 9.0]])])  # they do not agree
    tensor(4.5001)
    """
    return Consistency(temperature=temperature)(views)


class Consistency(nn.Module):
    """:func:`consistency` with its temperature fixed."""

    def __init__(self, *, temperature: float = 0.5):
        super().__init__()
        require(temperature > 0, "temperature", "Consistency", "> 0", temperature)
        self.temperature = temperature

    def forward(self, views: Sequence[Tensor], share: Tensor | None = None) -> Tensor:
        """The term for the n x k logits of each pass; with ``share``, the sum over the nodes, each of which counts with its own."""
        shapes = {tuple(view.shape) for view in views}
        if isinstance(views, Tensor) or len(views) < 2 or len(shapes) > 1:
            got = (
                "one"
                if isinstance(views, Tensor) or len(views) == 1
                else " and ".join(map(str, sorted(shapes))) or "none"
            )
            raise UsageError(
                f"Consistency compares passes of different dropout: give the n x k logits of two in a tuple. Got {got}."
            )
        if len({id(view) for view in views}) < len(views):
            raise UsageError(
                "Consistency was given one pass twice, which always agrees with itself: call the model once for each, in training."
            )
        log_y = [log_softmax_by_class(logits) for logits in views]  # k x n each
        with torch.no_grad():
            log_mean = torch.logsumexp(torch.stack(log_y), dim=0)  # but for log K, which cancels
            target = torch.softmax(log_mean / self.temperature, dim=0)
            target = (
                target / max(target.shape[1], 1) if share is None else target * share.to(target)
            )
        return torch.stack([-(target * one).sum() for one in log_y]).mean()
