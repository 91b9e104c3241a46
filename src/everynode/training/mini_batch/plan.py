"""The seeds of every step, and the number of nodes that each seed represents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from everynode.errors import DataError, UsageError
from everynode.extras import need_extra
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.neighbors import Integers, Neighbors

#: The purposes of random numbers. CVG's halves use another generator, as on the full graph.
SEEDS, SURROUNDINGS, ORDER = 1, 2, 3


def generator(purpose: int, *numbers: int) -> np.random.Generator:
    """Return a generator that depends on these numbers and on the purpose.

    The purpose is a spawn key, since NumPy pads a short seed with zeros: [3, 7] and [3, 7, 0, 0]
    would be one stream.
    """
    return np.random.Generator(
        np.random.SFC64(np.random.SeedSequence(numbers, spawn_key=(purpose,)))
    )


class Seeds(NamedTuple):
    """The seeds of a step, of all processes together.

    Attributes
    ----------
    labeled, others : array
        Training nodes, and other nodes.
    """

    labeled: Integers
    others: Integers


class Plan(ABC):
    """The seeds of every step of every epoch.

    Sums over seeds are weighted: their mean over the steps of an epoch is the sum over the graph.
    If an epoch draws only some of the other nodes, this holds in expectation.

    Parameters
    ----------
    train : array
        The training nodes.
    seed : int
        The seed of all draws.

    Attributes
    ----------
    steps : int
        The number of steps in an epoch.
    of_labeled, of_others : float
        The number of nodes that a training node and another seed represent.
    """

    steps: int
    of_labeled: float
    of_others: float

    def __init__(self, train: Integers, seed: int):
        self.train, self.seed = train, seed
        self._epoch, self._seeds = -1, list[Seeds]()

    def seeds(self, epoch: int, step: int) -> Seeds:
        """Return the seeds of a step, the same at every call."""
        if epoch != self._epoch:
            self._epoch, self._seeds = epoch, self._draw(generator(SEEDS, self.seed, epoch))
        return self._seeds[step]

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> list[Seeds]:
        """Draw the seeds of an epoch."""


class AtRandom(Plan):
    """Visit the training nodes once an epoch, in steps of ``size`` seeds.

    At most half of the seeds are training nodes, since every node counts. If the other nodes do
    not fit into one epoch, each epoch draws some of them.

    Parameters
    ----------
    train : array
        The training nodes.
    n : int
        The number of nodes.
    size : int
        The number of seeds of a step.
    with_others : bool
        Whether other nodes are seeds too; False if the objective looks at labels only.
    seed : int
        The seed of all draws.

    Attributes
    ----------
    others : array
        The nodes outside training that may be seeds.
    used : int
        The number of them in an epoch.
    """

    def __init__(self, train: Integers, n: int, size: int, *, with_others: bool, seed: int):
        super().__init__(train, seed)
        is_other = np.ones(n, dtype=bool)
        is_other[train] = False
        self.others = np.flatnonzero(is_other) if with_others else np.zeros(0, dtype=np.int64)
        self.steps = max(1, math.ceil(len(train) / (size // 2 if len(self.others) else size)))
        room = self.steps * max(0, size - math.ceil(len(train) / self.steps))
        self.used = min(len(self.others), room)
        self.of_labeled = float(self.steps)
        self.of_others = self.steps * len(self.others) / max(self.used, 1)

    def _draw(self, rng: np.random.Generator) -> list[Seeds]:
        labeled = np.array_split(rng.permutation(self.train), self.steps)
        others = np.array_split(rng.choice(self.others, self.used, replace=False), self.steps)
        return [Seeds(*both) for both in zip(labeled, others, strict=True)]


class ByCluster(Plan):
    """Visit all nodes once an epoch, in steps of whole clusters with about ``size`` seeds.

    Nodes of a cluster share many neighbors, so their neighborhoods are smaller than those of random
    nodes.

    Parameters
    ----------
    train : array
        The training nodes.
    cluster_of : array
        The cluster of each node.
    size : int
        The approximate number of seeds of a step.
    seed : int
        The seed of all draws.

    Attributes
    ----------
    clusters : int
        The number of clusters.
    """

    def __init__(self, train: Integers, cluster_of: Integers, size: int, *, seed: int):
        super().__init__(train, seed)
        self.clusters = int(cluster_of.max(initial=0)) + 1
        order = np.argsort(cluster_of, kind="stable")
        self._nodes = np.split(order, np.cumsum(np.bincount(cluster_of))[:-1])
        self._is_train = np.zeros(len(cluster_of), dtype=bool)
        self._is_train[train] = True
        self.steps = min(self.clusters, max(1, round(len(cluster_of) / size)))
        self.of_labeled = self.of_others = float(self.steps)

    def _draw(self, rng: np.random.Generator) -> list[Seeds]:
        groups = np.array_split(rng.permutation(self.clusters), self.steps)
        nodes = [np.concatenate([self._nodes[cluster] for cluster in group]) for group in groups]
        return [Seeds(part[self._is_train[part]], part[~self._is_train[part]]) for part in nodes]


def plan_for(
    graph: Graph | DiskGraph,
    size: int,
    *,
    fold: int,
    clusters: int | None,
    with_others: bool,
    seed: int,
) -> Plan:
    """Return the plan of a graph: at random, or by cluster if ``clusters`` is given."""
    if graph.labels.device.type != "cpu":
        raise UsageError(
            "Batches are drawn on the CPU: pass the graph on the CPU, "
            "and move each batch with batch.to(device)."
        )
    if graph.directed:
        raise UsageError(
            "Batches are for undirected graphs: leave out --directed, or train on the whole graph."
        )
    train = graph.nodes("train", fold)
    if not len(train):
        raise DataError(
            f"Fold {fold} of graph {graph.name!r} has no labeled training node: "
            "label a few nodes of each class first."
        )
    if clusters:
        return ByCluster(train.numpy(), cut(graph.neighbors, clusters), size, seed=seed)
    return AtRandom(train.numpy(), graph.num_nodes, size, with_others=with_others, seed=seed)


def cut(neighbors: Neighbors, clusters: int) -> Integers:
    """Return each node's cluster; METIS cuts the graph into equal parts through few edges."""
    pymetis: Any = need_extra(
        "scale", "Cutting a graph into clusters", otherwise=", or leave out --clusters"
    )
    n = len(neighbors.crow) - 1
    if clusters > n:
        raise UsageError(
            f"The graph has {n} nodes and cannot be cut into {clusters} clusters: "
            "give --clusters a smaller number."
        )
    csr = pymetis.CSRAdjacency(neighbors.crow, np.asarray(neighbors.col))
    _, cluster_of = pymetis.part_graph(clusters, csr, options=pymetis.Options(seed=0))
    # Clusters may be empty: number the others.
    return np.unique(np.asarray(cluster_of), return_inverse=True)[1]
