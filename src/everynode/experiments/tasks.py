"""The tasks of a run, and the record that each leaves."""

from __future__ import annotations

import dataclasses
import logging
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
from everynode.errors import Diverged
from everynode.evaluation.metrics import RECORDED, confusion, scores
from everynode.experiments.run_spec import Run, Task
from everynode.graph import Graph
from everynode.graph.disk_graph import DiskGraph
from everynode.machine import cpu, others_running
from everynode.models.model import Model
from everynode.numerics import subnormals_flushed
from everynode.training import TrainingResult, save_model, train
from everynode.training.checkpoint import UnusableState
from everynode.training.distributed import Ranks
from everynode.training.full_batch import build, layer_bytes, step
from everynode.training.loop import CHECKPOINT_EVERY, Report
from everynode.training.memory import forget_peak, peak_mb, reused_memory
from everynode.training.mini_batch.inference import infer

LOG = logging.getLogger(__name__)
#: Significant digits of a curve.
CURVE_DIGITS = 6
#: Seconds between two saved training states: a killed run loses this time, or one epoch.
STATE_EVERY = 10.0
#: Steps that are timed, and the steps before them.
TIMED, WARM_UP = 40, 5


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Parameters
    ----------
    record : dict
        Equal for equal runs and versions on one kind of machine. Another CPU rounds differently, so
        results may differ after a few hundred epochs (benchmarks/same_cells.py).
    cost : dict of str to float
        Seconds and memory, which vary between equal runs.
    curve : dict of str to list of float
        Each term and metric after every epoch.
    """

    record: dict[str, Any]
    cost: dict[str, float]
    curve: dict[str, list[float]] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return record and cost together, for JSON."""
        return {**self.record, **self.cost}


