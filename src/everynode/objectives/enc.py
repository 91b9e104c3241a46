"""ENC: the weighted sum of the terms, in which every node counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.objectives.class_prior import ClassPrior
from everynode.objectives.consistency import PASSES, Consistency, each_pass
from everynode.objectives.cross_entropy import ClassWeight, CrossEntropy
from everynode.objectives.cross_validating_gradients import CrossValidatingGradients, Halves
from everynode.objectives.fused import Terms, at_once
from everynode.objectives.mutual_information import MutualInformation
from everynode.objectives.p_reg import PReg
from everynode.objectives.total_variation import Gate, TotalVariation


class ENC(nn.Module):
    r"""The objective of "Every Node Counts", for anybody's own training loop and any module that gives n x k logits.

    .. math:: \mathcal{L} = \mathcal{L}_{CE} + \alpha \mathcal{L}_{MI} + \beta \mathcal{L}_{TV} + \gamma \mathcal{L}_{CVG}

    ``mi``, ``tv``, ``cvg``: :math:`\alpha, \beta, \gamma`; a term of weight 0 is not computed. ``mi_lambda``: see
    :func:`mutual_information`; ``tv_sigma``, ``tv_gate``: :func:`total_variation`; ``halves``, ``cvg_every``, ``seed``:
    :class:`CrossValidatingGradients`; ``preg``: the weight of :func:`p_reg`, for comparisons. ``class_weight``: ``balanced`` lets
    every class weigh the same in cross-entropy and in CVG's halves, however many of its nodes are labelled.

    ``consistency``: the weight of :func:`consistency`, :math:`\delta \mathcal{L}_{CON}`, a term that the paper does not have, and
    ``consistency_temperature``. It compares ``passes`` of different dropout (two, else one), so the objective is then given the logits of both,
    ``objective((model(x), model(x)), model)``, and a step takes about twice the time and memory.

    ``prior``: the weight of :class:`ClassPrior`, :math:`\epsilon \mathcal{L}_{PRIOR}`, another that the paper does not have;
    ``class_prior``: the share of each class in the graph, if it is known; else it is estimated from the validation nodes, and moves with
    every call in training mode.

    The defaults were chosen on Cora's validation nodes and are not the paper's weights.

    >>> import torch
    >>> from everynode.graph import Graph, Split
    >>> nodes = torch.arange(4)
    >>> g = Graph.from_arrays(torch.eye(4), [[0, 1, 2], [1, 2, 3]], [0, 0, 1, 1], splits=[Split(nodes[:3], nodes[3:], nodes[:0])])
    >>> model = torch.nn.Linear(4, 2)
    >>> objective = ENC(g, mi=1.0, tv=2.0, cvg=1.0)
    >>> loss = objective(model(g.dense_features), model)
    >>> loss.backward()
    >>> sorted(objective.breakdown(model(g.dense_features), model))
    ['ce', 'cvg', 'mi', 'total', 'tv']
    """

    def __init__(
        self,
        graph: Graph,
        *,
        mi: float = 0.3,
        tv: float = 5.0,
        cvg: float = 0.05,
        mi_lambda: float = 0.3,
        tv_sigma: float = 10.0,
        tv_gate: Gate = "raw",
        halves: Halves = "stratified",
        cvg_every: int = 1,
        consistency: float = 0.0,
        consistency_temperature: float = 0.5,
        prior: float = 0.0,
        class_prior: Sequence[float] | Tensor | None = None,
        preg: float = 0.0,
        class_weight: ClassWeight | None = None,
        fold: int = 0,
        seed: int = 0,
    ):
        super().__init__()
        if not isinstance(graph, Graph):
            raise UsageError(
                f"ENC takes an everynode Graph, not a {type(graph).__name__}: for PyG's Data, ENC(Graph.from_pyg(data))."
            )
        self.shape = (graph.num_nodes, graph.num_classes)
        #: How many passes a step takes.
        self.passes = PASSES if consistency else 1
        self.weights = {
            "ce": 1.0,
            "mi": mi,
            "tv": tv,
            "cvg": cvg,
            "consistency": consistency,
            "prior": prior,
            "preg": preg,
        }
        for name, weight in self.weights.items():
            require(weight >= 0, name, "ENC", ">= 0", weight)
        require(
            consistency_temperature > 0,
            "consistency_temperature",
            "ENC",
            "> 0",
            consistency_temperature,
        )
        ce = CrossEntropy(graph, fold=fold, class_weight=class_weight)
        self._of_predictions = of = Terms(
            ce,
            MutualInformation(lam=mi_lambda) if mi else None,
            TotalVariation(graph, sigma=tv_sigma, gate=tv_gate) if tv else None,
        )
        self.terms = nn.ModuleDict(
            {name: term for name, term in (("ce", of.ce), ("mi", of.mi), ("tv", of.tv)) if term}
        )
        if cvg:
            self.terms["cvg"] = CrossValidatingGradients(
                graph,
                fold=fold,
                halves=halves,
                every=cvg_every,
                seed=seed,
                class_weight=class_weight,
            )
        if consistency:
            self.terms["consistency"] = Consistency(temperature=consistency_temperature)
        if class_prior is not None and not prior:
            raise UsageError(
                "ENC was given a class_prior, but its weight is 0: give one (prior=1.0), or leave it out."
            )
        if prior:
            self.terms["prior"] = ClassPrior(graph, fold=fold, shares=class_prior)
        if preg:
            self.terms["preg"] = PReg(graph)

    def breakdown(
        self, logits: Tensor | Sequence[Tensor], model: nn.Module | Iterable[Tensor] | None = None
    ) -> dict[str, Tensor]:
        """Each term's value before weighting, under its name, and their weighted sum as ``total``.

        Of several passes: consistency between them, CVG of the last one, which is the one that ``model`` remembers, and the mean of the
        other terms over all.
        """
        views = each_pass(logits, "ENC")
        for view in views:
            if view.shape != self.shape:
                raise UsageError(
                    f"ENC needs the logits of every node, {self.shape[0]} x {self.shape[1]}. Got {' x '.join(map(str, view.shape))}."
                )
        each = [self._of_one_pass(view) for view in views]
        values = (
            each[0]
            if len(each) == 1
            else {name: torch.stack([one[name] for one in each]).mean() for name in each[0]}
        )
        total = values.pop("total")
        if "cvg" in self.terms:
            weighted = self.terms["cvg"](
                views[-1], model, self.weights["cvg"]
            )  # who weighs it later pays for a pass over every layer
            values["cvg"] = weighted / self.weights["cvg"]
            total = total + weighted
        for name in ("consistency", "prior"):
            if name in self.terms:
                values[name] = self.terms[name](views)
                total = total + self.weights[name] * values[name]
        if "preg" in self.terms:
            values["preg"] = torch.stack([self.terms["preg"](view) for view in views]).mean()
            total = total + self.weights["preg"] * values["preg"]
        return {**values, "total": total}

    def _of_one_pass(self, logits: Tensor) -> dict[str, Tensor]:
        """Cross-entropy, MI and TV, and their weighted sum as ``total``."""
        if not (self._of_predictions.mi or self._of_predictions.tv):
            ce: Tensor = self._of_predictions.ce(logits)  # which looks at the labelled nodes only
            return {"ce": ce, "total": ce}
        found = at_once(logits, self._of_predictions, self.weights["mi"], self.weights["tv"])
        return {
            name: value
            for name, value in found._asdict().items()
            if name in self.terms or name == "total"
        }

    def forward(
        self, logits: Tensor | Sequence[Tensor], model: nn.Module | Iterable[Tensor] | None = None
    ) -> Tensor:
        """The total, for the n x k ``logits`` that ``model`` gave in this step (CVG needs the model, the other terms do not).

        Or for those of several passes, which consistency needs.
        """
        return self.breakdown(logits, model)["total"]
