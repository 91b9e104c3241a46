"""The training of a round, in a separate process: ``python -m everynode.app.worker FOLDER``.

It reads ``request.json`` in the folder and reports on stdout, one JSON object per line. SIGINT
stops it; the best result so far is kept.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from everynode.app.project import read_options
from everynode.app.round import QUEUE_FILE, Facts, Round
from everynode.errors import EverynodeError
from everynode.progress import Step, following
from everynode.storage.json_text import parse_json

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph

#: The coverage of the prediction sets.
COVERAGE = 0.9
#: The number of nodes in the queue: a batch that was chosen together, then the least certain.
BATCH, QUEUE = 40, 500
#: The training shares the processor with the page, which must answer at once.
NICENESS = 5


def report(event: str, **values: Any) -> None:
    """Print an event for the page."""
    print(json.dumps({"event": event, **values}), flush=True)


def main(folder: Path) -> int:
    """Train a round and write its files."""
    from everynode.app.project import Source
    from everynode.storage.plain_values import from_plain

    request = parse_json((folder / "request.json").read_text(encoding="utf-8"))
    try:
        train(
            folder, from_plain(Source, request["source"]), model=request["model"],
            effort=request["effort"], before=request["before"],
            answered=request["answered"],
        )  # fmt: skip
    except KeyboardInterrupt:
        report("stopped")
    except EverynodeError as error:
        report("error", message=str(error))
    except MemoryError:
        report("error", message="Not enough memory: use a smaller graph, or effort quick.")
    else:
        report("done")
        return 0
    return 1


def train(
    folder: Path,
    source: Any,
    *,
    model: str,
    effort: str,
    before: str,
    answered: int = 0,
) -> None:
    """Train on the labels of the files and the answers of people, and write a round.

    Parameters
    ----------
    folder : Path
        The folder of the round. Its ``labels.csv``, if there are answers, has the labels.
    source : Source
        The files.
    model : str
        The folder of a model to show as it is. Empty: train.
    effort : str
        The effort of the portfolio.
    before : str
        The folder of the round whose map this one continues; empty without one.
    answered : int
        The number of nodes that people answered.
    """
    from everynode.estimator import NodeClassifier
    from everynode.io import read

    report("progress", title="Reading the files", done=0, total=0, left=None, note="")
    answers = folder / "labels.csv"
    start = time.monotonic()
    if model:
        classifier = NodeClassifier.load(model)
        options = read_options(source, feature_encoder=classifier.feature_encoder_)
        graph = read(**options)
        notes = ["The model was trained before; nothing was trained here."]
    else:
        options = read_options(source)
        if answers.exists():
            options["labels"] = str(answers)
        graph, notes = _split(read(**options), effort, answered)
        with warnings.catch_warnings(), following(_progress):
            warnings.simplefilter("ignore")
            classifier = NodeClassifier(effort=effort, verbose=False)
            classifier.fit(graph, checkpoint=folder / "training")
    seconds, finished = time.monotonic() - start, time.time()
    report("progress", title="Drawing the map", done=0, total=0, left=None, note="")
    how = "loaded" if model else effort
    result = summarize(
        classifier,
        graph,
        folder,
        how=how,
        seconds=seconds,
        finished=finished,
        answered=answered,
        before=before,
    )
    result.write()
    report("ready")
    write_queue(folder, suggested(graph, result.probabilities.astype(np.float64), result))
    report("queue")
    _write_results(classifier, graph, folder, notes)


def _split(graph: Graph, effort: str, answered: int) -> tuple[Graph, list[str]]:
    """Give the graph its split: its own, else folds over all labels."""
    from everynode.graph import Split
    from everynode.io.assign_splits import assign_splits
    from everynode.selection.portfolio_fit import folds_of_nodes

    if graph.splits:
        import torch

        parts = torch.cat([*graph.splits[0]])
        others = (graph.labels >= 0).nonzero()[:, 0]
        others = others[~torch.isin(others, parts)] if answered else others[:0]
        train, val, test = graph.splits[0]
        graph = graph.with_splits([Split(torch.cat([train, others]).unique(), val, test)])
    return assign_splits(graph, test_share=0, cv=partial(folds_of_nodes, effort))


def _progress(step: Step) -> None:
    report("progress", **step._asdict())


def summarize(
    classifier: NodeClassifier,
    graph: Graph,
    folder: Path,
    *,
    how: str,
    seconds: float,
    finished: float,
    answered: int,
    before: str,
) -> Round:
    """Predict every node, place it on the map, and order the nodes to label."""
    from everynode.evaluation.intervals import wilson
    from everynode.evaluation.node_map import all_positions

    probabilities = classifier.predict_proba(graph).astype(np.float32)
    kept = classifier.held_out_labels_
    empty = np.zeros(0, np.int64)
    nodes, labels, predicted = empty, empty, empty
    if kept is not None:
        nodes, labels = kept.nodes.cpu().numpy(), kept.labels.cpu().numpy()
        predicted = kept.log_probabilities.argmax(1).cpu().numpy()
    right = int((labels == predicted).sum())
    previous = None
    if before:
        previous = Round.load(Path(before)).arrays["positions"].astype(np.float64)
    fitted = classifier.fitted_
    positions = all_positions(classifier.embed(graph), fitted.seed, previous)
    arrays: dict[str, Any] = {
        "positions": positions.astype(np.float32),
        "probabilities": probabilities,
        "held_out": nodes,
        "held_out_labels": labels,
        "held_out_predicted": predicted,
        "queue": _queue(probabilities, graph),
    }
    coverage = None
    try:
        arrays["sets"] = classifier.predict_set(graph, coverage=COVERAGE)
        coverage = COVERAGE
    except EverynodeError:  # too few held-out labels to promise anything
        pass
    score = wilson(right, len(nodes)) if len(nodes) else ()
    facts = Facts(
        tuple(map(str, classifier.classes_.tolist())), how, round(seconds, 2), finished,
        int(classifier.num_labels_), answered, right, len(nodes), tuple(score), coverage,
        bool(fitted.interrupted),
    )  # fmt: skip
    return Round(folder, facts, arrays)


def _queue(probabilities: np.ndarray, graph: Graph) -> np.ndarray:
    """Return the unlabeled nodes with the lowest certainty, the lowest first."""
    unlabeled = np.flatnonzero(graph.labels.cpu().numpy() < 0)
    order = np.argsort(probabilities[unlabeled].max(1), kind="stable")
    return unlabeled[order[:QUEUE]].astype(np.int64)


def suggested(graph: Graph, probabilities: Any = None, result: Any = None) -> list[list[Any]]:
    """Return a batch of nodes to label, each with the reason; see :mod:`~everynode.evaluation`.

    Parameters
    ----------
    graph : Graph
        The graph with its labels.
    probabilities : array of shape (n, k), optional
        Those of a model; None: the links and columns alone decide.
    result : Round, optional
        The round of the model.
    """
    from everynode.evaluation.suggestions import suggestions

    if not bool((graph.labels < 0).any()):
        return []
    classes = () if result is None else result.facts.classes
    rows = suggestions(graph, BATCH, probabilities, classes)
    return [[row.node, row.reason] for row in rows]


def write_queue(folder: Path, queue: list[list[Any]]) -> None:
    """Write the queue of a round."""
    from everynode.storage.atomic import write_atomically

    write_atomically(folder / QUEUE_FILE, json.dumps(queue).encode())


def _write_results(
    classifier: NodeClassifier, graph: Graph, folder: Path, notes: list[str]
) -> None:
    """Write the model, the table of predictions and the page to send around."""
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.evaluation.predictions import predictions
    from everynode.report.fit_page import page
    from everynode.storage.atomic import write_atomically

    classifier.save(folder / "model")
    coverage = COVERAGE if (Round.load(folder).facts.coverage) else None
    predictions(classifier, graph, coverage=coverage).write_csv(folder / "predictions.csv")
    if hasattr(classifier, "held_out_"):  # a loaded model has no out-of-fold networks to describe
        fitted = FitSummary.of(classifier, graph, notes, coverage=coverage)
        html = page(fitted, command="everynode app", model=str(folder / "model"))
        write_atomically(folder / "report.html", html.encode())


if __name__ == "__main__":
    from everynode.training.process_pool import end_with

    os.nice(NICENESS)
    end_with(os.getppid())
    sys.exit(main(Path(sys.argv[1])))
