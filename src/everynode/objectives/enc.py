"""ENC: the weighted sum of the terms. Every node counts."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from everynode import plugins
from everynode.errors import UsageError, require, unknown
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.graph.sample import Sample
from everynode.objectives import fused
from everynode.objectives.cross_entropy import CrossEntropy
from everynode.objectives.input_checks import refuse_unrelated_model, warn_of_probabilities
from everynode.objectives.term import OneProcess, Processes, Step, Term
from everynode.settings import TERMS, Settings, declarations

#: Weights that are safe on graphs that they were not tuned on (docs/archive/accuracy.md). The TV
#: of 5 of the presets is not: with few labels and weak features, accuracy falls towards chance.
SAFE_WEIGHTS = {"tv": 0.5}
#: The default of every option of ENC: the settings of the group "Objective", with safe weights.
OPTIONS: dict[str, Any] = Settings().group("Objective") | SAFE_WEIGHTS


class ENC(nn.Module):
    r"""The objective of "Every Node Counts", for any training loop and any model of n x k logits.

    .. math:: \mathcal{L} = \mathcal{L}_{CE} + \alpha \mathcal{L}_{MI} + \beta \mathcal{L}_{TV}
              + \gamma \mathcal{L}_{CVG}

    It is the weighted sum of cross-entropy and any other :class:`~everynode.Term`. A term of
    weight 0 is not computed. The default weights are light ones that are safe on graphs that they
    were not tuned on; the presets have heavier ones for certain graphs.

    Parameters
    ----------
    graph : Graph or DiskGraph
        The graph to train on.
    terms : sequence of Term
        Further terms, added to the sum: your own, or one whose constructor takes data, such as
        ``ClassPrior(3.0, shares=[0.9, 0.1])``.
    fold : int
        The fold whose training nodes are labeled.
    seed : int
        The seed of the terms' own random numbers.
    mi, tv, cvg, ... : float
        The weight of each term of :data:`everynode.settings.TERMS`; 0 leaves it out.
    class_weight : None, "balanced" or mapping, optional
        The weight of each class in cross-entropy and in CVG's halves. ``balanced``: every class
        weighs the same, no matter how many of its nodes are labeled. A mapping: the weight of
        each class name; a class that is missing weighs 1.
    **options
        The other settings of the group "Objective": ``everynode train --help`` lists them.

    Attributes
    ----------
    terms : nn.ModuleDict
        The terms by name.
    weights : dict
        The weight of each term by name. A change counts from the next step.
    epoch : int or None
        The current epoch (from 0), for terms whose weight grows. None: full weights.
    graphs : sequence of Graph
        The graphs that the passes of the current step saw, if edges were left out or replaced.
    passes : int
        The number of passes of the model in a step: 2 with ``consistency``, else 1. Pass the
        logits of all, ``objective((model(x), model(x)), model)``.
    processes : Processes
        The processes that train together.

    Examples
    --------
    >>> import torch
    >>> from everynode.graph import Graph, Split
    >>> nodes = torch.arange(4)
    >>> split = Split(nodes[:3], nodes[3:], nodes[:0])
    >>> x, edges, labels = torch.eye(4), [[0, 1, 2], [1, 2, 3]], [0, 0, 1, 1]
    >>> graph = Graph.from_arrays(x, edges, labels, splits=[split])
    >>> model = torch.nn.Linear(4, 2)
    >>> objective = ENC(graph, mi=1.0, tv=2.0, cvg=1.0)
    >>> loss = objective(model(graph.dense_features), model)
    >>> loss.backward()
    >>> sorted(objective.breakdown(model(graph.dense_features), model))
    ['ce', 'cvg', 'mi', 'total', 'tv']
    """

    def __init__(
        self,
        graph: Graph | DiskGraph,
        *,
        terms: Sequence[Term] = (),
        fold: int = 0,
        seed: int = 0,
        **options: Any,
    ):
        super().__init__()
        if not isinstance(graph, Graph | DiskGraph):
            raise UsageError(
                f"ENC takes an everynode Graph, not a {type(graph).__name__}: "
                "for PyG's Data, ENC(Graph.from_pyg(data))."
            )
        _check_options(options)
        require(seed >= 0, "seed", "ENC", ">= 0", seed)
        values = OPTIONS | options
        active = [*_declared_terms(values), *_plugin_terms(values["weights"]), *terms]
        if not any(_name_of(term) == "ce" for term in active):
            active.insert(0, CrossEntropy(values["ce"]))
        self.terms = nn.ModuleDict()
        for term in active:
            name = _name_of(term)
            if name in self.terms:
                raise UsageError(
                    f"ENC has two terms named {name!r}: set {name}=0, or rename your term."
                )
            class_weight = values["class_weight"]
            term.bind(graph, fold=fold, seed=seed, class_weight=class_weight)
            self.terms[name] = term
        self.weights: dict[str, float] = {_name_of(term): term.weight for term in active}
        self.epoch: int | None = None
        self.graphs: Sequence[Graph] = ()
        self.passes = max(term.passes for term in self._terms())
        self.processes: Processes = OneProcess()
        self._fused = fused.fuse(self.terms.values())
        self._num_classes, self._checked = graph.num_classes, False
        self._everything = Sample.of_graph(graph, fold) if isinstance(graph, Graph) else None
        if self._everything is None:
            self.check_mini_batches()

    @classmethod
    def from_settings(
        cls,
        graph: Graph | DiskGraph,
        settings: Settings,
        *,
        fold: int = 0,
        seed: int = 0,
        ranks: Processes | None = None,
    ) -> ENC:
        """Return the objective of some settings; ``ranks``: the processes that train together."""
        objective = cls(graph, fold=fold, seed=seed, **settings.group("Objective"))
        objective.processes = ranks or objective.processes
        return objective

    @property
    def needs(self) -> frozenset[str]:
        """The needs of all terms; see :class:`everynode.Term`."""
        return frozenset().union(*(term.needs for term in self._terms()))

    @property
    def looks_beyond_labels(self) -> bool:
        """Whether a term looks at nodes without a training label."""
        return any(term.looks_beyond_labels for term in self._terms())

    def check_mini_batches(self) -> None:
        """Refuse mini-batches if a term needs every node at once."""
        for term in self._terms():
            if "every_node" in term.needs:
                raise UsageError(term.refusal)

    def breakdown(
        self,
        logits: Tensor | Sequence[Tensor],
        model: nn.Module | Iterable[Tensor] | None = None,
        batch: Any = None,
    ) -> dict[str, Tensor]:
        """Return each term before weighting, by name, and their weighted sum as ``total``.

        Parameters
        ----------
        logits : Tensor, or sequence of Tensor
            The logits that the model gave in this step, or those of each pass. Of several passes,
            consistency compares all, CVG takes the last one, and the other terms the mean.
        model : nn.Module, or its parameters
            The model, which CVG needs.
        batch : Sample, or batch of NeighborLoader, optional
            The part of the graph that the logits belong to; None: the full graph.
        """
        step, weights = self._step(logits, model, batch), self.current_weights()
        values: dict[str, Tensor] = {}
        total: Tensor | None = None
        if self._fused and self._fused.is_of(self.terms.values()):
            together = self._fused.evaluate(step, weights)
            if together:
                values, total = together
        for name, term in self.terms.items():
            if name not in values:
                assert isinstance(term, Term)
                values[name], weighted = term.weighted(step, weights[name])
                if values[name].ndim:
                    raise UsageError(
                        f"The term {name!r} must return a single number. Got a tensor of shape "
                        f"{tuple(values[name].shape)}: take a mean, such as sample.mean_over_nodes."
                    )
                total = weighted if total is None else total + weighted
        assert total is not None  # cross-entropy is always a term
        return {**{name: values[name] for name in self.terms}, "total": total}

    def current_weights(self) -> dict[str, float]:
        """Return the weight of each term in the current epoch; all of it if none was set."""
        if self.epoch is None:
            return self.weights
        factors = {term.term_name: term.factor(self.epoch) for term in self._terms()}
        return {name: weight * factors[name] for name, weight in self.weights.items()}

    def forward(
        self,
        logits: Tensor | Sequence[Tensor],
        model: nn.Module | Iterable[Tensor] | None = None,
        batch: Any = None,
    ) -> Tensor:
        """Return the weighted sum; parameters as those of :meth:`breakdown`."""
        return self.breakdown(logits, model, batch)["total"]

    def _terms(self) -> list[Term]:
        return [term for term in self.terms.values() if isinstance(term, Term)]

    def _step(
        self,
        logits: Tensor | Sequence[Tensor],
        model: nn.Module | Iterable[Tensor] | None,
        batch: Any,
    ) -> Step:
        """Check the logits against the sample."""
        sample = self._everything if batch is None else getattr(batch, "sample", batch)
        if sample is None:
            raise UsageError(
                "The graph is on disk, so ENC needs a batch: call objective(logits, model, batch) "
                "with the batches of a NeighborLoader."
            )
        if not isinstance(sample, Sample):
            raise UsageError(
                "The batch of ENC must be a Sample or a batch of everynode's NeighborLoader. "
                f"Got a {type(batch).__name__}."
            )
        passes = [logits] if isinstance(logits, Tensor) else list(logits)
        if not passes:
            raise UsageError("ENC needs the logits of at least one pass. Got none.")
        n, k = sample.num_nodes, self._num_classes
        for i, one in enumerate(passes):
            got = " x ".join(map(str, one.shape))
            if sample.is_full and one.shape != (n, k):
                raise UsageError(f"ENC needs the logits of every node, {n} x {k}. Got {got}.")
            if len(one) < n or one.shape[1:] != (k,):
                raise UsageError(
                    f"ENC needs the logits of the batch's first {n} nodes, {n} x {k}. Got {got}."
                )
            if len(one) > n:
                passes[i] = one[:n]
        if not sample.is_full:
            for term in self._terms():
                term.check_sample(sample)
        if not self._checked:
            self._checked = True
            warn_of_probabilities(passes[0])
            refuse_unrelated_model(passes[0], model)
        on_device = sample.to(passes[0].device)
        return Step(passes, on_device, model, self.processes, epoch=self.epoch, graphs=self.graphs)

    def _apply(self, fn: Any, recurse: bool = True) -> ENC:
        super()._apply(fn, recurse)
        if self._everything is not None:
            # Shares keep their precision; only the device follows.
            self._everything = self._everything.to(fn(torch.empty(0)).device)
        return self


def _name_of(term: Term) -> str:
    if not isinstance(term, Term):
        raise UsageError(
            f"The terms of ENC must be everynode.Term objects. Got a {type(term).__name__}."
        )
    return term.term_name


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, has another type, or is out of its range."""
    for name, value in options.items():
        if name not in OPTIONS:
            unknown("option of ENC", name, OPTIONS)
        declarations()[name].check(name, value, OPTIONS[name], owner="ENC")


def _declared_terms(values: Mapping[str, Any]) -> list[Term]:
    """Return the terms of :class:`Settings` that have a weight."""
    terms = []
    for name in TERMS:
        if values[name]:
            options = {
                declared.option: values[setting]
                for setting, declared in declarations().items()
                if declared.of_term == name
            }
            module, _, cls = declarations()[name].term.partition(":")
            terms.append(getattr(import_module(module), cls)(values[name], **options))
    return terms


def _plugin_terms(weights: Any) -> list[Term]:
    """Return the terms of plugins that have a weight."""
    active = {name: weight for name, weight in dict(weights).items() if weight}
    if not active:
        return []
    classes = plugins.terms()
    for name in active:
        if name not in classes:
            unknown("term", name, (*TERMS, *classes))
    return [classes[name](weight=weight) for name, weight in active.items()]


def _signature() -> inspect.Signature:
    """Return the signature of ENC, with every option of the settings."""
    first = [
        p
        for p in inspect.signature(ENC.__init__).parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.name != "self"
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    rest = [inspect.Parameter(name, keyword, default=value) for name, value in OPTIONS.items()]
    return inspect.Signature([*first, *rest])


ENC.__signature__ = _signature()  # type: ignore[attr-defined]
