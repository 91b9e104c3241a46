"""The objective on a part of the graph: each step's terms estimate those of the whole graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require, unknown
from everynode.graph.disk_graph import ROWS, DiskGraph
from everynode.graph.graph import Graph, normalize_rows
from everynode.models import Network
from everynode.models.gradient_cosine import Shared
from everynode.numerics import log_softmax_by_class
from everynode.objectives.consistency import PASSES, Consistency, each_pass
from everynode.objectives.cross_entropy import ClassWeight, balanced, cross_entropy
from everynode.objectives.cross_validating_gradients import (
    HALVES,
    Halves,
    cross_validating_gradients,
    draw_halves,
    require_autograd,
    trainable,
)
from everynode.objectives.total_variation import (
    GATES,
    Gate,
    column_scale,
    squared_differences,
    variation,
)
from everynode.sparse import Pattern, SparseMatrix
from everynode.training.distributed import Ranks
from everynode.training.mini_batch.part import Part

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: How much of a new step's class marginal goes into the one that is carried along: large enough to follow the network, small enough
#: for the noise of one step's few nodes to average out.
RATE = 0.1


class BatchENC(nn.Module):
    r"""ENC's terms for one step, and for one process its part of them; options as those of :class:`everynode.ENC`, but for a class prior.

    * :math:`\mathcal{L}_{CE}`: the sum over the step's training nodes, weighted so that the mean over an epoch is the graph's.
    * :math:`\mathcal{L}_{TV}`: likewise over the step's edges, with the degrees of the whole graph.
    * :math:`\mathcal{L}_{MI}`: likewise the mean entropy. The class marginal :math:`\tilde y` is inside a logarithm, so a step's own
      would be wrong: it is estimated by a running mean :math:`m` over steps, and the term is linear in the step's own
      :math:`\tilde y^b` around it, :math:`\lambda \sum_s (\tilde y^b_s (\log m_s + 1) - m_s)`. With :math:`m = \tilde y` its
      gradient is, over an epoch, that of the whole graph. A step that has all nodes takes its own.
    * :math:`\mathcal{L}_{CON}`: likewise over the step's nodes, between two passes over the same part of the graph.
    * :math:`\mathcal{L}_{CVG}`: of two halves of the step's training nodes. It is not linear, and so that of the graph only if the step
      has all training nodes; the two gradients are, each, estimates of those of the graph.

    Values and gradients of all processes add up to those of the step: what stands inside a logarithm or a cosine is added up first.
    """

    marginal: Tensor
    steps: Tensor
    calls: Tensor

    def __init__(
        self,
        graph: Graph | DiskGraph,
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
        preg: float = 0.0,
        class_weight: ClassWeight | None = None,
        fold: int = 0,
        seed: int = 0,
        ranks: Ranks | None = None,
    ):
        super().__init__()
        if preg:
            raise UsageError(
                "P-reg needs the predictions of all neighbours of a node at once: leave it out, or train without batches."
            )
        if prior:
            raise UsageError(
                "The class prior needs the predictions of all nodes at once: leave it out, or train without batches."
            )
        if tv_gate not in GATES:
            unknown("gate", tv_gate, GATES)
        if halves not in HALVES:
            unknown("choice of halves", halves, HALVES)
        require(tv_sigma > 0, "tv_sigma", "BatchENC", "> 0", tv_sigma)
        require(mi_lambda >= 0, "mi_lambda", "BatchENC", ">= 0", mi_lambda)
        require(cvg_every >= 1, "cvg_every", "BatchENC", ">= 1", cvg_every)
        require(seed >= 0, "seed", "BatchENC", ">= 0", seed)
        require(
            consistency_temperature > 0,
            "consistency_temperature",
            "BatchENC",
            "> 0",
            consistency_temperature,
        )
        self.weights = {"ce": 1.0, "mi": mi, "tv": tv, "cvg": cvg, "consistency": consistency}
        for name, weight in self.weights.items():
            require(weight >= 0, name, "BatchENC", ">= 0", weight)
        #: How many passes a step takes, as in :class:`everynode.ENC`.
        self.passes = PASSES if consistency else 1
        self.mi_lambda, self.tv_sigma, self.tv_gate = mi_lambda, tv_sigma, tv_gate
        self.halves, self.cvg_every, self.seed = halves, cvg_every, seed
        self.consistency = Consistency(temperature=consistency_temperature)
        self.ranks = ranks or Ranks()
        if graph.labels.device.type != "cpu":
            raise UsageError(
                "Batches are drawn on the CPU: give the graph there, and only the batches to another device."
            )
        train = graph.nodes("train", fold)
        #: Over all training nodes they add up to their number, so nothing else changes.
        self.class_weight = (
            balanced(graph.labels[train], graph.num_classes) if class_weight else None
        )
        self.num_edges, self.labels = graph.num_edges, graph.labels
        self.scale = column_scale(_blocks(graph)) if tv and tv_gate == "standardised" else None
        self.first_half = self._fixed_half(graph, fold) if cvg and halves == "fixed" else None
        self.register_buffer(
            "marginal",
            torch.full((graph.num_classes,), 1.0 / graph.num_classes, dtype=torch.float64),
        )
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, logits: Tensor | Sequence[Tensor], batch: Data, model: nn.Module) -> Tensor:
        """The total for a batch of a :class:`NeighborLoader`, of whose nodes ``model`` gave these ``logits`` (n x k), or of its first.

        Or those of several passes over the batch, which consistency needs.
        """
        part: Part = batch.part
        views = each_pass(logits, "BatchENC")
        for view in views:
            if len(view) < len(part.roots):
                raise UsageError(
                    f"BatchENC needs the logits of the batch's first {len(part.roots)} nodes. Got {len(view)}."
                )
        return self.breakdown([view[: len(part.roots)] for view in views], part, batch.x, model)[
            "total"
        ]

    def breakdown(
        self,
        logits: Tensor | Sequence[Tensor],
        part: Part,
        x: SparseMatrix | Tensor,
        model: nn.Module,
    ) -> dict[str, Tensor]:
        """Each term's part before weighting, and as ``total`` what is to be differentiated.

        ``logits`` of the part's roots, or those of each of several passes; ``x``: features of some nodes, the roots first.
        The values of ``ce``, ``mi``, ``tv`` and ``consistency`` add up over the processes; ``cvg`` is the same in all of them.
        """
        views = each_pass(logits, "BatchENC")
        labels = part.labels.to(views[0].device)
        weight = None if self.class_weight is None else self.class_weight.to(views[0])
        ce = [
            nn.functional.cross_entropy(view[: len(labels)], labels, weight, reduction="sum")
            for view in views
        ]
        values = {"ce": torch.stack(ce).mean() * part.of_label}
        if self.weights["mi"] or self.weights["tv"]:
            log_ys = [log_softmax_by_class(view) for view in views]
            if self.weights["mi"]:
                values["mi"] = self._mutual_information(log_ys, part)
            if self.weights["tv"]:
                operator = self._operator(part, x, log_ys[0])
                values["tv"] = torch.stack([variation(log_y, operator) for log_y in log_ys]).mean()
        if self.weights["cvg"]:
            values["cvg"] = self._cross_validating(views[-1], part, labels, model)
        if self.weights["consistency"]:
            values["consistency"] = self.consistency(views, part.share)
        total = torch.stack([self.weights[name] * value for name, value in values.items()]).sum()
        return {**values, "total": total}

    def _mutual_information(self, log_ys: Sequence[Tensor], part: Part) -> Tensor:
        share = part.share.to(log_ys[0])
        ys = [log_y.exp() for log_y in log_ys]
        own = torch.stack([y @ share for y in ys]).mean(0)
        if self.training:
            self._carry_on(self.ranks.add_up(own.detach().to(torch.float64, copy=True)), part.reach)
        log_m = self.marginal.clamp_min(torch.finfo(share.dtype).tiny).log().to(share)
        constant = self.marginal.sum().item() / self.ranks.size
        entropy = torch.stack(
            [-torch.dot((y * log_y).sum(0), share) for y, log_y in zip(ys, log_ys, strict=True)]
        ).mean()
        return entropy + self.mi_lambda * (torch.dot(own, log_m + 1.0) - constant)

    def _carry_on(self, own: Tensor, reach: float) -> None:
        """Update the running mean of the class marginal: at first the mean of all steps so far."""
        rate = max(RATE, reach, 1.0 / (int(self.steps) + 1))
        self.marginal.lerp_(own.to(self.marginal), rate)
        self.steps += 1

    def _operator(self, part: Part, x: SparseMatrix | Tensor, log_y: Tensor) -> SparseMatrix:
        """What makes the jumps along the part's edges out of predictions; see :class:`everynode.TotalVariation`."""
        i, j = part.edges
        w, roots = part.scale, len(part.roots)
        factor = part.edge_weight / max(self.num_edges, 1)
        if self.tv_gate != "none":
            x = x[:roots].cpu() if isinstance(x, Tensor) else x.rows(torch.arange(roots))[0]
            x = normalize_rows(x) if self.tv_gate == "row" else x
            factor = factor * np.exp(-squared_differences(x, self.scale, w, i, j) / self.tv_sigma)
        values = np.stack([factor * w[i], -factor * w[j]], axis=1).ravel()
        pattern = Pattern(
            torch.arange(0, 2 * len(i) + 1, 2),
            torch.from_numpy(part.edges.T.ravel()),
            (len(i), roots),
        )
        return SparseMatrix(pattern, torch.from_numpy(values).to(log_y.dtype)).to(log_y.device)

    def _cross_validating(
        self, logits: Tensor, part: Part, labels: Tensor, model: nn.Module
    ) -> Tensor:
        require_autograd(logits)
        due = int(self.calls) % self.cvg_every == 0
        one, other = self._halves(part) if due else (np.zeros(0, np.int64), np.zeros(0, np.int64))
        if self.training:
            self.calls += 1
        if not len(one) or not len(other):  # not due, or nothing to halve
            return logits[:1].sum() * 0.0
        nodes = torch.arange(len(labels), device=logits.device)
        mine = [
            half[(half >= part.start) & (half < part.start + len(nodes))] - part.start
            for half in (one, other)
        ]
        totals = self._total(part.together[one]), self._total(part.together[other])
        shared = Shared(totals, self.ranks.add_up if self.ranks.size > 1 else None)
        halves = (
            torch.from_numpy(mine[0]).to(nodes.device),
            torch.from_numpy(mine[1]).to(nodes.device),
        )
        weight = None if self.class_weight is None else self.class_weight.to(nodes.device)
        term: Tensor | None = None
        if isinstance(model, Network):
            term = model.gradient_cosine(logits, nodes, labels, halves, weight, shared, factor=-1.0)
        if term is None and shared.add_up:
            raise UsageError(
                "Cross-validating gradients over several processes need everynode's own network, without hooks and with no weight frozen."
            )
        if term is None:
            losses = [cross_entropy(logits[: len(labels)], labels, half, weight) for half in halves]
            term = cross_validating_gradients(losses[0], losses[1], trainable(model))
        return term

    def _total(self, nodes: np.ndarray) -> float:
        """How much training nodes weigh together."""
        return (
            len(nodes)
            if self.class_weight is None
            else self.class_weight[self.labels[torch.from_numpy(nodes)]].sum().item()
        )

    def _halves(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """Two halves of the training nodes of all processes, as positions among them."""
        if self.first_half is not None:
            in_first = self.first_half[part.together]
            return np.flatnonzero(in_first), np.flatnonzero(~in_first)
        rng = np.random.Generator(np.random.SFC64([self.seed, int(self.calls)]))
        labels = self.labels[torch.from_numpy(part.together)]
        one, other = draw_halves(torch.arange(len(labels)), labels, self.halves, rng)
        return one.numpy(), other.numpy()

    def _fixed_half(self, graph: Graph | DiskGraph, fold: int) -> np.ndarray:
        """Which training nodes are in the first of two halves that stay the same."""
        nodes = graph.nodes("train", fold)
        one, _ = draw_halves(
            nodes,
            graph.labels[nodes],
            "random",
            np.random.Generator(np.random.SFC64([self.seed, 0])),
        )
        in_first = np.zeros(graph.num_nodes, dtype=bool)
        in_first[one.numpy()] = True
        return in_first


def _blocks(graph: Graph | DiskGraph) -> Iterator[SparseMatrix | Tensor]:
    """The features, some rows at a time."""
    for start in range(0, graph.num_nodes, ROWS):
        yield graph.rows(np.arange(start, min(start + ROWS, graph.num_nodes)))
