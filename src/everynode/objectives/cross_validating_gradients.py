"""Cross-validating gradients: both halves of the labeled nodes should pull the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import gradient_cosine
from everynode.objectives.cross_entropy import class_weights, cross_entropy
from everynode.objectives.term import Step, Term
from everynode.settings import Settings, check_settings


def cross_validating_gradients(
    loss_1: Tensor, loss_2: Tensor, parameters: Sequence[Tensor]
) -> Tensor:
    r"""Return the negative cosine of two gradients over all parameters, itself differentiable.

    .. math:: \mathcal{L}_{CVG} =
              - \frac{g^{p_1}_\theta \cdot g^{p_2}_\theta}{\|g^{p_1}_\theta\| \|g^{p_2}_\theta\|},
              \qquad g^{p}_\theta = \frac{\partial \mathcal{L}_{CE}(V^{lab}_p)}{\partial \theta}

    Parameters
    ----------
    loss_1, loss_2 : Tensor
        The cross-entropies of the two halves, from one forward pass.
    parameters : sequence of Tensor
        :math:`\theta`. Where a gradient vanishes, the term is 0.

    Examples
    --------
    >>> import torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> cross_validating_gradients((w * torch.tensor([1.0, 0.0])).sum(), w.sum(), [w])
    tensor(-0.7071)
    """
    return -gradient_cosine([loss_1, loss_2], parameters)


def draw_halves(
    nodes: Tensor, labels: Tensor, halves: str, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draw a partition of nodes into two halves (floor and ceil of one half).

    ``halves``: ``stratified`` gives each half its share of every class; otherwise every partition
    is equally likely.

    >>> import numpy as np, torch
    >>> nodes, labels = torch.arange(5), torch.tensor([0, 0, 1, 1, 1])
    >>> draw_halves(nodes, labels, "random", np.random.default_rng(0))
    (tensor([2, 4]), tensor([3, 0, 1]))
    """
    shuffled = nodes[torch.from_numpy(rng.permutation(len(nodes))).to(nodes.device)]
    if halves == "stratified":
        # Dealt out class after class, the halves of odd classes even out.
        shuffled = shuffled[torch.argsort(labels[shuffled], stable=True)]
        return shuffled[1::2], shuffled[0::2]
    middle = len(nodes) // 2
    return shuffled[:middle], shuffled[middle:]


def thin_out(half: Tensor, size: int, rng: np.random.Generator) -> Tensor:
    """Draw ``size`` members of a half, evenly along its order; all if there are no more.

    Stratified halves are in the order of the classes, so each class keeps its share.

    >>> import numpy as np, torch
    >>> thin_out(torch.arange(8), 4, np.random.default_rng(0))
    tensor([1, 2, 4, 6])
    """
    if len(half) <= size:
        return half
    # One place in each of `size` equal stretches.
    places = ((np.arange(size) + rng.random(size)) * (len(half) / size)).astype(np.int64)
    return half[torch.from_numpy(places).to(half.device)]


