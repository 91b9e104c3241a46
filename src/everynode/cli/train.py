"""``everynode train``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.cli.folder import prepare, remove_states
from everynode.cli.interrupt import INTERRUPTED
from everynode.cli.options import (
    OUTPUT,
    BatchOptions,
    DataOptions,
    JsonFlag,
    ModelOptions,
    QuietFlag,
)
from everynode.console import say
from everynode.errors import UsageError, require

if TYPE_CHECKING:
    from everynode.experiments.run_spec import Run
    from everynode.graph import Graph
    from everynode.graph.disk_graph import DiskGraph
    from everynode.training.distributed import Ranks

#: What a folder holds when a training has ended, in the order in which it is written.
MADE = ("model.safetensors", "model.json")
#: The file that keeps the state of a training, in the model's folder.
STATE = "training.safetensors"


def train(
    name: str,
    /,
    *,
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
    """Train one model on a named graph; say what it got and where it is saved.

    With --batch-size it may be started as `torchrun --nproc-per-node 2 -m everynode train ...`: the processes share every step.

    Parameters
    ----------
    name
        A graph of `everynode data list`, or the folder of a graph on disk.
    fold
        Which fold, where the split has several.
    seed
        Decides weights, dropout and halves.
    out
        The model's folder; default: one under runs/ that is named after the run.
    resume
        Go on where an interrupted run of the same command in --out stopped; --no-resume starts over.
    threads
        torch threads. With one, the same seed gives the same result.
    """
    import torch

    from everynode.experiments.run_spec import short
    from everynode.graph.disk_graph import DiskGraph
    from everynode.training.distributed import num_processes, process_group

    require(threads >= 1, "threads", "train", ">= 1", threads)
    torch.set_num_threads(threads)
    batches = batch.batches()
    if batches is None and num_processes() > 1:
        raise UsageError(
            "Several processes share the steps of training in batches: give --batch-size, or start one process."
        )
    with process_group(data.usable_device()) as ranks:
        # In batches the graph stays on the CPU, and only a batch at a time goes to the device.
        graph, split = (dataclasses.replace(data, device="cpu") if batches else data).open(name)
        if batches is None and isinstance(graph, DiskGraph):
            raise UsageError(
                f"{name} is a graph on disk, which is trained in batches: give --batch-size."
            )
        called = graph.name if isinstance(graph, DiskGraph) else name
        run = model.run(
            called,
            graph,
            split,
            data,
            fold=fold,
            seed=seed,
            objective=model.objective,
            batches=batches,
            processes=ranks.size,
        )
        folder = (
            out or Path("runs") / f"{called}-{run.settings.backbone}-{run.objective}-{run.key[:8]}"
        )
        if not ranks.first:
            return _help(run, graph, folder, ranks)
        record = _train(run, graph, folder, resume, quiet, ranks)
    if json_output:
        print(json.dumps(record))
    else:
        seconds = f"{record['seconds']:.1f} s, {1000 * record['seconds_per_epoch']:.1f} ms each"
        from everynode.objective_names import remark

        note = remark(run.settings, run.objective)
        objective = f"{run.objective} ({note})" if note else run.objective
        print(
            f"{called}, {run.settings.backbone}, {objective}, split {split}, fold {fold}, seed {seed}"
        )
        print(f"  epochs               {record['epochs']} ({seconds}), best {record['best_epoch']}")
        print(f"  validation accuracy  {short(record['val_accuracy'])} %")
        print(f"  test accuracy        {short(record['test_accuracy'])} %")
        print(f"  model                {folder}")
        if "stand_in" in record:
            print(record["stand_in"])
    return INTERRUPTED if record["interrupted"] else 0


def _train(
    run: Run, graph: Graph | DiskGraph, folder: Path, resume: bool, quiet: bool, ranks: Ranks
) -> dict[str, Any]:
    """Train, or find that it was done before; the run's record."""
    from everynode.experiments import tasks
    from everynode.progress import Bar, describe
    from everynode.training import save_model

    finished: dict[str, Any] | None = {}
    try:
        finished = _finished(folder) if prepare(folder, run.key, MADE, STATE, resume) else None
    finally:
        ranks.any(finished is not None)  # the others wait for this in _help
    if finished:
        say(f"This run was finished before in {folder}; --no-resume trains again.", quiet)
        return finished
    state = folder / STATE
    if state.exists():
        say(f"Going on from {state}.", quiet)
    title = f"{run.dataset} {run.settings.backbone} {run.objective}"
    with Bar(title, run.settings.epochs, unit="epochs", show=not quiet, early=True) as bar:
        fitted, result = tasks.train_run(
            run,
            graph,
            report=lambda epoch, row: bar.advance(describe(row), to=epoch + 1),
            checkpoint=state,
            ranks=ranks,
        )
    record = result.to_dict()
    save_model(folder, fitted, {"run": record})
    if fitted.interrupted:
        say(
            f"Interrupted after {fitted.epochs} epochs: the best so far is kept, and the same command goes on from here."
        )
    else:
        remove_states(state)
    return record


def _help(run: Run, graph: Graph | DiskGraph, folder: Path, ranks: Ranks) -> int:
    """Share the steps of the first process, which prepares the folder, tells and writes."""
    from everynode.training import train

    if ranks.any(False):  # it was done before, or there is something wrong with the folder
        return 0
    fitted = train(
        graph,
        run.settings,
        fold=run.fold,
        seed=run.seed,
        checkpoint=folder / STATE,
        batches=run.batches,
        ranks=ranks,
    )
    return INTERRUPTED if fitted.interrupted else 0


def _finished(folder: Path) -> dict[str, Any]:
    """The record of a run that has ended in the folder."""
    from everynode.errors import DataError

    card = folder / "model.json"
    try:
        record: dict[str, Any] = json.loads(card.read_text(encoding="utf-8"))["run"]
        return record
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise DataError(f"{card} cannot be read ({error}): --no-resume trains again.") from error
