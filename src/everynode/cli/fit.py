"""``everynode fit``: people's own graph in; predictions, a model and a page out."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.files import Files
from everynode.cli.folder import command, prepare, remove_states
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import OUTPUT, JsonFlag, QuietFlag, RaceOptions
from everynode.console import say, showable
from everynode.errors import UsageError, require

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph

#: What a folder holds when a fit has ended, in the order in which it is written.
MADE = ("model/model.safetensors", "model/model.json", "predictions.csv", "report.html", "fit.json")
#: Where the states of a training are kept while it goes on.
STATES = "training"


def fit(
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    label: str | None = None,
    features: str = "all",
    split: str | None = None,
    fold: int | None = None,
    model: RaceOptions = RaceOptions(),  # noqa: B008 - frozen
    calibrate: bool = True,
    ensemble: int = 1,
    test_share: float | None = None,
    val_share: float | None = None,
    cv: int | None = None,
    seed: int = 0,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    dry_run: Annotated[bool, Parameter(negative="", group=OUTPUT)] = False,
    resume: Annotated[bool, Parameter(group=OUTPUT)] = True,
    threads: Annotated[int, Parameter(group=OUTPUT)] = 1,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Read a graph from your files, learn its labels, and predict those that are missing.

    In --out: predictions.csv (every node), report.html (how good, how sure, what to look at), and model/ for `everynode predict`.

    Parameters
    ----------
    label
        The nodes' column of labels; an empty cell means unlabelled. Default: one that is called label or class.
    features
        The nodes' columns that describe a node, as a,b,c (or zip:category, to say what a column is); `all` takes all that are left,
        `structure` stands for numbers that are computed from the edges.
    split
        The nodes' column that says train, val or test; without it, labels are held out. `none`: also if the file brings a split.
    fold
        Which split, from 0, where the file (npz) brings several.
    calibrate
        Choose a temperature on the validation nodes, so that probabilities mean what they say.
    ensemble
        Train so many networks (of each fold) and average their probabilities: five gained half a point to a point and a half on Cora and
        Citeseer.
    test_share
        The share of the labels that is put aside for the test; default: 0.2 with 50 labels or more, else none. 0 trains on all.
    val_share
        Hold this share of the training labels out once, to choose settings and epoch by, where the split column has no val; default: 0.2
        with 100 training labels or more.
    cv
        Hold each training label out once, in so many folds, and average the networks; 1 holds out --val-share once. Default: 3 with fewer
        than 100 training labels and no --val-share, else 1.
    seed
        Decides the held-out labels, weights, dropout and halves.
    out
        The folder for everything; default: one under runs/ that is named after the nodes' file.
    dry_run
        Say what was understood of the files, and stop.
    resume
        Go on where an interrupted run of the same command in --out stopped; --no-resume starts over.
    threads
        torch threads. With one, the same seed gives the same result.
    """
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.io.assign_splits import assign_splits

    require(threads >= 1, "threads", "fit", ">= 1", threads)
    require(0 <= seed < 2**63, "seed", "fit", "between 0 and 2**63 - 1", seed)
    require(ensemble >= 1, "ensemble", "fit", ">= 1", ensemble)
    torch.set_num_threads(threads)
    read = files.read(label=label, features=features, split=split, name=files.name)
    tell = (
        (lambda text: say(text, quiet))
        if json_output
        else (lambda text: None if quiet else print(text))
    )
    if read.summary is not None:
        for line in read.summary.lines(warnings_only=quiet):
            (say if quiet else tell)(line)
    if not read.num_classes:
        columns = (
            ", ".join(column.name for column in read.feature_encoder.columns[:20])
            if read.feature_encoder
            else ""
        )
        if not columns:
            raise UsageError(
                "No column could hold labels: give a table of nodes with an id and a label (--nodes, --label), and --unknown add if only "
                "the edges have some of the nodes."
            )
        raise UsageError(f"Which column holds the labels? Give --label, one of {columns}.")
    graph, said = assign_splits(
        read, fold=fold, test_share=test_share, val_share=val_share, cv=cv, seed=seed
    )
    for text in said:
        tell(text)
    if dry_run:
        if json_output:
            print(
                json.dumps(
                    {
                        "summary": read.summary.to_dict() if read.summary else None,
                        "parts": said,
                    }
                )
            )
        return 0
    chosen: dict[str, Any] = {
        **asdict(model),
        "calibrate": calibrate,
        "cv": cv or "auto",
        "n_estimators": ensemble,
    }
    classifier = NodeClassifier(**chosen, random_state=seed, verbose=not quiet)
    folder = out or Path("runs") / f"fit-{files.name}"
    files.spare(folder / name for name in MADE)
    if prepare(folder, _key(classifier, graph), MADE, STATES, resume):
        summary = _finished(folder)
        say(f"This was done before in {folder}; --no-resume does it again.", quiet)
    else:
        states = folder / STATES
        if any(states.glob("*")):
            say(f"Going on from {states}.", quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an interruption is told below, and what diverged
            classifier.fit(graph, checkpoint=states)
        summary = _write(folder, classifier, graph, said, drawn=not read.splits)
        if summary["interrupted"]:
            when = f" after {summary['epochs']} epochs" if len(summary["best_epochs"]) == 1 else ""
            say(
                f"Interrupted{when}: the best so far is kept, and the same command goes on from here."
            )
        else:
            remove_states(states)
            whole = ensemble * summary["folds"]
            if left_out := whole - summary["networks"]:
                say(
                    f"Left out {left_out} of {whole} networks, which diverged: lower the learning rates or the terms' weights."
                )
    if json_output:
        print(json.dumps(summary))
    else:
        _tell(summary, folder)
    return INTERRUPTED if summary["interrupted"] else 0


def _key(classifier: NodeClassifier, graph: Graph) -> str:
    """Of everything that decides the files in --out."""
    from everynode import __version__

    parameters = {
        name: value for name, value in classifier.get_params().items() if name != "verbose"
    }
    ids = None if graph.node_ids is None else [str(node) for node in graph.node_ids]
    feature_encoder = None if graph.feature_encoder is None else graph.feature_encoder.to_dict()
    said = json.dumps(
        [__version__, parameters, graph.name, graph.digest, ids, feature_encoder], sort_keys=True
    )
    return hashlib.sha256(said.encode()).hexdigest()


def _finished(folder: Path) -> dict[str, Any]:
    """The summary of a fit that has ended in the folder."""
    from everynode.errors import DataError

    file = folder / "fit.json"
    try:
        summary: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return summary
    except (ValueError, OSError) as error:
        raise DataError(f"{file} cannot be read ({error}): --no-resume starts over.") from error


def _write(
    folder: Path, classifier: NodeClassifier, graph: Graph, said: list[str], *, drawn: bool
) -> dict[str, Any]:
    """Everything that a fit leaves behind; its summary."""
    from everynode.report.fit import Fit
    from everynode.report.fit_page import page
    from everynode.storage.atomic import write_atomically

    made = Fit.of(classifier, graph, said, command())
    classifier.save(folder / "model")
    write_atomically(folder / "predictions.csv", made.predictions.to_csv().encode())
    write_atomically(
        folder / "report.html",
        page(made, model=showable(str(folder / "model")), drawn=drawn).encode(),
    )
    summary = made.summary()
    write_atomically(folder / "fit.json", json.dumps(summary, indent=1).encode())
    return summary


def _tell(summary: dict[str, Any], folder: Path) -> None:
    from everynode.io.summary import counted
    from everynode.report.text import ENTRANTS, decided_by

    seconds = f"{summary['seconds']:.1f} s"
    print(
        f"{summary['graph']}, {summary['backbone']}, {summary['objective']}, seed {summary['seed']}"
    )
    if len(summary["race"]) > 1:
        meant = f" ({ENTRANTS[summary['objective']]})" if summary["objective"] in ENTRANTS else ""
        print(f"  chosen       {summary['objective']}{meant}, {decided_by(summary['select'])}")
        print(
            f"  {'':12} validation {summary['select']} when they stopped: {', '.join(_standings(summary))}"
        )
    if summary["networks"] == 1:
        print(f"  epochs       {summary['epochs']} ({seconds}), best {summary['best_epoch']}")
    else:
        best = ", ".join(map(str, summary["best_epochs"]))
        print(f"  networks     {summary['networks']} ({seconds}), best epochs {best}")
    for part, scores in summary["quality"].items():
        print(
            f"  {part:12} {_score(scores['accuracy'], ' % right')} ({counted(scores['nodes'], 'node')})"
        )
        if summary["monitor"] not in ("accuracy", "loss"):
            print(f"  {'':12} {summary['select']} {_score(scores[summary['select']])}")
    print(f"  {summary['caution']}")
    if not any(summary["best_epochs"]) and summary["epochs"] > 1 and not summary["interrupted"]:
        advice = "" if len(summary["race"]) > 1 else " Without --objective, others race with it."
        print(
            f"  No later epoch was better than the first: the settings do not suit this graph.{advice}"
        )
    if summary["temperature"] != 1.0:
        part = next(iter(summary["quality"]))
        ece = f"{summary['quality'][part]['ece_before']:.3f} before, {summary['quality'][part]['ece'][0]:.3f} after"
        print(f"  temperature  {summary['temperature']:.2f} (calibration error on {part}: {ece})")
    print(f"  predictions  {folder / 'predictions.csv'}")
    print(f"  page         {folder / 'report.html'}")
    print(f"  model        {folder / 'model'}")


def _standings(summary: dict[str, Any]) -> Iterator[str]:
    """How each entrant of a race came off, the winner first, by what decided; with the loss where another got as much."""
    race = dict(sorted(summary["race"].items(), key=lambda item: item[0] != summary["objective"]))
    by_loss = summary["monitor"] == "loss"
    shown = {}
    for name, got in race.items():
        score = got.get("val_score")
        shown[name] = (
            "" if score is None else f" {score:.3f}" if by_loss else f" {100 * score:.1f} %"
        )
    for name, text in shown.items():
        tied = text and not by_loss and list(shown.values()).count(text) > 1
        yield f"{name}{text}" + (f" (loss {race[name]['val_loss']:.3f})" if tied else "")


def _score(score: list[float | None], unit: str = "") -> str:
    """A score and its interval in percent; there may be none."""
    value, low, high = ("none" if x is None else f"{100 * x:.1f}" for x in score)
    return f"{value}{unit}" if low == "none" else f"{value}{unit}, 95% interval {low} to {high}"
