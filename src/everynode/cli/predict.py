"""``everynode predict``: a model of ``everynode fit`` on new nodes, or on another graph."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from everynode.cli.files import Files
from everynode.cli.options import JsonFlag, QuietFlag
from everynode.console import say
from everynode.errors import UsageError

#: Endings of names that promise another format than CSV.
NOT_CSV = (
    "tsv", "tab", "parquet", "pq", "feather", "arrow", "ipc", "orc", "avro", "xlsx", "xls", "xlsm", "ods", "json", "jsonl", "ndjson",
    "yaml", "yml", "xml", "html", "md", "npy", "npz", "pkl", "pickle", "pt", "h5", "hdf5", "db", "sqlite", "graphml", "gexf", "gz", "bz2",
    "xz", "zst", "zip",
)  # fmt: skip
#: The model does not know by name what it learned from, and the whole graph with newcomers in it has all of that.
CAUTION = (
    "Where the model was fitted on some of these labels, that is too good for new nodes: go by the fit's score on its test nodes, "
    "or else on its validation nodes."
)


def predict(
    model: Path,
    /,
    *,
    files: Files = Files(),  # noqa: B008 - frozen
    label: str | None = None,
    out: Path = Path("predictions.csv"),
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Predict the labels of every node in your files with a model that `everynode fit` made.

    Columns become features as they did then, and weights, directions, missing values and edges to unknown nodes are taken as they were.
    For new nodes of the same graph, give the whole graph with them in it: a node is known by its neighbours.

    Parameters
    ----------
    model
        The model folder, or the --out of `everynode fit` in which it is.
    label
        The nodes' column of labels; default: the one of `everynode fit`, if it is there. What the model gets right of them is said.
    out
        The table of predictions, as CSV. An older one is replaced; another file is not.
    """
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.evaluation.predictions import is_table, predictions
    from everynode.evaluation.quality import wilson
    from everynode.storage.atomic import write_atomically
    from everynode.training.checkpoint import model_folder

    torch.set_num_threads(1)
    folder = model_folder(model)
    classifier = NodeClassifier.load(folder)
    if classifier.feature_encoder_ is None:
        raise UsageError(
            f"{folder} does not say how columns become features: it was not made by 'everynode fit'. Use it from Python."
        )
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder: name a file.")
    if out.name == "predictions.csv" and (out.resolve().parent / "fit.json").exists():
        raise UsageError(
            f"{out} here is what 'everynode fit' predicted: name another file (--out ...)."
        )
    files.spare([out], *folder.rglob("model.*"))
    if out.suffix.lower().removeprefix(".") in NOT_CSV:
        raise UsageError(
            f"--out {out}: predictions are written as CSV. Name a file that ends in .csv."
        )
    if out.is_file() and out.stat().st_size and not is_table(out):
        raise UsageError(
            f"{out} is there, and is no table of predictions: name another --out, or move it away."
        )
    graph = replace(files, directed=files.directed or classifier.directed_).read(
        feature_encoder=classifier.feature_encoder_, label=label, name=files.name
    )
    if graph.summary is not None:
        for line in graph.summary.lines(warnings_only=quiet):
            say(line)
    found = predictions(classifier, graph)
    write_atomically(out, found.to_csv().encode())
    known = [i for i, name in enumerate(found.given) if name is not None]
    summary = {"predictions": str(out), "nodes": graph.num_nodes, "labelled": len(known)}
    if known:
        right = int((found.predicted == found.labels)[known].sum())
        summary |= {"accuracy": list(wilson(right, len(known))), "caution": CAUTION}
    if json_output:
        print(json.dumps(summary))
        return 0
    print(f"{out}: {graph.num_nodes} nodes")
    if known:
        value, low, high = (100 * x for x in wilson(right, len(known)))
        print(
            f"  of {len(known)} that have a label, {value:.1f} % are right (95% interval {low:.1f} to {high:.1f})"
        )
        print(f"  {CAUTION}")
    return 0
