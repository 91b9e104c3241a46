"""Term: the protocol of a summand of the objective, and the step of training that it sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from everynode.errors import UsageError, require
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.numerics import log_softmax_by_class

#: What a term may need; see :class:`Term`.
NEEDS = frozenset({"labels", "edges", "passes", "model", "every_node"})


class Processes(Protocol):
    """The processes that train together.

    Attributes
    ----------
    size : int
        The number of processes.
    """

    size: int

    def add_up(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, in place."""


class OneProcess:
    """A training in a single process."""

    size = 1

    def add_up(self, tensor: Tensor) -> Tensor:
        """Return the tensor."""
        return tensor


@dataclass(frozen=True, eq=False)
class Step:
    """One training step, as the terms see it.

    Parameters
    ----------
    passes : sequence of Tensor
        The r x k logits of the sample's rows, from each pass of the model.
    sample : Sample
        The part of the graph.
    model : nn.Module or iterable of Tensor, optional
        The model that computed the logits, or its parameters.
    processes : Processes
        The processes that share the step.
    with_gradient : bool
        Whether autograd was enabled when the step began.
    epoch : int, optional
        The epoch, from 0; None if nobody counts.
    graphs : sequence of Graph
        The graph that each pass saw, if edges were left out or replaced; else empty.
    """

    passes: Sequence[Tensor]
    sample: Sample
    model: nn.Module | Iterable[Tensor] | None = None
    processes: Processes = field(default_factory=OneProcess)
    with_gradient: bool = field(default_factory=torch.is_grad_enabled)
    epoch: int | None = None
    graphs: Sequence[Graph] = ()

    @cached_property
    def log_y(self) -> list[Tensor]:
        """The k x r log-probabilities of each pass, computed once for all terms."""
        # The first caller may run under no_grad; the others still need the graph.
        with torch.set_grad_enabled(self.with_gradient):
            return [log_softmax_by_class(logits) for logits in self.passes]


class Term(nn.Module):
    """A summand of the objective; subclass it to write your own.

    A term needs a name, a default weight, and :meth:`forward`, which maps the logits of a sample
    to a number. The means of :class:`~everynode.graph.sample.Sample` make the same code correct for
    the full graph and for mini-batches.

    Parameters
    ----------
    weight : float, optional
        The weight of the term in the objective; None: ``default_weight``.

    Attributes
    ----------
    name : str
        The name in the objective's breakdown, on the command line, and in records.
    default_weight : float
        The weight without an argument.
    needs : frozenset of str
        What the term needs:
        ``labels``: it looks at the labeled rows only;
        ``edges``: the sample must have edges;
        ``passes``: it compares two passes of the model with different dropout;
        ``model``: it takes gradients with respect to the parameters of the model;
        ``every_node``: it cannot be estimated from a part of the graph.
    additive : bool
        Whether the values of several processes add up to the term (the default). Otherwise each
        process has the whole value.

    Examples
    --------
    A term that penalizes the entropy at nodes with many neighbors:

    >>> class HubEntropy(Term):
    ...     name = "hub_entropy"
    ...     default_weight = 0.1
    ...
    ...     def forward(self, logits, sample):
    ...         log_y = logits.log_softmax(1)
    ...         entropy = -(log_y.exp() * log_y).sum(1)
    ...         return sample.mean_over_nodes(entropy * (1 - sample.scale.to(entropy)))
    >>> from everynode import ENC, load
    >>> graph = load("citeseer")
    >>> objective = ENC(graph, cvg=0, terms=[HubEntropy(weight=0.2)])
    >>> logits = torch.zeros(graph.num_nodes, graph.num_classes)
    >>> objective.breakdown(logits)["hub_entropy"]
    tensor(0.7464)
    """

    name: ClassVar[str] = ""
    default_weight: ClassVar[float] = 1.0
    needs: ClassVar[frozenset[str]] = frozenset()
    additive: ClassVar[bool] = True

    def __init__(self, weight: float | None = None):
        super().__init__()
        self.weight = self.default_weight if weight is None else weight
        require(self.weight >= 0, "weight", type(self).__name__, ">= 0", self.weight)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        expected = f"a subset of {', '.join(sorted(NEEDS))}"
        require(set(cls.needs) <= NEEDS, "needs", cls.__name__, expected, set(cls.needs))

    def bind(
        self, graph: Graph | DiskGraph, *, fold: int = 0, seed: int = 0, class_weight: Any = None
    ) -> Self:
        """Prepare what depends on the graph alone; :class:`everynode.ENC` calls it once.

        Parameters
        ----------
        graph : Graph or DiskGraph
            The graph that is trained on. ``graph.cached(key, make)`` shares work between folds.
        fold : int
            The fold whose training nodes are labeled.
        seed : int
            The seed of the term's own random numbers.
        class_weight : None, "balanced" or mapping
            The weight of each class; see :class:`everynode.ENC`.
        """
        return self

    def forward(self, logits: Tensor, sample: Sample) -> Tensor:
        """Return the term, a scalar, for the r x k logits of one pass."""
        raise NotImplementedError(f"{type(self).__name__} needs a forward(logits, sample).")

    def evaluate(self, step: Step) -> Tensor:
        """Return the term for a step: the mean of :meth:`forward` over the passes."""
        return mean_of([self(logits, step.sample) for logits in step.passes])

    def weighted(self, step: Step, weight: float) -> tuple[Tensor, Tensor]:
        """Return the term, and ``weight`` times the term."""
        value = self.evaluate(step)
        return value, weight * value

    def extra_repr(self) -> str:
        """Return what ``repr`` shows in the parentheses: the weight."""
        return f"weight={self.weight:g}"

    def factor(self, epoch: int) -> float:
        """Return the share of the weight that counts in an epoch (from 0)."""
        return 1.0

    def check_sample(self, sample: Sample) -> None:
        """Refuse a part of the graph if the term needs every node."""
        if "every_node" in self.needs and not sample.is_full:
            raise UsageError(self.refusal)

    @property
    def passes(self) -> int:
        """The number of passes of the model that the term needs in a step."""
        return 2 if "passes" in self.needs else 1

    @property
    def refusal(self) -> str:
        """The sentence that refuses a mini-batch."""
        return (
            f"The term {self.term_name!r} needs the predictions of every node at once: "
            f"train on the full graph (no batches), or set {self.term_name}=0."
        )

    @property
    def looks_beyond_labels(self) -> bool:
        """Whether the term looks at nodes without a training label."""
        return not ("labels" in self.needs and self.needs <= {"labels", "model"})

    @property
    def term_name(self) -> str:
        """The name of the term: ``name``, or that of its class in lower case."""
        return self.name or type(self).__name__.lower()


def mean_of(values: Sequence[Tensor]) -> Tensor:
    """Return the mean of scalars, one for each pass."""
    return values[0] if len(values) == 1 else torch.stack(list(values)).mean()
