"""``everynode suggest``: the nodes to label next, from files alone or with a model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.cli.files import Columns, Files
from everynode.cli.options import JsonFlag, PluginFlag, QuietFlag, load_plugins
from everynode.console import say
from everynode.errors import UsageError, require

if TYPE_CHECKING:
    from everynode.graph import Graph


def suggest(
    model: Path | None = None,
    /,
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    columns: Columns = Columns(),  # noqa: B008 - frozen
    count: int = 20,
    out: Path | None = None,
    plugin: PluginFlag = (),
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Show which nodes to label next, as one batch with a reason for each.

    Each suggested node stands for unlabeled nodes with similar columns and neighbors, which no
    label covers yet. No label and no model is needed. With a model of `everynode fit`, nodes that
    it likely predicts wrong count more.

    Parameters
    ----------
    model
        The model folder, or the --out of `everynode fit`. Default: the files alone decide.
    count
        The number of nodes.
    out
        A new CSV file with an empty column for the label. Fill it in, and pass it to `everynode fit
        --labels`.
    """
    from everynode.estimator import NodeClassifier
    from everynode.evaluation.suggestions import Suggestion, suggestions_csv
    from everynode.evaluation.suggestions import suggest as choose
    from everynode.storage.atomic import write_atomically

    require(count >= 1, "count", "suggest", ">= 1", count)
    if out is not None and out.exists():
        raise UsageError(f"{out} exists: choose another --out.")
    load_plugins(plugin)
    classifier = None if model is None else NodeClassifier.load(model)
    graph = _read(files, columns, classifier)
    if graph.summary is not None:
        for line in graph.summary.lines(warnings_only=True):
            say(line)
    rows = choose(graph, count, model=classifier)
    encoder = graph.feature_encoder
    label = columns.label or (encoder.roles.get("label") if encoder else None) or "label"
    if out is not None:
        write_atomically(out, suggestions_csv(rows, label).encode())
    names = Suggestion._fields[1:]
    if json_output:
        plain = [dict(zip(names, row[1:], strict=True)) for row in rows]
        unlabeled = int((graph.labels < 0).sum())
        print(json.dumps({"unlabeled": unlabeled, "suggestions": plain}, default=str))
        return 0
    print(f"{len(rows)} of {int((graph.labels < 0).sum()):,} unlabeled nodes to label next:")
    for row in rows:
        print(f"  {row.id}: {row.reason}")
    if out is not None and not quiet:
        print(f"Fill in the column {label!r} of {out}, and pass it to `everynode fit --labels`.")
    return 0


def _read(files: Files, columns: Columns, classifier: object) -> Graph:
    """Read the graph with the encoder of the model, or without any label."""
    from everynode.estimator import NodeClassifier

    if not isinstance(classifier, NodeClassifier):
        return files.read(
            label=columns.label, labels=columns.labels, features=columns.features, name=files.name,
            few_labels=True,
        )  # fmt: skip
    if classifier.feature_encoder_ is None:
        raise UsageError(
            "The model has no encoder of columns: 'everynode fit' did not write it. Use it from "
            "Python."
        )
    if columns.features != Columns.features:
        raise UsageError("--features has no effect with a model: it has its own. Leave it out.")
    directed = files.directed or classifier.directed_
    return replace(files, directed=directed).read(
        feature_encoder=classifier.feature_encoder_, label=columns.label, labels=columns.labels,
        name=files.name,
    )  # fmt: skip
