"""Which nodes are the seeds of which step, and what they count for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from everynode.neighbours import Integers


class Seeds(NamedTuple):
    """The seeds of a step, of all processes together."""

    #: Training nodes, and nodes that are not.
    labelled: Integers
    others: Integers


class Plan:
    """An epoch goes through the training nodes once, in steps of ``size`` seeds, at most half of which are training nodes.

    The other half are other nodes, since every node counts. Where they do not all fit into an epoch, each epoch draws some of them. If
    ``with_others`` is False (the objective is about labels only), all seeds are training nodes.

    Sums over seeds are weighted so that their mean over the steps of an epoch is the sum over the graph: by ``of_labelled`` and by
    ``of_others``. (Where the others are drawn, it is so on average over the draws.)
    """

    def __init__(self, train: Integers, n: int, size: int, *, with_others: bool, seed: int):
        is_other = np.ones(n, dtype=bool)
        is_other[train] = False
        self.train, self.seed = train, seed
        self.others = np.flatnonzero(is_other) if with_others else np.zeros(0, dtype=np.int64)
        self.steps = max(1, math.ceil(len(train) / (size // 2 if len(self.others) else size)))
        room = self.steps * max(0, size - math.ceil(len(train) / self.steps))
        self.used = min(len(self.others), room)
        self.of_labelled = float(self.steps)
        self.of_others = self.steps * len(self.others) / max(self.used, 1)
        self._epoch, self._seeds = -1, list[Seeds]()

    def seeds(self, epoch: int, step: int) -> Seeds:
        """The same whenever they are asked for."""
        if epoch != self._epoch:
            rng = np.random.Generator(np.random.SFC64([self.seed, epoch]))
            labelled = np.array_split(rng.permutation(self.train), self.steps)
            others = np.array_split(rng.choice(self.others, self.used, replace=False), self.steps)
            self._epoch, self._seeds = epoch, [Seeds(*both) for both in zip(labelled, others, strict=True)]
        return self._seeds[step]
