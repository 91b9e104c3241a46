"""GraphMix: a GCN's cross-entropy in turn with mixup of an MLP that has its weights."""

from __future__ import annotations

import math
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Beta

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import at_least_single
from everynode.objectives.term import Step, Term, mean_of
from everynode.settings import Settings, check_settings


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Return the mean binary cross-entropy of class probabilities, as GraphMix has it.

    .. math:: \mathrm{BCE}(y, t) = -\frac{1}{r k} \sum_{i=1}^{r} \sum_{s=1}^{k}
              t_{i,s} \log y_{i,s} + (1 - t_{i,s}) \log(1 - y_{i,s})

    Examples
    --------
    >>> binary_cross_entropy(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    log_y = torch.log_softmax(logits, 1, dtype=at_least_single(logits.dtype))
    # As in torch's loss, a logarithm is at least -100.
    log_rest = torch.log1p(-log_y.exp().clamp_max(1 - torch.finfo(log_y.dtype).eps))
    pairs = targets * log_y.clamp_min(-100) + (1 - targets) * log_rest
    return -pairs.mean()


class GraphMixLoss(Term):
    r"""GraphMix's loss as a term, in place of cross-entropy (``ce=0``); for the model ``graphmix``.

    Verma et al., "GraphMix: Improved Training of GNNs for Semi-Supervised Learning", 2021,
    https://arxiv.org/abs/1909.11715. In each step a fair coin chooses between the cross-entropy of
    the GCN on the training nodes V\ :sub:`l`, and

    .. math:: \mathcal{L}_{mix} = \mathrm{BCE}(\mathrm{MLP}_\lambda(V_l), y_\lambda)
              + w(e)\, \mathrm{BCE}(\mathrm{MLP}_{\lambda'}(U), t_{\lambda'}), \qquad
              w(e) = w \exp\big(-5 (1 - \rho)^2\big)

    :math:`\mathrm{MLP}_\lambda` mixes the hidden values of each node with those of another
    (:meth:`~everynode.models.graphmix.GraphMix.mixed`), and :math:`y_\lambda = \lambda y_i +
    (1 - \lambda) y_{\pi(i)}` the targets; :math:`\lambda, \lambda' \sim \mathrm{Beta}(1, 1)`. U are
    as many random nodes without a label. Their targets are :math:`t \propto \bar y^{1/T}`, with the
    mean :math:`\bar y` of several passes of the GCN with dropout and no gradient.
    :math:`\rho` grows from 0 to 1 between the epochs 500 and 1000, and w(e) is 0 before. The
    authors' settings: w = 10, T = 0.1, 10 passes. In their code dropout is off in those passes and
    in the GCN's cross-entropy; here it is on, as in the paper.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: 1.
    unlabeled : float
        w.
    temperature : float
        T.
    passes_for_targets : int
        Number of passes for the targets.
    start, end : int
        The epochs between which w(e) grows.

    Attributes
    ----------
    unlabeled_nodes : Tensor
        The nodes without a training label.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> objective = ENC(generate(20, 40, 8, 3), ce=0, mi=0, tv=0, cvg=0, terms=[GraphMixLoss()])
    >>> objective.weights
    {'ce': 0, 'graphmix': 1.0}
    """

    name = "graphmix"
    needs = frozenset({"model", "every_node"})
    unlabeled_nodes: Tensor

    def __init__(
        self,
        weight: float | None = None,
        *,
        unlabeled: float = Settings.graphmix_unlabeled,
        temperature: float = 0.1,
        passes_for_targets: int = 10,
        start: int = 500,
        end: int = 1000,
    ):
        super().__init__(weight)
        owner = type(self).__name__
        check_settings(owner, graphmix_unlabeled=unlabeled)
        require(temperature > 0, "temperature", owner, "> 0", temperature)
        require(passes_for_targets >= 1, "passes_for_targets", owner, ">= 1", passes_for_targets)
        require(0 <= start < end, "start", owner, "at least 0 and below end", start)
        self.unlabeled, self.temperature = unlabeled, temperature
        self.passes_for_targets, self.start, self.end = passes_for_targets, start, end
        self.register_buffer("unlabeled_nodes", torch.empty(0, dtype=torch.int64), persistent=False)

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Find the nodes without a training label."""
        if not isinstance(graph, Graph):
            raise UsageError(self.refusal)
        rest = torch.ones(graph.num_nodes, dtype=torch.bool)
        rest[graph.nodes("train", fold).cpu()] = False
        self.unlabeled_nodes = rest.nonzero()[:, 0].to(graph.labels.device)
        return self

    def ramp(self, epoch: int | None) -> float:
        """Return w(e); all of w if nobody counts the epochs."""
        if epoch is None:
            return self.unlabeled
        if epoch < self.start:
            return 0.0
        done = min(1.0, (epoch - self.start) / (self.end - self.start))
        return self.unlabeled * math.exp(-5 * (1 - done) ** 2)

    def evaluate(self, step: Step) -> Tensor:
        """Return the loss that the coin chooses."""
        sample, model = step.sample, step.model
        self.check_sample(sample)
        if not hasattr(model, "mixed"):
            raise UsageError(
                f"The term {self.name!r} needs a model that works as an MLP, too. Got "
                f"{type(model).__name__}: choose the model graphmix, or set {self.name} to 0."
            )
        if torch.rand(()) < 0.5:
            loss = torch.nn.functional.cross_entropy
            return mean_of([loss(z[sample.labeled], sample.labels) for z in step.passes])
        graph = sample.graph
        y = torch.nn.functional.one_hot(sample.labels, step.passes[0].shape[1])
        total = self._mixed(model, graph, sample.labeled, y.to(step.passes[0]))
        if (weight := self.ramp(step.epoch)) and len(self.unlabeled_nodes):
            count = (len(sample.labeled),)
            chosen = self.unlabeled_nodes[torch.randint(len(self.unlabeled_nodes), count)]
            targets = self.targets(model, graph)[chosen]
            total = total + weight * self._mixed(model, graph, chosen, targets)
        return total

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Refuse logits without their model."""
        return self.evaluate(Step([logits], sample))

    def targets(self, model: Any, graph: Any) -> Tensor:
        """Return the sharpened mean of several passes, n x k."""
        with torch.no_grad():
            passes = [model(graph).softmax(1) for _ in range(self.passes_for_targets)]
            y_bar = torch.stack(passes).mean(0)
            return torch.softmax(y_bar.clamp_min(1e-30).log() / self.temperature, 1)

    def _mixed(self, model: Any, graph: Any, nodes: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of mixtures of pairs of some nodes with their targets."""
        share = float(Beta(1.0, 1.0).sample())
        order = torch.randperm(len(nodes), device=nodes.device)
        mixture = share * targets + (1 - share) * targets[order]
        return binary_cross_entropy(model.mixed(graph, nodes, order, share), mixture)
