"""Carrying a run out: what each task does, and the record it leaves."""

from __future__ import annotations

import dataclasses
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from everynode import __version__
from everynode.console import say
from everynode.errors import Diverged
from everynode.evaluation.metrics import confusion, scores
from everynode.experiments.run_spec import Run, Task
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.machine import cpu, others_running
from everynode.models import Network
from everynode.numerics import subnormals_flushed
from everynode.settings import TERMS
from everynode.training import TrainingResult, train
from everynode.training.checkpoint import UnusableState
from everynode.training.distributed import Ranks
from everynode.training.full_batch import build, layer_bytes, step
from everynode.training.loop import Report
from everynode.training.memory import forget_peak, peak_mb, reused_memory
from everynode.training.mini_batch.inference import infer

#: Significant digits of the numbers in a curve.
CURVE_DIGITS = 6
#: Seconds between two states of a training that are kept, at least: a run that is killed loses about as much, or the epoch in hand.
STATE_EVERY = 10.0
#: Steps that are timed, after some that are not.
TIMED, WARM_UP = 40, 5


@dataclass(frozen=True)
class Result:
    """What a run got."""

    #: The same whenever the run is done with the same versions, on a machine of the same kind. Another CPU rounds otherwise, and a few
    #: hundred epochs later a run may end elsewhere: benchmarks/redo.py.
    record: dict[str, Any]
    #: What it took: seconds and memory, which differ from time to time.
    cost: dict[str, float]
    #: By term or metric: its value after each epoch.
    curve: dict[str, list[float]] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Record and cost in one, as ``--json`` prints it."""
        return {**self.record, **self.cost}


def carry_out(run: Run, graph: Graph, state: Path | None = None) -> Result:
    """Do the run. A training that diverges is a result too: its record has ``error`` instead of scores.

    ``state``: where a training keeps its state, and goes on from it if there is one; one that is of no use (of an older everynode, say,
    or damaged) gives way to a new one.
    """
    try:
        try:
            return TASKS[run.task](run, graph, state)
        except UnusableState as error:
            assert state is not None  # what could not be used
            say(f"{error.args[0]}: the training begins anew.")
            state.unlink()
            return TASKS[run.task](run, graph, state)
    except Diverged as error:
        return Result({**run.describe(), "error": str(error), **_provenance(run)}, {})


def train_run(
    run: Run,
    graph: Graph | DiskGraph,
    *,
    report: Report | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = 1.0,
    ranks: Ranks | None = None,
) -> tuple[TrainingResult, Result]:
    """Train, select the epoch on validation, and only then look at the test nodes.

    The one exception is the curve ``test_accuracy``, from which nothing is selected: it is kept to show, as a diagnostic that says so,
    how much a choice of the epoch by test accuracy would have embellished the result. Training in batches keeps no such curve: it would
    cost more than the epochs.
    """
    forget_peak()
    test = graph.nodes("test", run.fold)
    fitted = train(
        graph, run.settings, fold=run.fold, seed=run.seed, report=report, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        test_nodes=None if run.batches else test, batches=run.batches, ranks=ranks,
    )  # fmt: skip
    nodes = {part: graph.nodes(part, run.fold) for part in ("val", "test")}
    logits = dict(
        zip(
            nodes,
            predict(fitted.network, graph, torch.cat(list(nodes.values()))).split(
                [*map(len, nodes.values())]
            ),
            strict=True,
        )
    )
    found: dict[str, Any] = {"val_loss": fitted.metrics["val_loss"]}
    for part, of_part in logits.items():
        labels = graph.labels[nodes[part]]
        measured = (
            scores(of_part, labels)
            if len(labels)
            else dict.fromkeys(("accuracy", "macro_f1", "nll", "ece"))
        )
        found |= {f"{part}_{name}": value for name, value in measured.items()}
    found["val_accuracy"] = fitted.metrics["val_accuracy"]
    watched = fitted.history.get("test_accuracy", [])
    record = {
        **run.describe(),
        "nodes": {part: len(graph.nodes(part, run.fold)) for part in ("train", "val", "test")},
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        **found,
        "test_oracle_accuracy": max(watched) if watched else None,
        "terms": {
            name: values[fitted.best_epoch]
            for name, values in fitted.history.items()
            if name in (*terms_of(run), "total")
        },
        "confusion": confusion(logits["test"], graph.labels[test]) if len(test) else None,
        "interrupted": fitted.interrupted,
        **(
            {"batches": dataclasses.asdict(run.batches), "processes": run.processes}
            if run.batches
            else {}
        ),
        **_provenance(run),
    }
    cost = {
        "seconds": round(fitted.seconds, 4),
        "seconds_per_epoch": round(fitted.seconds / fitted.epochs, 6),
        "peak_mb": round(peak_mb(), 1),
    }
    curve = {
        name: [float(f"{value:.{CURVE_DIGITS}g}") for value in values]
        for name, values in fitted.history.items()
    }
    return fitted, Result(record, cost, curve)


def predict(network: Network, graph: Graph | DiskGraph, nodes: Tensor) -> Tensor:
    """The logits of some nodes: a block at a time if the graph is on disk, or was left on the CPU because it is large."""
    if isinstance(graph, DiskGraph) or network.closing.weight.device != graph.labels.device:
        return infer(network, graph, nodes)
    with torch.no_grad():
        return network(graph)[nodes]


def terms_of(run: Run) -> tuple[str, ...]:
    """The terms of a run's objective, cross-entropy first."""
    return ("ce", *(term for term in TERMS if getattr(run.settings, term)))


