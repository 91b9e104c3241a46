"""Consistency: a node should keep its class under another dropout."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from everynode.errors import UsageError
from everynode.graph.sample import Sample
from everynode.numerics import log_softmax_by_class
from everynode.objectives.term import Step, Term
from everynode.settings import Settings, check_settings


def consistency(
    views: Sequence[Tensor],
    *,
    temperature: float = Settings.consistency_temperature,
    distance: str = Settings.consistency_distance,
) -> Tensor:
    r"""Ask the predictions of several passes with different dropout to agree, and to be confident.

    The term is not in the paper. It follows Feng et al., "Graph Random Neural Networks for
    Semi-Supervised Learning on Graphs" (GRAND), 2020, https://arxiv.org/abs/2005.11079.

    .. math:: \mathcal{L}_{CON} = -\frac{1}{K |V|} \sum_{v=1}^{K} \sum_{i \in V} \sum_{s=1}^{k}
              t_{i,s} \log \hat y^{(v)}_{i,s},
              \qquad t_{i,s} = \frac{\bar y_{i,s}^{1/T}}{\sum_{r} \bar y_{i,r}^{1/T}},
              \qquad \bar y_{i,s} = \frac{1}{K} \sum_{v=1}^{K} \hat y^{(v)}_{i,s}

    The targets :math:`t` are constants: no gradient flows through them. GRAND itself has the
    squared distance, :math:`\frac{1}{K |V|} \sum_v \sum_i \| \hat y^{(v)}_i - t_i \|_2^2`.

    Parameters
    ----------
    views : sequence of Tensor
        The n x k logits of *every* node from K >= 2 passes of one network in training mode.
        Without dropout the passes are equal, and only the confidence is left.
    temperature : float
        :math:`T`. 1 asks for agreement only; a lower one asks for more confidence.
    distance : str
        ``cross_entropy`` or ``squared``.

    Examples
    --------
    >>> import torch
    >>> consistency([torch.tensor([[9.0, 0.0]]), torch.tensor([[9.0, 0.0]])])  # they agree
    tensor(0.0001)
    >>> consistency([torch.tensor([[9.0, 0.0]]), torch.tensor([[0.0, 9.0]])])  # they disagree
    tensor(4.5001)
    """
    check_settings(
        "Consistency", consistency_temperature=temperature, consistency_distance=distance
    )
    _check(views)
    n = len(views[0])
    share = views[0].new_full((n,), 1.0 / max(n, 1), dtype=torch.float64)
    log_y = [log_softmax_by_class(v) for v in views]
    return _of_log_probabilities(log_y, share, temperature, distance)


def _of_log_probabilities(
    log_y: Sequence[Tensor], share: Tensor, temperature: float, distance: str
) -> Tensor:
    """Return the term for the k x r log-probabilities of each pass and the share of each node."""
    with torch.no_grad():
        log_mean = torch.logsumexp(torch.stack(list(log_y)), dim=0)  # but for log K, which cancels
        target = torch.softmax(log_mean / temperature, dim=0)
        share = share.to(target)
    if distance == "squared":
        each = [(share * (one.exp() - target).square()).sum() for one in log_y]
    else:
        target = target * share
        each = [-(target * one).sum() for one in log_y]
    return torch.stack(each).mean()


def _check(views: Sequence[Tensor]) -> None:
    """Refuse fewer than two passes, and the same pass twice."""
    shapes = {tuple(view.shape) for view in views}
    if isinstance(views, Tensor) or len(views) < 2 or len(shapes) > 1:
        is_one = isinstance(views, Tensor) or len(views) == 1
        got = "one" if is_one else " and ".join(map(str, sorted(shapes))) or "none"
        raise UsageError(
            "Consistency compares passes of different dropout: "
            f"give the n x k logits of two in a tuple. Got {got}."
        )
    if len({id(view) for view in views}) < len(views):
        raise UsageError(
            "Consistency got one pass twice, which always agrees with itself: "
            "call the model once for each pass, in training mode."
        )


class Consistency(Term):
    """:func:`consistency` as a term.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    temperature : float
        See :func:`consistency`.
    ramp : int
        Epochs over which the weight grows linearly from 0; 0: full weight at once. Early targets
        are guesses, and a large weight would make the network believe them.
    distance : str
        See :func:`consistency`.
    passes : int
        Number of passes to compare. Four gain little over two, and cost twice as much
        (docs/archive/accuracy.md).

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[Consistency(0.5)])
    >>> objective.weights
    {'ce': 1.0, 'consistency': 0.5}
    """

    name = "consistency"
    needs = frozenset({"passes"})

    def __init__(
        self,
        weight: float | None = None,
        *,
        temperature: float = Settings.consistency_temperature,
        ramp: int = Settings.consistency_ramp,
        distance: str = Settings.consistency_distance,
        passes: int = Settings.consistency_passes,
    ):
        super().__init__(weight)
        check_settings("Consistency", consistency_temperature=temperature, consistency_ramp=ramp)
        check_settings("Consistency", consistency_distance=distance, consistency_passes=passes)
        self.temperature, self.ramp, self.distance = temperature, ramp, distance
        self._passes = passes

    @property
    def passes(self) -> int:
        """The number of passes that the term compares."""
        return self._passes

    def factor(self, epoch: int) -> float:
        """Return the share of the weight that counts in an epoch (from 0)."""
        return min(1.0, epoch / self.ramp) if self.ramp else 1.0

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse a single pass."""
        return self.evaluate(Step([logits], sample))

    def evaluate(self, step: Step) -> Tensor:
        """Return the term between the passes of a step."""
        _check(step.passes)
        share = step.sample.node_share
        return _of_log_probabilities(step.log_y, share, self.temperature, self.distance)