def carry_out(run: Run, graph: Graph, state: Path | None = None) -> Result:
    """Execute a run. The record of a diverged training has ``error`` instead of scores.

    Parameters
    ----------
    run : Run
        The run.
    graph : Graph
        Its graph.
    state : Path, optional
        The file of the training state. Training continues from it; a damaged one is replaced.
    """
    try:
        try:
            return TASKS[run.task](run, graph, state)
        except UnusableState as error:
            assert state is not None
            LOG.warning("%s: training starts over.", error.args[0])
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
    checkpoint_every: float = CHECKPOINT_EVERY,
    ranks: Ranks | None = None,
) -> tuple[TrainingResult, Result]:
    """Train, select the epoch on validation, and only then evaluate the test nodes.

    The curve ``test_accuracy`` is a diagnostic: it shows the optimistic bias of selecting the epoch
    on the test set. It selects nothing. Mini-batch training has no such curve, since it would cost
    more than the epochs.

    Parameters
    ----------
    run : Run
        The run.
    graph : Graph or DiskGraph
        Its graph.
    report : callable, optional
        Called after every epoch.
    checkpoint : Path, optional
        The file of the training state.
    checkpoint_every : float
        Seconds between two states.
    ranks : Ranks, optional
        The processes that share every step.
    """
    forget_peak()
    test = graph.nodes("test", run.fold)
    fitted = train(
        graph, run.settings, fold=run.fold, seed=run.seed, report=report, checkpoint=checkpoint,
        checkpoint_every=checkpoint_every, test_nodes=None if run.batches else test,
        batches=run.batches, ranks=ranks,
    )  # fmt: skip
    watched = fitted.history.get("test_accuracy", [])
    scores_of_parts, matrix = _evaluate(fitted, graph, run.fold)
    record = {
        **run.describe(),
        "nodes": {part: len(graph.nodes(part, run.fold)) for part in ("train", "val", "test")},
        "epochs": fitted.epochs,
        "best_epoch": fitted.best_epoch,
        **scores_of_parts,
        "test_oracle_accuracy": max(watched) if watched else None,
        "terms": {
            name: values[fitted.best_epoch]
            for name, values in fitted.history.items()
            if name in ("ce", *run.settings.active_terms(), "total")
        },
        "confusion": matrix,
        "interrupted": fitted.interrupted,
        **_batches(run),
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


def train_to_folder(
    run: Run,
    graph: Graph | DiskGraph,
    folder: Path,
    state: Path,
    *,
    report: Report | None = None,
    ranks: Ranks | None = None,
) -> dict[str, Any]:
    """Train, save the model to a folder, and return record and cost.

    ``state`` is the file of the training state; the caller removes it when training is done. For
    the rest see :func:`train_run`.
    """
    fitted, result = train_run(run, graph, report=report, checkpoint=state, ranks=ranks)
    save_model(folder, fitted, {"run": result.to_dict()})
    return result.to_dict()


def share_training(run: Run, graph: Graph | DiskGraph, state: Path, ranks: Ranks) -> bool:
    """Join :func:`train_to_folder` of another process; return whether training was completed."""
    fitted = train(
        graph,
        run.settings,
        fold=run.fold,
        seed=run.seed,
        checkpoint=state,
        batches=run.batches,
        ranks=ranks,
    )
    return not fitted.interrupted


def _evaluate(
    fitted: TrainingResult, graph: Graph | DiskGraph, fold: int
) -> tuple[dict[str, Any], list[list[int]] | None]:
    """Return the scores of validation and test nodes, and the confusion matrix of the test."""
    nodes = {part: graph.nodes(part, fold) for part in ("val", "test")}
    both = predict(fitted.network, graph, torch.cat(list(nodes.values())))
    logits = dict(zip(nodes, both.split([*map(len, nodes.values())]), strict=True))
    measured: dict[str, Any] = {"val_loss": fitted.metrics["val_loss"]}
    for part, of_part in logits.items():
        labels = graph.labels[nodes[part]]
        part_scores = scores(of_part, labels) if len(labels) else dict.fromkeys(RECORDED)
        measured |= {f"{part}_{name}": value for name, value in part_scores.items()}
    measured["val_accuracy"] = fitted.metrics["val_accuracy"]
    test = nodes["test"]
    return measured, confusion(logits["test"], graph.labels[test]) if len(test) else None


def predict(model: Model, graph: Graph | DiskGraph, nodes: Tensor) -> Tensor:
    """Return the logits of nodes, in blocks if the graph is on disk or on another device."""
    if isinstance(graph, DiskGraph) or model.device != graph.labels.device:
        return infer(model, graph, nodes)
    with torch.no_grad():
        logits: Tensor = model(graph)[nodes]
    return logits


def _batches(run: Run) -> dict[str, Any]:
    if run.batches is None:
        return {}
    return {"batches": dataclasses.asdict(run.batches), "processes": run.processes}


def _train_to_the_end(run: Run, graph: Graph, state: Path | None) -> tuple[TrainingResult, Result]:
    fitted, result = train_run(run, graph, checkpoint=state, checkpoint_every=STATE_EVERY)
    if fitted.interrupted:  # with one worker, Ctrl-C reaches the run itself
        raise KeyboardInterrupt
    return fitted, result


def _train(run: Run, graph: Graph, state: Path | None) -> Result:
    return _train_to_the_end(run, graph, state)[1]


def _time(run: Run, graph: Graph, state: Path | None) -> Result:
    """Measure the median milliseconds of a training step and of a prediction for all nodes."""
    network, objective, optimizer = build(graph, run.settings, fold=run.fold, seed=run.seed)

    def predict_all() -> None:
        network.eval()
        with torch.no_grad():
            network(graph)

    with reused_memory(layer_bytes(graph, run.settings)):
        with subnormals_flushed():  # as in training
            training, beside_training = _median_ms(
                lambda: step(network, objective, optimizer, graph)
            )
        inference, beside_inference = _median_ms(predict_all)
    cost = {"training_ms": training, "inference_ms": inference}
    beside = [*beside_training, *beside_inference]
    return Result(
        {**run.describe(), **_provenance(run)},
        {**cost, "others": round(statistics.mean(beside), 2)} if beside else cost,
    )


def _median_ms(work: Callable[[], object]) -> tuple[float, list[int]]:
    """Return the median time of a function, and the other running threads after each call."""
    times, beside = [], []
    for turn in range(WARM_UP + TIMED):
        start = time.perf_counter()
        work()
        if turn >= WARM_UP:
            times.append(1000 * (time.perf_counter() - start))
            if (others := others_running()) is not None:
                beside.append(others)
    return round(statistics.median(times), 4), beside


def _describe(run: Run, graph: Graph, state: Path | None) -> Result:
    """Return the statistics of the graph."""
    facts = {
        "nodes": graph.num_nodes,
        "edges": graph.undirected_edges[0].shape[1],
        "features": graph.num_features,
        "classes": graph.num_classes,
        "edge_homophily": graph.edge_homophily,
        "node_homophily": graph.node_homophily,
        "isolated": int((graph.degree == 0).sum()),
        "unlabeled": int((graph.labels < 0).sum()),
    }
    return Result({**run.describe(), "statistics": facts, **_provenance(run)}, {})


def _tsne(run: Run, graph: Graph, state: Path | None) -> Result:
    """Train, then map the predicted probabilities to the plane."""
    fitted, result = _train_to_the_end(run, graph, state)
    with torch.no_grad():
        probabilities = torch.softmax(fitted.network(graph), dim=1)
    positions = _map_of(probabilities.double().cpu().numpy(), graph, run.seed)
    return dataclasses.replace(result, record={**result.record, **positions})


def _tsne_input(run: Run, graph: Graph, state: Path | None) -> Result:
    """Map the input features to the plane."""
    return Result(
        {
            **run.describe(),
            **_map_of(graph.dense_features.cpu().numpy(), graph, run.seed),
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
    """Return graph, settings and versions, so that an exported record can be checked."""
    settings = dataclasses.asdict(run.settings)
    return {
        "graph_digest": run.graph_digest,
        "directed": run.directed,
        "settings": {name: value for name, value in settings.items() if value not in (None, ())},
        "key": run.key,
        "version": __version__,
        "versions": run.versions,
        "python": platform.python_version(),
        "system": sys.platform,
        "cpu": cpu(),
    }


TASKS: dict[Task, Callable[[Run, Graph, Path | None], Result]] = {
    "train": _train,
    "time": _time,
    "describe": _describe,
    "tsne": _tsne,
    "tsne-input": _tsne_input,
}
