"""``everynode train``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.batch_options import BatchOptions
from everynode.cli.files import OwnGraph
from everynode.cli.folder import prepare, remove_states
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import (
    OUTPUT,
    DataOptions,
    JsonFlag,
    ModelOptions,
    QuietFlag,
)
from everynode.console import say
from everynode.errors import DataError, UsageError, require
from everynode.storage.json_text import parse_json

if TYPE_CHECKING:
    from everynode.experiments.run_spec import Run
    from everynode.graph import Graph
    from everynode.graph.disk_graph import DiskGraph
    from everynode.training.distributed import Ranks

#: The files of a finished training, in the order of writing.
MADE = ("model.safetensors", "model.json")
#: The file of the training state, in the model's folder.
STATE = "training.safetensors"


def train(
    name: str | None = None,
    /,
    *,
    own: OwnGraph = OwnGraph(),  # noqa: B008 - frozen
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    batch: BatchOptions = BatchOptions(),  # noqa: B008 - frozen
    fold: int = 0,
    seed: int = 0,
    out: Annotated[Path | None, Parameter(group=OUTPUT)] = None,
    resume: Annotated[bool, Parameter(group=OUTPUT)] = True,
    threads: Annotated[int, Parameter(group=OUTPUT)] = 1,
    json_output: JsonFlag = False,
    quiet: QuietFlag = False,
) -> int:
    """Train one model on a graph, print its scores and save it.

    With --batch-size, `torchrun --nproc-per-node 2 -m everynode train ...` divides every step
    between processes.

    Parameters
    ----------
    name
        A graph of `everynode data list`, or the folder of a graph on disk. Or give your own:
        --nodes and --edges.
    fold
        The fold, if the split has several.
    seed
        Seed of weights, dropout and halves.
    out
        The model's folder; default: one under runs/ named after the run.
    resume
        Continue an interrupted run of the same command in --out; --no-resume starts over.
    threads
        Number of torch threads. With one, the same seed gives the same result.
    """
    import torch

    from everynode.graph.disk_graph import DiskGraph
    from everynode.training.distributed import num_processes, process_group

    require(threads >= 1, "threads", "train", ">= 1", threads)
    torch.set_num_threads(threads)
    batches = batch.batches()
    if batches is None and num_processes() > 1:
        raise UsageError("Several processes train in mini-batches: give --batch-size.")
    with process_group(data.usable_device()) as ranks:
        # With mini-batches the graph stays on the CPU, and only batches go to the device.
        place = dataclasses.replace(data, device="cpu") if batches else data
        name, graph, split = _open(name, own, place, quiet or json_output)
        if batches is None and isinstance(graph, DiskGraph):
            raise UsageError(f"{name} is on disk, which needs mini-batches: give --batch-size.")
        run = model.run(
            graph.name if isinstance(graph, DiskGraph) else name, graph, split, data,
            fold=fold, seed=seed, objective=model.objective, batches=batches, processes=ranks.size,
        )  # fmt: skip
        label = f"{run.dataset}-{run.settings.backbone}-{run.objective}-{run.key[:8]}"
        folder = out or Path("runs") / label
        if not ranks.first:
            return _share(run, graph, folder, ranks)
        record = _train(run, graph, folder, resume, quiet, ranks)
    if json_output:
        print(json.dumps(record))
    else:
        _print_record(run, record, folder)
    return INTERRUPTED if record["interrupted"] else 0


def _open(
    name: str | None, own: OwnGraph, data: DataOptions, quiet: bool
) -> tuple[str, Graph | DiskGraph, str]:
    """Return the name of a graph, the graph and the name of its split."""
    if own.given(name):
        return own.open(data, quiet)[:3]
    assert name is not None
    return (name, *data.open(name))


def _train(
    run: Run, graph: Graph | DiskGraph, folder: Path, resume: bool, quiet: bool, ranks: Ranks
) -> dict[str, Any]:
    """Train with a progress bar, or read the record of a finished training."""
    from everynode.experiments.tasks import train_to_folder
    from everynode.progress import Bar, StopEstimate, describe

    finished: dict[str, Any] | None = {}
    try:
        finished = _finished(folder) if prepare(folder, run.key, MADE, STATE, resume) else None
    finally:
        ranks.any(finished is not None)  # _share waits for this
    if finished:
        say(f"This run was finished before in {folder}; --no-resume trains again.", quiet)
        return finished
    state = folder / STATE
    if state.exists():
        say(f"Continuing from {state}.", quiet)
    title = f"{run.dataset} {run.settings.backbone} {run.objective}"
    chosen = run.settings
    estimate = StopEstimate(chosen.epochs, chosen.patience, chosen.monitor)
    with Bar(title, chosen.epochs, unit="epochs", show=not quiet, early=True) as bar:
        record = train_to_folder(
            run,
            graph,
            folder,
            state,
            report=lambda epoch, row: bar.advance(
                describe(row), to=epoch + 1, last=estimate(title, epoch, row)
            ),
            ranks=ranks,
        )
    if record["interrupted"]:
        say(f"Interrupted after {record['epochs']} epochs: the best model so far is saved.")
        say("The same command continues.")
    else:
        remove_states(state)
    return record


def _share(run: Run, graph: Graph | DiskGraph, folder: Path, ranks: Ranks) -> int:
    """Train with the first process, which prepares the folder, prints and writes the results."""
    from everynode.experiments.tasks import share_training

    if ranks.any(False):  # it was finished before, or the folder cannot be used
        return 0
    return 0 if share_training(run, graph, folder / STATE, ranks) else INTERRUPTED


def _finished(folder: Path) -> dict[str, Any]:
    """Read the record of a finished training."""
    card = folder / "model.json"
    try:
        record: dict[str, Any] = parse_json(card.read_text(encoding="utf-8"))["run"]
        return record
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise DataError(f"{card} cannot be read ({error}): --no-resume trains again.") from error


def _print_record(run: Run, record: dict[str, Any], folder: Path) -> None:
    from everynode.experiments.run_spec import short
    from everynode.objective_names import remark

    note = remark(run.settings, run.objective)
    objective = f"{run.objective} ({note})" if note else run.objective
    where = f"split {run.split}, fold {run.fold}, seed {run.seed}"
    seconds = f"{record['seconds']:.1f} s, {1000 * record['seconds_per_epoch']:.1f} ms each"
    print(f"{run.dataset}, {run.settings.backbone}, {objective}, {where}")
    print(f"  epochs               {record['epochs']} ({seconds}), best {record['best_epoch']}")
    print(f"  validation accuracy  {short(record['val_accuracy'])} %")
    print(f"  test accuracy        {short(record['test_accuracy'])} %")
    print(f"  model                {folder}")
    if "stand_in" in record:
        print(record["stand_in"])
