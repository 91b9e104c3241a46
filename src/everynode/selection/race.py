"""The race of the portfolio: results by candidate, their comparison, and who drops out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from everynode.graph import Graph
from everynode.graph.preparation import FittedPreparation
from everynode.selection.candidate import Candidate
from everynode.selection.cross_validation import with_all_labels
from everynode.selection.fold_result import FoldResult
from everynode.selection.greedy_ensemble import SLACK, calibrated, node_losses, paired_gap
from everynode.training.closed_form import is_closed_form

#: The handicap of a network, in nats per fold. The nodes that judge it also chose its epoch, which
#: lowers its loss by about one nat, as a fitted parameter does in Akaike's criterion.
EPOCH_NATS = 1.0
#: A candidate is dropped if its loss exceeds the best one by more than this many standard errors.
MARGIN = 2.0
#: At least this many candidates stay.
LEAST = 3
#: With fewer judged nodes, only the margin drops candidates: their order is mostly chance.
FEW_NODES = 30


@dataclass
class Race:
    """The results of the portfolio.

    Attributes
    ----------
    graph : Graph
        The graph with its folds.
    candidates : dict of str to Candidate
        The candidates by name.
    preparations : dict of str to FittedPreparation
        The fitted preparations by name.
    results : dict of str to list of FoldResult
        The finished jobs of each candidate.
    outcomes : dict of str to str
        Why a candidate is not among the finalists.
    class_weight : Tensor or None
        The weight of each class in the comparison of the candidates.
    interrupted, cut : bool
        Whether Ctrl-C or the time limit ended the search.
    seconds : float
        The time of the search.
    all_labels : int or None
        The split that trains on the labels of all folds; None: validation nodes were given.
    """

    graph: Graph
    candidates: dict[str, Candidate]
    preparations: dict[str, FittedPreparation]
    results: dict[str, list[FoldResult]] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    cut: bool = False
    seconds: float = 0.0
    class_weight: Tensor | None = None
    all_labels: int | None = None
    _cache: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    def add_all_labels(self) -> Graph:
        """Add the split of all labels after cross-validation, and return the graph with it."""
        self.graph, self.all_labels = with_all_labels(self.graph), len(self.graph.splits)
        return self.graph

    def folds(self, name: str) -> set[int]:
        """Return the folds that a candidate has finished."""
        return {result.card["fold"] for result in self.results.get(name, ())}

    def needs(self, name: str, unit: tuple[int, int], units: Sequence[tuple[int, int]]) -> bool:
        """Whether a candidate trains on a fold with a seed: without seeds, once per fold."""
        first = next(seed for fold, seed in units if fold == unit[0])
        return self.candidates[name].seeded or unit[1] == first

    def alive(self) -> list[str]:
        """Return the candidates with a result that were not dropped."""
        return [name for name in self.candidates if self.folds(name) and name not in self.outcomes]

    def nodes(self, folds: Sequence[int]) -> Tensor:
        """Return the validation nodes of some folds."""
        return torch.cat([self.graph.nodes("val", fold) for fold in folds]).cpu()

    def labels(self, folds: Sequence[int]) -> Tensor:
        """Return the labels of the validation nodes of some folds."""
        return self.graph.labels.cpu()[self.nodes(folds)]

    def node_weight(self, folds: Sequence[int]) -> np.ndarray:
        """Return the weight of each validation node in the comparison, of mean 1."""
        labels = self.labels(folds)
        if self.class_weight is None:
            return np.ones(len(labels))
        weight: np.ndarray = self.class_weight.double().cpu()[labels].numpy()
        return weight / max(weight.mean(), 1e-300)

    def logits(self, name: str, folds: Sequence[int]) -> Tensor:
        """Return the out-of-fold logits: the mean log-probabilities over the seeds of each fold."""
        parts = []
        for fold in folds:
            each = [
                torch.log_softmax(result.logits, dim=1)
                for result in self.results[name]
                if result.card["fold"] == fold
            ]
            mean = torch.logsumexp(torch.stack(each), dim=0) - np.log(len(each))
            parts.append(each[0] if len(each) == 1 else mean)
        return torch.cat(parts)

    def losses(self, names: Sequence[str], folds: Sequence[int]) -> np.ndarray:
        """Return candidates x nodes: the calibrated out-of-fold log-loss of each node."""
        return np.stack([self._losses(name, tuple(folds)) for name in names])

    def handicap(self, names: Sequence[str], folds: Sequence[int]) -> np.ndarray:
        """Return the optimism from choosing the epoch, in nats per node, for each candidate."""
        each = EPOCH_NATS * len(folds) / max(len(self.labels(folds)), 1)
        solved = [is_closed_form(self.candidates[name].settings) for name in names]
        return np.where(solved, 0.0, each)

    def _losses(self, name: str, folds: tuple[int, ...]) -> np.ndarray:
        key = name, folds, len(self.results[name])
        if key not in self._cache:
            labels = self.labels(folds)
            log_p, _ = calibrated(self.logits(name, folds), labels)
            self._cache[key] = node_losses(log_p, labels) * self.node_weight(folds)
        return self._cache[key]

    def common_folds(self) -> tuple[list[str], list[int]]:
        """Return the finalists and the folds that all of them have finished.

        After a time limit or Ctrl-C, candidates may have finished different folds: the finalists
        are those with the most folds, at least :data:`LEAST` of them where possible.
        """
        alive = self.alive()
        if not alive:
            return [], []
        least = min(LEAST, len(alive))
        for size in range(max(len(self.folds(n)) for n in alive), 0, -1):
            finalists = [n for n in alive if len(self.folds(n)) >= size]
            common = set.intersection(*(self.folds(n) for n in finalists)) if finalists else set()
            if len(finalists) >= least and len(common) >= min(size, 1):
                return finalists, sorted(common)
        return alive[:1], sorted(self.folds(alive[0]))

    def drop(self, at_most: int) -> list[str]:
        """Drop the clearly worse candidates, and return the rest, the best first.

        The best candidate of every kind (features, graph, both) stays: their comparison says what
        the graph adds.
        """
        names, folds = self.common_folds()
        if not names:
            return []
        losses = self.losses(names, folds) + self.handicap(names, folds)[:, None]
        order = [int(i) for i in np.argsort(losses.mean(1), kind="stable")]
        best_of_kind = {self.candidates[names[i]].uses: i for i in reversed(order)}.values()
        stay = []
        for rank, i in enumerate(order):
            gap, error = paired_gap(losses[i], losses[order[0]])
            slack = error + SLACK / math.sqrt(losses.shape[1])
            room = rank < at_most or losses.shape[1] < FEW_NODES
            near = rank < LEAST or (gap <= MARGIN * slack and room)
            if near or i in best_of_kind:
                stay.append(names[i])
            else:
                count = len(folds)
                after = f"{count} folds" if count > 1 else "its first training"
                self.outcomes[names[i]] = f"dropped after {after}"
        return stay

    def best(self) -> str:
        """Return the best candidate so far with its accuracy, for progress."""
        names, folds = self.common_folds()
        if not names:
            return ""
        judged = self.losses(names, folds).mean(1) + self.handicap(names, folds)
        i = int(judged.argmin())
        right = (self.logits(names[i], folds).argmax(1) == self.labels(folds)).double().mean()
        return f"best so far {names[i]} {100 * float(right):.1f} %"
