"""``everynode fit``: a user's graph in; predictions, a model and a page out."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from everynode.cli.files import Columns, Files
from everynode.cli.folder import command, prepare, publish, read_result, remove_states
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import (
    OUTPUT,
    TRAINING,
    CandidateOptions,
    DeviceFlag,
    EngineOptions,
    JsonFlag,
    QuietFlag,
)
from everynode.console import say, showable
from everynode.errors import EverynodeError, UsageError, require

if TYPE_CHECKING:
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.graph import Graph
    from everynode.training.process_pool import Engine

#: The files of a finished fit, in the order in which they are written.
RESULTS = (
    "model/model.safetensors", "model/model.json", "predictions.csv", "report.html", "fit.json",
)  # fmt: skip
#: The folder of the training states of an unfinished fit.
STATES = "training"


def fit(
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    columns: Columns = Columns(),  # noqa: B008 - frozen
    split: str | None = None,
    fold: int | None = None,
    effort: Annotated[Literal["quick", "standard", "best"], Parameter(group=TRAINING)] = "standard",
    time_limit: Annotated[str | None, Parameter(group=TRAINING)] = None,
    for_new_nodes: Annotated[bool, Parameter(group=TRAINING, negative="")] = False,
    model: CandidateOptions = CandidateOptions(),  # noqa: B008 - frozen
    calibrate: bool = True,
    ensemble: int = 1,
    test_share: float | None = None,
    val_share: float | None = None,
    cv: int | None = None,
    refit: bool | None = None,
    seed: int = 0,
    device: DeviceFlag = "cpu",
    jobs: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    dry_run: Annotated[bool, Parameter(negative="", group=OUTPUT)] = False,
    resume: Annotated[bool, Parameter(group=OUTPUT)] = True,
    threads: Annotated[int, Parameter(group=OUTPUT)] = 1,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Read a graph from your files, train on its labels, and predict the missing ones.

    --out has predictions.csv (every node), report.html (scores, confidence, nodes to review), and
    model/ for `everynode predict`.

    Parameters
    ----------
    split
        The column in --nodes with train, val or test. Default: hold out labels. `none` ignores a
        split in the file.
    fold
        The fold, from 0, where a file (npz) has several.
    effort
        Size of the portfolio: quick (seconds), standard (minutes), or best (more models, and
        several networks of each).
    time_limit
        Time limit of the portfolio, such as 90s, 10m or 1h. Default: 18s for quick, 10m for
        standard, none for best. The refit on all labels may take as long again.
    for_new_nodes
        Leave out models that cannot predict nodes outside this graph.
    calibrate
        Choose a temperature on the validation nodes, so that probabilities match frequencies.
    ensemble
        Networks per fold whose probabilities are averaged. Five gained 0.5 to 1.5 points on Cora
        and Citeseer.
    test_share
        Share of the labels to keep for the test. Default: 0.2 with 50 labels or more, else none. 0
        trains on all labels.
    val_share
        Share of the training labels to hold out once for validation, if --split has no val.
        Default: 0.2 with 100 training labels or more.
    cv
        Number of folds in which each training label is held out once; the networks are averaged. 1
        holds out --val-share once. Default without --val-share: 2 to 5, by --effort and labels; for
        a named model, 3 with fewer than 100 training labels, else 1.
    refit
        After the quality is measured, train the chosen models again on all labels. The result
        predicts the unlabelled nodes and is saved. Default: yes, but without the validation and
        test nodes of your own split; --refit takes these too. --no-refit delivers the measured
        model, as a benchmark needs it.
    seed
        Seed of held-out labels, weights, dropout and halves.
    out
        Folder of the results. Default: runs/fit-NODES.
    dry_run
        Show how the files were read, and stop.
    resume
        Continue an interrupted run of the same command in --out; --no-resume starts over.
    threads
        Threads of torch. One thread gives the same result for the same seed.
    """
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.io.assign_splits import assign_splits
    from everynode.report.fit_text import fit_lines
    from everynode.selection.refit import labels_to_teach

    require(threads >= 1, "threads", "fit", ">= 1", threads)
    require(0 <= seed < 2**63, "seed", "fit", "between 0 and 2**63 - 1", seed)
    require(ensemble >= 1, "ensemble", "fit", ">= 1", ensemble)
    model.load_plugins()
    torch.set_num_threads(threads)
    graph = files.read(label=columns.label, features=columns.features, split=split, name=files.name)
    given, summary = graph, graph.summary
    show = say if quiet or json_output else print
    for line in () if summary is None else summary.lines(warnings_only=quiet):
        show(line)
    _check_labels(graph)
    own_folds = model.is_portfolio and cv is None and val_share is None
    graph, notes = assign_splits(
        graph, fold=fold, test_share=test_share, val_share=val_share, seed=seed,
        cv=partial(_portfolio_folds, graph, effort) if own_folds else cv,
    )  # fmt: skip
    if model.is_portfolio and len(graph.nodes("val")):
        notes.append("The validation nodes choose the models, their weights and their epochs.")
    for note in () if quiet else notes:
        show(note)
    if dry_run:
        if json_output:
            read = None if summary is None else summary.to_dict()
            print(json.dumps({"summary": read, "parts": notes}))
        return 0
    classifier = NodeClassifier(
        model.backbone, model.objective, effort=effort, time_limit=time_limit,
        settings=model.named | {"preset": model.preset, "n_estimators": ensemble},
        cv=cv if cv and cv > 1 else "auto", n_jobs=jobs.workers, device=device,
        random_state=seed, verbose=not quiet,
    )  # fmt: skip
    engine = None if jobs.engine == "local" else jobs.start(device)
    folder = out or Path("runs") / f"fit-{files.name}"
    files.spare(folder / name for name in RESULTS)
    nodes = labels_to_teach(given, graph, fold=fold or 0, refit=refit)
    key = _key(classifier, graph, for_new_nodes, calibrate, nodes)
    if prepare(folder, key, RESULTS, STATES, resume):
        result = read_result(folder / "fit.json")
        say(f"{folder} already has this result; --no-resume trains again.", quiet)
    else:
        _show_memory(classifier, graph, partial(say, quiet=True) if quiet else show)
        if any((folder / STATES).glob("*")):
            say(f"Continuing from {folder / STATES}.", quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the summary has interruptions and divergence
            classifier.fit(
                graph, for_new_nodes=for_new_nodes, checkpoint=folder / STATES, engine=engine
            )
            delivered = _refit(classifier, graph, nodes, folder / STATES, engine)
        for one in (classifier, delivered):
            if one is not None and not calibrate:
                one.temperature_ = one.held_out_temperature_ = 1.0
        fitted = FitSummary.of(classifier, graph, notes, delivered)
        result = _write(folder, fitted, drawn=not given.splits)
        _report_losses(result, ensemble)
        if not result["interrupted"]:
            remove_states(folder / STATES)
    print(json.dumps(result) if json_output else "\n".join(fit_lines(result, folder)))
    return INTERRUPTED if result["interrupted"] else 0


def _portfolio_folds(graph: Graph, effort: str, train: torch.Tensor) -> int:
    """Return the number of folds of the portfolio for some training nodes."""
    from everynode.graph import Split
    from everynode.selection.portfolio_fit import fold_count

    return fold_count(graph.with_splits([Split(train, train[:0], train[:0])]), 0, effort)


def _refit(
    classifier: NodeClassifier,
    graph: Graph,
    nodes: torch.Tensor | None,
    states: Path,
    engine: Engine | None,
) -> NodeClassifier | None:
    """Train the chosen models on all labels; None if there is nothing more to learn from.

    After Ctrl-C, the measured model counts as interrupted: the same command continues.
    """
    if nodes is None or classifier.fitted_.interrupted:
        return None
    try:
        return classifier.refit(graph, nodes, checkpoint=states, engine=engine)
    except KeyboardInterrupt:
        classifier.fitted_ = replace(classifier.fitted_, interrupted=True)
    except EverynodeError as error:  # out of time, or diverged
        say(f"The delivered model is the measured one: {error}")
    return None


def _show_memory(classifier: NodeClassifier, graph: Graph, show: Callable[[str], object]) -> None:
    """Show the memory that training will need, and what to do if it is not free."""
    from everynode.estimator_settings import Choices
    from everynode.machine import cores
    from everynode.settings import Settings
    from everynode.training.memory_plan import plan_memory

    named = Choices.of(classifier).changes
    changes = {k: v for k, v in named.items() if k in ("hidden_channels", "num_layers")}
    workers = (classifier.n_jobs or cores()) if classifier.backbone == "auto" else 1
    plan = plan_memory(graph, [Settings(**changes)], batch_size=None, workers=workers)
    if plan.fits:
        show(str(plan))
    else:
        say(f"{plan} It may end without a result. Use --workers 1 or fewer --hidden-channels.")


def _check_labels(graph: Graph) -> None:
    """Refuse a graph without labels."""
    if graph.num_classes:
        return
    encoder = graph.feature_encoder
    # Labels are classes, and some are missing.
    likeliest = sorted(
        encoder.columns if encoder else (),
        key=lambda column: (column.kind not in ("category", "boolean"), not column.missing),
    )
    if likeliest:
        columns = ", ".join(column.name for column in likeliest[:20])
        raise UsageError(
            f"Which column has the labels? Give --label, one of (the likeliest first): {columns}."
        )
    raise UsageError(
        "No column can hold labels: give a table of nodes with an id and a label (--nodes, "
        "--label). Add --unknown add if some nodes appear in the edges only."
    )


def _key(
    classifier: NodeClassifier,
    graph: Graph,
    for_new_nodes: bool,
    calibrate: bool,
    nodes: torch.Tensor | None,
) -> str:
    """Return a digest of everything that decides the files in --out."""
    from everynode import __version__, plugins
    from everynode.estimator_settings import Choices

    parameters = classifier.get_params() | {"for_new_nodes": for_new_nodes}
    for name in ("verbose", "device", "n_jobs"):
        del parameters[name]
    ids = None if graph.node_ids is None else [str(node) for node in graph.node_ids]
    encoder = None if graph.feature_encoder is None else graph.feature_encoder.to_dict()
    names = {classifier.backbone, *Choices.of(classifier).objective.split("+")}
    code = [p.digest for p in plugins.loaded() if names & {*p.models, *p.terms}]
    shown = None if graph.summary is None else dict(graph.summary.shown)
    content = [
        __version__,
        parameters,
        calibrate,
        None if nodes is None else nodes.tolist(),
        graph.name,
        graph.digest,
        ids,
        encoder,
        code,
        shown,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _write(folder: Path, fitted: FitSummary, *, drawn: bool) -> dict[str, Any]:
    """Write the results, and return their summary."""
    from everynode.report.fit_page import page
    from everynode.storage.atomic import write_atomically

    summary = fitted.to_dict()
    model = showable(str(folder / "model"))
    html = page(fitted, command=command(), model=model, drawn=drawn)
    with publish(folder, "fit.json") as new:
        (fitted.delivered or fitted.model).save(new / "model")
        fitted.predictions.write_csv(new / "predictions.csv")
        write_atomically(new / "report.html", html.encode())
        write_atomically(new / "fit.json", json.dumps(summary, indent=1).encode())
    return summary


def _report_losses(result: dict[str, Any], ensemble: int) -> None:
    """Report missing results: epochs after Ctrl-C, or networks that diverged."""
    total = ensemble * result["folds"]
    if result["interrupted"]:
        when = f" after {result['epochs']} epochs" if len(result["best_epochs"]) == 1 else ""
        say(
            f"Interrupted{when}: the best result so far is kept. The same command continues from "
            "here."
        )
    elif result["leaderboard"]:
        return  # it lists the models that diverged
    elif left_out := total - result["networks"]:
        say(
            f"Left out {left_out} of {total} networks, which diverged: lower the learning rates "
            "or the weights of the terms."
        )
