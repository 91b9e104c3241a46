"""``everynode explain``: the columns, words and nodes that carried a prediction."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.files import Files
from everynode.cli.folder import read_result
from everynode.cli.options import JsonFlag, PluginFlag, load_plugins
from everynode.cli.predict import read_as_trained
from everynode.errors import UsageError, require

if TYPE_CHECKING:
    from everynode.estimator import NodeClassifier
    from everynode.graph import Graph


def explain(
    model: Path,
    /,
    *,
    node: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    files: Files = Files(),  # noqa: B008 - frozen
    class_: Annotated[str | None, Parameter(name="--class")] = None,
    count: int = 10,
    plugin: PluginFlag = (),
    json_output: JsonFlag = False,
) -> int:
    """Explain predictions: what carried them, and what they would be without it.

    Columns and words of the node take a neutral value, one at a time; neighbors and labeled nodes
    nearby lose all their edges. Each time the whole model predicts again, and the change of the
    probability is shown. Two runs give the same answer.

    Parameters
    ----------
    model
        The model folder, or the --out of `everynode fit`. Without --nodes and --edges, the files of
        the fit are read again.
    node
        The id or the name of a node. May be given several times.
    class_
        The class to explain. Default: the predicted one.
    count
        The number of reasons to show.
    """
    import torch

    from everynode.estimator import NodeClassifier
    from everynode.estimator_decisions import explanations, find_node
    from everynode.training.checkpoint import model_folder

    require(count >= 0, "count", "explain", ">= 0", count)
    if not node:
        raise UsageError("Which node? Give its id: --node ID.")
    load_plugins(plugin)
    torch.set_num_threads(1)
    folder = model_folder(model)
    classifier = NodeClassifier.load(folder)
    graph = _graph(classifier, folder, files)
    nodes = [find_node(graph, name) for name in node]
    found = explanations(classifier, graph, nodes, class_)
    if json_output:
        print(json.dumps({"explanations": [one.to_dict(count) for one in found]}, default=str))
        return 0
    for place, one in enumerate(found):
        print("\n" * bool(place) + "\n".join(one.lines(count)))
    return 0


def _graph(classifier: NodeClassifier, folder: Path, files: Files) -> Graph:
    """Read the given files, or those of the fit, as in the training."""
    options: dict[str, Any] = {}
    if files.nodes is None and files.edges is None:
        result = folder.parent / "fit.json"
        recorded = read_result(result).get("files") if result.exists() else None
        if not recorded:
            raise UsageError(
                f"{folder.parent} does not say which files it was fitted to: give --nodes and "
                "--edges."
            )
        flags = recorded["flags"] | {"na": tuple(recorded["flags"].get("na", ()))}
        files = replace(Files(**flags), **_given(files))
        options = recorded["columns"]
    return read_as_trained(classifier, folder, files, **options)


def _given(files: Files) -> dict[str, Any]:
    """Return the flags of this command that differ from their defaults."""
    return {name: value for name, value in vars(files).items() if value != getattr(Files(), name)}
