"""``everynode fit``: a user's graph in; predictions, a model and a page out."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everynode.cli.batch_options import FitBatchOptions
from everynode.cli.engine_options import EngineOptions
from everynode.cli.files import Columns, Files, recorded
from everynode.cli.fit_flags import LabelFlags, OutputFlags, PortfolioFlags
from everynode.cli.fit_time_and_types import time_and_types
from everynode.cli.folder import command, prepare, publish, read_result, remove_states
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import CandidateOptions, DeviceFlag
from everynode.console import say, showable
from everynode.errors import EverynodeError, UsageError, require

if TYPE_CHECKING:
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.evaluation.fit_summary import FitSummary
    from everynode.graph import Graph
    from everynode.training.process_pool import Engine

#: The files of a finished fit, in the order of writing.
RESULTS = (
    "model/model.safetensors", "model/model.json", "predictions.csv", "report.html",
    "model-card.md", "fit.json",
)  # fmt: skip
#: What to do if the memory does not suffice.
LESS_MEMORY = "use a smaller --batch-size, --workers 1 or fewer --hidden-channels"
#: The folder of the training states of an unfinished fit.
STATES = "training"


def fit(
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    columns: Columns = Columns(),  # noqa: B008 - frozen
    portfolio: PortfolioFlags = PortfolioFlags(),  # noqa: B008 - frozen
    model: CandidateOptions = CandidateOptions(),  # noqa: B008 - frozen
    labels: LabelFlags = LabelFlags(),  # noqa: B008 - frozen
    device: DeviceFlag = "cpu",
    batch: FitBatchOptions = FitBatchOptions(),  # noqa: B008 - frozen
    jobs: EngineOptions = EngineOptions(),  # noqa: B008 - frozen
    output: OutputFlags = OutputFlags(),  # noqa: B008 - frozen
) -> int:
    """Read a graph from your files, train on its labels, and predict the missing ones.

    --out has predictions.csv (every node), report.html (scores, confidence, nodes to review), and
    model/ for `everynode predict`.
    """
    import torch

    from everynode.report.fit_text import fit_lines
    from everynode.selection.refit import labels_to_teach

    require(output.threads >= 1, "threads", "fit", ">= 1", output.threads)
    require(0 <= labels.seed < 2**63, "seed", "fit", "between 0 and 2**63 - 1", labels.seed)
    portfolio.check(model)
    model.load_plugins()
    torch.set_num_threads(output.threads)
    files = files.keeping(output.slice_by)
    given = files.read(
        label=columns.label, labels=columns.labels, features=columns.features, split=labels.split,
        name=files.name, split_by=labels.split_by, edge_type=labels.edge_type,
    )  # fmt: skip
    for line in () if given.summary is None else given.summary.lines(warnings_only=output.quiet):
        output.show(line)
    _check_labels(given)
    graph, notes = labels.hold_out(given, portfolio.effort, is_portfolio=model.is_portfolio)
    _check_coverage(graph, output.coverage)
    refit = labels.refit if labels.split_by is None else labels.refit is not False
    nodes = labels_to_teach(given, graph, fold=labels.fold or 0, refit=refit)
    graph, more = time_and_types(graph, labels.split_by, labels.seed)
    notes += more
    if labels.clean_labels and nodes is None:
        raise UsageError("--clean-labels needs the refit on all labels: pass --refit.")
    for note in () if output.quiet else notes:
        output.show(note)
    if output.dry_run:
        if output.json_output:
            read = None if given.summary is None else given.summary.to_dict()
            print(json.dumps({"summary": read, "parts": notes}))
        return 0
    folder = output.out or Path("runs") / f"fit-{files.name}"
    files.spare((folder / name for name in RESULTS), columns.labels)
    plan = Plan(
        portfolio.classifier(
            model, labels, batch_size=batch.batch_size(), workers=jobs.workers, device=device,
            quiet=output.quiet,
        ),
        graph, nodes, notes, labels.split_by is not None or not given.splits,
        portfolio.for_new_nodes, portfolio.calibrate, output.coverage, labels.clean_labels,
        recorded(files, columns), output.slice_by,
    )  # fmt: skip
    engine = None if jobs.engine == "local" else jobs.start(device)
    if prepare(folder, plan.key, RESULTS, STATES, output.resume):
        result = read_result(folder / "fit.json")
        say(f"{folder} already has this result; --no-resume trains again.", output.quiet)
    else:
        result = _train(plan, folder, engine, output)
        _report_losses(result, portfolio.n_estimators)
    print(json.dumps(result) if output.json_output else "\n".join(fit_lines(result, folder)))
    return INTERRUPTED if result["interrupted"] else 0


@dataclass(frozen=True)
class Plan:
    """Which labels train which model.

    Parameters
    ----------
    classifier : NodeClassifier
        The classifier to fit.
    graph : Graph
        The graph with its split.
    nodes : Tensor or None
        The labels that the delivered model learns from; None: it is the measured model.
    notes : list of str
        Sentences about the split.
    drawn : bool
        Whether the split was drawn here.
    for_new_nodes, calibrate, coverage, clean_labels
        The flags of the same names.
    files : dict
        The flags that read the files, for ``everynode explain``.
    slice_by : tuple of str
        The columns of the slices.
    """

    classifier: NodeClassifier
    graph: Graph
    nodes: torch.Tensor | None
    notes: list[str]
    drawn: bool
    for_new_nodes: bool
    calibrate: bool
    coverage: float | None
    clean_labels: bool = False
    files: dict[str, Any] = field(default_factory=dict)
    slice_by: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """A digest of everything that decides the files in --out."""
        from everynode import __version__, plugins
        from everynode.estimator_settings import Choices
        from everynode.objective_names import objective_parts

        classifier, graph = self.classifier, self.graph
        parameters = classifier.get_params() | {"for_new_nodes": self.for_new_nodes}
        for name in ("verbose", "device", "n_jobs"):
            del parameters[name]
        names = {classifier.backbone, *objective_parts(Choices.of(classifier).objective)}
        content = [
            __version__,
            parameters,
            self.calibrate,
            self.coverage,
            self.clean_labels,
            self.slice_by,
            None if self.nodes is None else self.nodes.tolist(),
            graph.name,
            graph.digest,
            None if graph.node_ids is None else [str(node) for node in graph.node_ids],
            None if graph.feature_encoder is None else graph.feature_encoder.to_dict(),
            [p.digest for p in plugins.loaded() if names & {*p.models, *p.terms}],
            None if graph.summary is None else dict(graph.summary.shown),
        ]
        text = json.dumps(content, sort_keys=True, default=repr)  # repr: the Batches
        return hashlib.sha256(text.encode()).hexdigest()


def _train(plan: Plan, folder: Path, engine: Engine | None, output: OutputFlags) -> dict[str, Any]:
    """Fit the classifier, refit it on all labels, write the results and return their summary."""
    from everynode.estimator_decisions import kept_labels
    from everynode.estimator_settings import memory_plan
    from everynode.evaluation.fit_summary import FitSummary

    classifier, states = plan.classifier, folder / STATES
    memory = memory_plan(
        classifier, plan.graph, for_new_nodes=plan.for_new_nodes, here=engine is None
    )
    if not memory.fits:
        say(f"{memory} It may end without a result: {LESS_MEMORY}.")
    elif not output.quiet:
        output.show(str(memory))
    if any(states.glob("*")):
        say(f"Continuing from {states}.", output.quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the summary has interruptions and divergence
        classifier.fit(
            plan.graph, for_new_nodes=plan.for_new_nodes, checkpoint=states, engine=engine,
            plan=memory,
        )  # fmt: skip
        delivered = _refit(plan, states, engine)
    for one in (classifier, delivered):
        if one is not None and not plan.calibrate:
            one.temperature_ = one.held_out_temperature_ = 1.0
            one.held_out_labels_ = kept_labels(one).uncalibrated()
    fitted = FitSummary.of(
        classifier, plan.graph, plan.notes, delivered, plan.coverage, plan.slice_by
    )
    result = _write(folder, fitted, drawn=plan.drawn, files=plan.files)
    if not result["interrupted"]:
        remove_states(states)
    return result


def _refit(plan: Plan, states: Path, engine: Engine | None) -> NodeClassifier | None:
    """Train the chosen models on all labels; None if there is nothing more to learn from.

    After Ctrl-C, the measured model counts as interrupted: the same command continues.
    """
    from everynode.evaluation.clean_labels import clean_labels

    classifier, graph, nodes = plan.classifier, plan.graph, plan.nodes
    if nodes is None or classifier.fitted_.interrupted:
        return None
    try:
        delivered = classifier.refit(graph, nodes, checkpoint=states, engine=engine)
        if plan.clean_labels:
            seed = classifier.fitted_.seed
            cleaned = clean_labels(classifier, delivered, graph, nodes, seed=seed, engine=engine)
            plan.notes.append(cleaned.sentence)
            say(cleaned.sentence)
            delivered = cleaned.model
        return delivered
    except KeyboardInterrupt:
        classifier.fitted_ = replace(classifier.fitted_, interrupted=True)
    except EverynodeError as error:  # out of time, or diverged
        say(f"The delivered model is the measured one: {error}")
    return None


def _check_coverage(graph: Graph, coverage: float | None) -> None:
    """Refuse a coverage that the held-out labels cannot promise, before the training."""
    from everynode.evaluation.prediction_sets import check_counts

    if coverage is not None:
        import torch

        held_out = torch.cat([split.val for split in graph.splits])
        folded = graph.nodes("train")  # without validation nodes, folds hold out all of these
        check_counts(graph.labels[held_out if len(held_out) else folded], coverage)


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


def _write(
    folder: Path, fitted: FitSummary, *, drawn: bool, files: dict[str, Any]
) -> dict[str, Any]:
    """Write the results, and return their summary."""
    from everynode.report.fit_card import model_card
    from everynode.report.fit_page import page
    from everynode.storage.atomic import write_atomically

    summary = fitted.to_dict() | {"files": files}
    model = showable(str(folder / "model"))
    html = page(fitted, command=command(), model=model, drawn=drawn)
    with publish(folder, "fit.json") as new:
        (fitted.delivered or fitted.model).save(new / "model")
        fitted.predictions.write_csv(new / "predictions.csv")
        write_atomically(new / "report.html", html.encode())
        write_atomically(new / "model-card.md", model_card(fitted, command=command()).encode())
        write_atomically(new / "fit.json", json.dumps(summary, indent=1).encode())
    return summary


def _report_losses(result: dict[str, Any], n_estimators: int) -> None:
    """Report missing results: epochs after Ctrl-C, or networks that diverged."""
    total = n_estimators * result["folds"]
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
