"""``everynode predict``: a model of ``everynode fit`` on new nodes, or on another graph."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.batch_options import block_size
from everynode.cli.files import Files
from everynode.cli.options import DeviceFlag, JsonFlag, PluginFlag, QuietFlag, load_plugins
from everynode.console import say
from everynode.errors import UsageError

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.evaluation.predictions import Predictions
    from everynode.graph import Graph

#: Endings of other formats than CSV.
NOT_CSV = (
    "tsv", "tab", "parquet", "pq", "feather", "arrow", "ipc", "orc", "avro", "xlsx", "xls", "xlsm",
    "ods", "json", "jsonl", "ndjson", "yaml", "yml", "xml", "html", "md", "npy", "npz", "pkl",
    "pickle", "pt", "h5", "hdf5", "db", "sqlite", "graphml", "gexf", "gz", "bz2", "xz", "zst",
    "zip",
)  # fmt: skip
#: The model does not record its training nodes, and the whole graph contains them.
CAUTION = (
    "If the model was trained on some of these labels, this is too good for new nodes: rely on the "
    "fit's score on its test nodes, or else on its validation nodes."
)


def predict(
    model: Path,
    /,
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    label: str | None = None,
    out: Path = Path("predictions.csv"),
    device: DeviceFlag = "cpu",
    batch_size: str = "auto",
    coverage: float | None = None,
    per_class: Annotated[bool, Parameter(negative="")] = False,
    plugin: PluginFlag = (),
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Predict the label of every node in your files with a model of `everynode fit`.

    Features, weights, directions, missing values and edges to unknown nodes are read as in the
    fit. For new nodes of the same graph, give the whole graph including the new nodes: the model
    needs their neighbors.

    Parameters
    ----------
    model
        The model folder, or the --out of `everynode fit`.
    label
        The label column of --nodes, to show the accuracy. Default: the column of `everynode fit`,
        if it exists.
    out
        The CSV file of predictions. An older one is replaced; any other file is refused.
    batch_size
        Nodes that a network computes at once, each with all of its neighbors: a number, `full`, or
        `auto`: blocks on a large graph. The predictions are the same up to rounding.
    coverage
        Add a column `set`: classes that contain the true one with this probability, such as 0.9. It
        needs 9 held-out labels for 0.9, and 19 for 0.95.
    per_class
        Promise the --coverage for the nodes of each class. Each class needs as many labels.
    """
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.evaluation.predictions import predictions
    from everynode.training.checkpoint import model_folder

    load_plugins(plugin)
    torch.set_num_threads(1)
    folder = model_folder(model)
    classifier = NodeClassifier.load(folder, device=device)
    for network in classifier.networks_:
        network.block = block_size(batch_size)
    files.spare([out], *folder.rglob("model.*"))
    _check_out(out)
    graph = read_as_trained(classifier, folder, files, label=label)
    if graph.summary is not None:
        for line in graph.summary.lines(warnings_only=quiet):
            say(line)
    table = predictions(classifier, graph, coverage=coverage, per_class=per_class)
    table.write_csv(out)
    summary, lines = _accuracy(table)
    summary = {"predictions": str(out), "nodes": graph.num_nodes} | summary
    lines = [f"{out}: {graph.num_nodes} nodes", *lines]
    if table.sets is not None:
        size = float(table.sets.sum(1).mean())
        summary |= {"coverage": coverage, "mean_set_size": size}
        lines.append(f"  sets of {size:.2f} classes on average, for a coverage of {coverage:g}")
    print(json.dumps(summary) if json_output else "\n".join(lines))
    return 0


def read_as_trained(
    classifier: NodeClassifier, folder: Path, files: Files, **options: Any
) -> Graph:
    """Read files as in the training of a classifier, which was loaded from ``folder``."""
    if classifier.feature_encoder_ is None:
        raise UsageError(
            f"{folder} has no encoder of columns: 'everynode fit' did not write it. Use it from "
            "Python."
        )
    return replace(files, directed=files.directed or classifier.directed_).read(
        feature_encoder=classifier.feature_encoder_, name=files.name, **options
    )


def _accuracy(table: Predictions) -> tuple[dict[str, Any], list[str]]:
    """Return the accuracy on the labeled nodes, as values and as lines."""
    from everynode.evaluation.quality import wilson

    labeled = [i for i, name in enumerate(table.label_names) if name is not None]
    if not labeled:
        return {"labeled": 0}, []
    right = int((table.predicted == table.labels)[labeled].sum())
    accuracy = wilson(right, len(labeled))
    value, low, high = (100 * x for x in accuracy)
    return {"labeled": len(labeled), "accuracy": list(accuracy), "caution": CAUTION}, [
        f"  {value:.1f} % of the {len(labeled)} labeled nodes are right (95% interval "
        f"{low:.1f} to {high:.1f})",
        f"  {CAUTION}",
    ]


def _check_out(out: Path) -> None:
    """Refuse an --out that is a folder, another format, or another file."""
    from everynode.evaluation.predictions import is_table

    if out.is_dir():
        raise UsageError(f"--out {out} is a folder: name a file.")
    if out.suffix.lower().removeprefix(".") in NOT_CSV:
        raise UsageError(f"--out {out}: predictions are CSV. Choose a name that ends in .csv.")
    if out.name == "predictions.csv" and (out.resolve().parent / "fit.json").exists():
        raise UsageError(f"{out} is a result of 'everynode fit': choose another --out.")
    if out.is_file() and out.stat().st_size and not is_table(out):
        raise UsageError(
            f"{out} exists and is not a table of predictions: choose another --out, or move it "
            "away."
        )
