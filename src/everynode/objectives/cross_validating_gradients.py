"""Cross-validating gradients: the two halves of the labelled nodes should pull the weights the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require, unknown
from everynode.graph import Graph
from everynode.numerics import gradient_cosine
from everynode.objectives.cross_entropy import ClassWeight, CrossEntropy, cross_entropy

Halves = Literal["random", "stratified", "fixed"]
HALVES: tuple[Halves, ...] = ("random", "stratified", "fixed")


def cross_validating_gradients(
    loss_1: Tensor, loss_2: Tensor, parameters: Sequence[Tensor]
) -> Tensor:
    r"""The negative cosine of two partial losses' gradients over all parameters, itself differentiable.

    .. math:: \mathcal{L}_{CVG} = - \frac{g^{p_1}_\theta \cdot g^{p_2}_\theta}{\|g^{p_1}_\theta\| \|g^{p_2}_\theta\|},
              \qquad g^{p}_\theta = \frac{\partial \mathcal{L}_{CE}(V^{lab}_p)}{\partial \theta}

    ``loss_1``, ``loss_2``: the cross-entropies of the two halves, from one forward pass. Where a gradient vanishes, the term is 0.

    >>> import torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> cross_validating_gradients((w * torch.tensor([1.0, 0.0])).sum(), w.sum(), [w])
    tensor(-0.7071)
    """
    return -gradient_cosine([loss_1, loss_2], parameters)


def draw_halves(
    nodes: Tensor, labels: Tensor, halves: Halves, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """A disjoint partition of ``nodes`` into floor and ceil of one half: uniformly, or ``stratified`` class by class.

    >>> import numpy as np, torch
    >>> draw_halves(torch.arange(5), torch.tensor([0, 0, 1, 1, 1]), "random", np.random.default_rng(0))
    (tensor([2, 4]), tensor([3, 0, 1]))
    """
    shuffled = nodes[torch.from_numpy(rng.permutation(len(nodes))).to(nodes.device)]
    if halves == "stratified":
        # Dealing the nodes out class after class gives each half its share of every class, whatever is odd.
        shuffled = shuffled[torch.argsort(labels[shuffled], stable=True)]
        return shuffled[1::2], shuffled[0::2]
    middle = len(nodes) // 2
    return shuffled[:middle], shuffled[middle:]


class CrossValidatingGradients(nn.Module):
    """:func:`cross_validating_gradients` on the training nodes of one fold, with halves drawn anew at every call.

    ``halves``: ``random`` (the paper), ``stratified`` (each half has its share of every class), or ``fixed`` (drawn once: the paper's
    ablation). ``every``: take the term at every so many calls only, and 0 at the others, which costs
    less (and weighs less: the mean weight is that of the term divided by ``every``). The draws depend on ``seed``
    and on how often the term was called, a count that is part of ``state_dict``: training that is resumed from a checkpoint goes on with
    the draws it would have had. ``class_weight``: as in :class:`CrossEntropy`.
    """

    calls: Tensor
    nodes: Tensor
    labels: Tensor
    everyone: Tensor
    weight: Tensor | None

    def __init__(
        self,
        graph: Graph,
        *,
        fold: int = 0,
        halves: Halves = "random",
        every: int = 1,
        seed: int = 0,
        class_weight: ClassWeight | None = None,
    ):
        super().__init__()
        require(every >= 1, "every", "CrossValidatingGradients", ">= 1", every)
        require(seed >= 0, "seed", "CrossValidatingGradients", ">= 0", seed)
        if halves not in HALVES:
            unknown("choice of halves", halves, HALVES)
        ce = CrossEntropy(graph, fold=fold, class_weight=class_weight)
        nodes = ce.nodes
        self.halves, self.every, self.seed = halves, every, seed
        self.register_buffer("nodes", nodes, persistent=False)
        self.register_buffer("labels", graph.labels[nodes], persistent=False)
        self.register_buffer(
            "everyone", torch.arange(len(nodes), device=nodes.device), persistent=False
        )
        self.register_buffer("weight", ce.weight, persistent=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def _positions(self) -> tuple[Tensor, Tensor]:
        """Where the halves of the next call stand among the training nodes."""
        draw = 0 if self.halves == "fixed" else int(self.calls)
        rng = np.random.Generator(np.random.SFC64([self.seed, draw]))
        return draw_halves(self.everyone, self.labels, self.halves, rng)

    def partition(self) -> tuple[Tensor, Tensor]:
        """The halves of the next call, as node indices."""
        p_1, p_2 = self._positions()
        return self.nodes[p_1], self.nodes[p_2]

    def forward(
        self, logits: Tensor, model: nn.Module | Iterable[Tensor], factor: float = 1.0
    ) -> Tensor:
        """``factor`` times the term for the n x k ``logits`` that came out of ``model`` (or out of these parameters) in this step."""
        parameters = trainable(model)
        require_autograd(logits)
        due = int(self.calls) % self.every == 0
        p_1, p_2 = self._positions() if due else (self.everyone[:0], self.everyone)
        if self.training:
            self.calls += 1
        if len(p_1) == 0:  # not due, or one labelled node, which cannot be halved
            return logits[:1].sum() * 0.0
        shortcut = getattr(
            model, "gradient_cosine", None
        )  # a model may know a shorter way: see Network.gradient_cosine
        term: Tensor | None = None
        if shortcut:
            term = shortcut(
                logits, self.nodes, self.labels, (p_1, p_2), weight=self.weight, factor=-factor
            )
        if term is not None:
            return term
        at = logits.index_select(0, self.nodes)
        loss_1, loss_2 = (cross_entropy(at, self.labels, half, self.weight) for half in (p_1, p_2))
        return factor * cross_validating_gradients(loss_1, loss_2, parameters)


def require_autograd(logits: Tensor) -> None:
    """Refuse logits that have no gradient."""
    if not logits.requires_grad:
        raise UsageError(
            "Cross-validating gradients need logits that autograd can follow: no torch.no_grad(), no detach()."
        )


def trainable(model: nn.Module | Iterable[Tensor]) -> list[Tensor]:
    """The parameters that take part in the gradients."""
    if model is None:
        raise UsageError(
            "Cross-validating gradients need the model's parameters: call objective(logits, model)."
        )
    if (
        isinstance(model, nn.Module) and "_orig_mod" in model._modules
    ):  # asking torch._dynamo for its class would import it: 2 s
        raise UsageError(
            "Cross-validating gradients cannot be taken of a compiled model (torch.compile): give cvg=0, or do not compile it."
        )
    parameters = model.parameters() if isinstance(model, nn.Module) else model
    found = [p for p in parameters if p.requires_grad]
    if not found:
        raise UsageError(
            "Cross-validating gradients need a model with trainable parameters; this one has none."
        )
    return found