def _train_to_the_end(run: Run, graph: Graph, state: Path | None) -> tuple[TrainingResult, Result]:
    fitted, result = train_run(run, graph, checkpoint=state, checkpoint_every=STATE_EVERY)
    if fitted.interrupted:  # with one worker Ctrl-C reaches the run itself
        raise KeyboardInterrupt
    return fitted, result


def _train(run: Run, graph: Graph, state: Path | None) -> Result:
    return _train_to_the_end(run, graph, state)[1]


def _time(run: Run, graph: Graph, state: Path | None) -> Result:
    """Medians of a training step and of a prediction for every node, in milliseconds; and how much else was running."""
    network, objective, optimiser = build(graph, run.settings, fold=run.fold, seed=run.seed)

    def infer() -> None:
        network.eval()
        with torch.no_grad():
            network(graph)

    with reused_memory(layer_bytes(graph, run.settings)):
        with subnormals_flushed():  # as in training
            training, beside_training = _median_ms(
                lambda: step(network, objective, optimiser, graph)
            )
        inference, beside_inference = _median_ms(infer)
    cost = {"training_ms": training, "inference_ms": inference}
    beside = [*beside_training, *beside_inference]
    return Result(
        {**run.describe(), **_provenance(run)},
        {**cost, "others": round(statistics.mean(beside), 2)} if beside else cost,
    )


def _median_ms(work: Callable[[], object]) -> tuple[float, list[int]]:
    """How long some work takes; and, after every time, how many other threads were running, where that can be told."""
    taken, beside = [], []
    for turn in range(WARM_UP + TIMED):
        start = time.perf_counter()
        work()
        if turn >= WARM_UP:
            taken.append(1000 * (time.perf_counter() - start))
            if (others := others_running()) is not None:
                beside.append(others)
    return round(statistics.median(taken), 4), beside


def _describe(run: Run, graph: Graph, state: Path | None) -> Result:
    """The graph's statistics."""
    statistics = {
        "nodes": graph.num_nodes,
        "edges": graph.undirected_edges[0].shape[1],
        "features": graph.num_features,
        "classes": graph.num_classes,
        "edge_homophily": graph.edge_homophily,
        "node_homophily": graph.node_homophily,
        "isolated": int((graph.degree == 0).sum()),
        "unlabelled": int((graph.labels < 0).sum()),
    }
    return Result({**run.describe(), "statistics": statistics, **_provenance(run)}, {})


def _tsne(run: Run, graph: Graph, state: Path | None) -> Result:
    """Train, then lay the nodes out in the plane by their predicted probabilities."""
    fitted, result = _train_to_the_end(run, graph, state)
    with torch.no_grad():
        probabilities = torch.softmax(fitted.network(graph), dim=1)
    return dataclasses.replace(
        result, record={**result.record, **_map_of(probabilities.double().numpy(), graph, run.seed)}
    )


def _tsne_input(run: Run, graph: Graph, state: Path | None) -> Result:
    """Lay the nodes out in the plane by their input features."""
    return Result(
        {
            **run.describe(),
            **_map_of(graph.dense_features.numpy(), graph, run.seed),
            **_provenance(run),
        },
        {},
    )


def _map_of(x: Any, graph: Graph, seed: int) -> dict[str, Any]:
    from sklearn.manifold import TSNE

    positions = TSNE(2, init="pca", random_state=seed, n_jobs=1).fit_transform(x)
    return {
        "positions": [[round(float(v), 2) for v in row] for row in positions],
        "labels": graph.labels.tolist(),
    }


def _provenance(run: Run) -> dict[str, Any]:
    """With which graph, settings and versions, in every record: from an export a run can be told again, and checked against its key."""
    made = {
        "graph_digest": run.graph_digest,
        "directed": run.directed,
        "settings": dataclasses.asdict(run.settings),
        "key": run.key,
    }
    on = {"python": platform.python_version(), "system": sys.platform, "cpu": cpu()}
    return {**made, "version": __version__, "versions": run.versions, **on}


TASKS: dict[Task, Callable[[Run, Graph, Path | None], Result]] = {
    "train": _train,
    "time": _time,
    "describe": _describe,
    "tsne": _tsne,
    "tsne-input": _tsne_input,
}