class CrossValidatingGradients(Term):
    """:func:`cross_validating_gradients` of two halves of the labeled rows, drawn at every step.

    A model may bring its own ``gradient_cosine(logits, nodes, labels, halves, weight=, shared=,
    factor=)``, which is then taken instead of autograd unless it returns None. The network of
    everynode does so. In a mini-batch the term is that of the labeled rows of the step.

    Parameters
    ----------
    weight : float, optional
        The weight of the term; None: ``default_weight``.
    halves : str
        ``random`` (the paper); ``stratified`` (each half has its share of every class); or
        ``fixed`` (drawn once: the paper's ablation).
    every : int
        Take the term at every n-th step only, and 0 at the others. That costs less, and divides
        the mean weight by n.
    nodes : int
        Take at most this many nodes of each half, drawn anew at every step; 0: all. Only their
        receptive field is computed. The expected gradients are those of the halves, the cosine is
        noisier.

    Attributes
    ----------
    calls : Tensor
        The number of steps so far. The draws depend on it and on the seed. It is part of
        ``state_dict``, so that resumed training continues with the same draws.
    class_weight : Tensor or None
        Weight of each class in the cross-entropies.
    in_first_half : Tensor or None
        Whether each labeled node is in the first half, for ``halves="fixed"``.
    seed : int
        The seed of the draws.

    Examples
    --------
    >>> from everynode import ENC
    >>> from everynode.datasets import generate
    >>> term = CrossValidatingGradients(0.5)
    >>> objective = ENC(generate(20, 40, 8, 3), mi=0, tv=0, cvg=0, terms=[term])
    >>> objective.weights
    {'ce': 1.0, 'cvg': 0.5}
    """

    name = "cvg"
    default_weight = Settings.cvg
    needs = frozenset({"labels", "model"})
    additive = False
    calls: Tensor
    class_weight: Tensor | None
    in_first_half: Tensor | None

    def __init__(
        self,
        weight: float | None = None,
        *,
        halves: str = Settings.halves,
        every: int = Settings.cvg_every,
        nodes: int = Settings.cvg_nodes,
    ):
        super().__init__(weight)
        settings = {"cvg_every": every, "cvg_nodes": nodes, "halves": halves}
        check_settings("CrossValidatingGradients", **settings)
        self.halves, self.every, self.nodes, self.seed = halves, every, nodes, 0
        self.register_buffer("class_weight", None, persistent=False)
        self.register_buffer("in_first_half", None, persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Take the seed and the class weights, and draw halves that stay the same."""
        require(seed >= 0, "seed", "CrossValidatingGradients", ">= 0", seed)
        self.seed = seed
        self.class_weight = class_weights(graph, fold, class_weight)
        if self.halves == "fixed":
            nodes = graph.nodes("train", fold)
            one, _ = draw_halves(nodes, graph.labels[nodes], "fixed", self._generator(0))
            self.in_first_half = torch.zeros(
                graph.num_nodes, dtype=torch.bool, device=nodes.device
            ).index_fill_(0, one, True)
        return self

    def forward(
        self, logits: Tensor, sample: Sample, model: nn.Module | Iterable[Tensor] | None = None
    ) -> Tensor:
        """Return the term for the r x k logits of the last pass of ``model``."""
        return self.evaluate(Step([logits], sample, model))

    def evaluate(self, step: Step) -> Tensor:
        """Return the term for the last pass, which is the one that the model remembers."""
        return self._value(step, 1.0)

    def weighted(self, step: Step, weight: float) -> tuple[Tensor, Tensor]:
        """Return the term, and ``weight`` times the term."""
        if not weight:
            return super().weighted(step, weight)
        # A weight inside the shortcut is free; later it would cost a pass over every layer.
        weighted = self._value(step, weight)
        return weighted / weight, weighted

    def partition(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Return the halves of the next step, as nodes of the graph."""
        one, other = self._positions(sample)
        return sample.all_labeled[one], sample.all_labeled[other]

    def _generator(self, draw: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64([self.seed, draw]))

    def _positions(self, sample: Sample) -> tuple[Tensor, Tensor]:
        """Return the halves of the next step, as positions among the labeled of all processes."""
        if self.halves == "fixed":
            assert self.in_first_half is not None
            in_first = self.in_first_half.to(sample.all_labeled.device)[sample.all_labeled]
            one, other = in_first.nonzero()[:, 0], (~in_first).nonzero()[:, 0]
        else:
            everyone = torch.arange(len(sample.all_labeled), device=sample.all_labeled.device)
            rng = self._generator(int(self.calls))
            one, other = draw_halves(everyone, sample.all_labels, self.halves, rng)
        if self.nodes:
            rng = np.random.Generator(np.random.SFC64([self.seed, int(self.calls), self.nodes]))
            one, other = (thin_out(half, self.nodes, rng) for half in (one, other))
        return one, other

    def _value(self, step: Step, factor: float) -> Tensor:
        """Return ``factor`` times the term."""
        logits, sample, model = step.passes[-1], step.sample, step.model
        parameters = trainable(model)
        require_autograd(logits)
        is_due = int(self.calls) % self.every == 0
        halves = self._positions(sample) if is_due else None
        if self.training:
            self.calls += 1
        if halves is None or not len(halves[0]) or not len(halves[1]):
            return logits[:1].sum() * 0.0
        shared = None
        if step.processes.size > 1:
            halves, shared = self._own_part(halves, step)
        shortcut = getattr(model, "gradient_cosine", None)
        if shortcut:
            nodes, labels, of_nodes = sample.labeled, sample.labels, halves
            if self.nodes:
                drawn = torch.cat(halves)
                nodes, labels = nodes[drawn], labels[drawn]
                places = torch.arange(len(drawn), device=drawn.device)
                of_nodes = places[: len(halves[0])], places[len(halves[0]) :]
            term: Tensor | None = shortcut(
                logits, nodes, labels, of_nodes,
                weight=self.class_weight, shared=shared, factor=-factor,
            )  # fmt: skip
            if term is not None:
                return term
        if shared:
            raise UsageError(
                "Cross-validating gradients over several processes need a model of everynode, "
                "without hooks and without frozen weights: train in one process, or set cvg=0."
            )
        at = logits.index_select(0, sample.labeled)
        loss_1, loss_2 = (
            cross_entropy(at, sample.labels, half, self.class_weight) for half in halves
        )
        return factor * cross_validating_gradients(loss_1, loss_2, parameters)

    def _own_part(
        self, halves: tuple[Tensor, Tensor], step: Step
    ) -> tuple[tuple[Tensor, Tensor], Any]:
        """Return the labeled rows of this process in each half, and how the halves are shared."""
        from everynode.models.gradient_cosine import SharedHalves

        start, labels = step.sample.first_labeled, step.sample.all_labels
        end = start + len(step.sample.labeled)
        totals = [
            len(half) if self.class_weight is None else self.class_weight[labels[half]].sum().item()
            for half in halves
        ]
        one, other = (half[(half >= start) & (half < end)] - start for half in halves)
        return (one, other), SharedHalves((totals[0], totals[1]), step.processes.add_up)


def require_autograd(logits: Tensor) -> None:
    """Refuse logits that have no gradient."""
    if not logits.requires_grad:
        raise UsageError(
            "Cross-validating gradients need logits that autograd can follow: "
            "no torch.no_grad(), no detach()."
        )


def trainable(model: nn.Module | Iterable[Tensor] | None) -> list[Tensor]:
    """Return the parameters of a model that are trained."""
    if model is None:
        raise UsageError(
            "Cross-validating gradients need the model's parameters: call objective(logits, model)."
        )
    # Asking torch._dynamo for its class would import it, which takes two seconds.
    if isinstance(model, nn.Module) and "_orig_mod" in model._modules:
        raise UsageError(
            "Cross-validating gradients cannot be taken of a compiled model (torch.compile): "
            "give cvg=0, or do not compile it."
        )
    parameters = model.parameters() if isinstance(model, nn.Module) else model
    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        raise UsageError(
            "Cross-validating gradients need a model with trainable parameters; this one has none."
        )
    return trained
