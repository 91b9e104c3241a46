"""The command line: parses, calls, prints. What computes is imported inside the commands, so that ``--help`` answers at once."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from everynode import __version__
from everynode.errors import EverynodeError, UsageError, require, unknown

if TYPE_CHECKING:
    from everynode.experiments.run import Run
    from everynode.graph import Graph

app = App(name="everynode", version=__version__, help="Node classifiers trained on every node, labelled or not.")
data_app = App(name="data", help="The graphs that everynode knows by name.")
app.command(data_app)

BackboneName = Literal["gcn", "gat", "gcnii"]


@Parameter(name="*")
@dataclass(frozen=True)
class DataOptions:
    """Which graph."""

    split: str | None = None
    "public, geom-gcn (ten folds), random, or official; default: the graph's own."
    per_class: int = 20
    "Training nodes per class, with --split random."
    split_seed: int = 0
    "Which random split, with --split random."
    data_dir: Path | None = None
    "Where the public graphs are; default: $EVERYNODE_DATA, else a cache into which they are downloaded."
    directed: bool = False
    "Keep the direction of edges."
    device: str = "cpu"
    "cpu, cuda, ..."

    def load(self, name: str) -> tuple[Graph, str]:
        """The graph, and the name of its split."""
        import torch

        from everynode.data import CATALOGUE, load

        graph = load(name, self.split, data_dir=self.data_dir, directed=self.directed, per_class=self.per_class, seed=self.split_seed)
        split = self.split or CATALOGUE[name].splits[0]
        try:
            device = torch.device(self.device)
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError) as error:
            raise UsageError(f"The device {self.device!r} cannot be used here ({str(error).splitlines()[0]}): use --device cpu.") from error
        return (graph if device.type == "cpu" else graph.to(device)), split


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """Which network and objective; what is not given comes from the preset."""

    backbone: BackboneName = "gcn"
    "The layers between the opening and the closing layer."
    objective: str = "enc"
    "enc (= mi+tv+cvg), ce, mi, tv, cvg, preg, or a sum such as mi+tv."
    preset: Literal["default", "paper"] = "default"
    "Where the settings come from: chosen on validation, or the paper's tables."
    layers: int | None = None
    "How many layers."
    channels: int | None = None
    "How wide."
    dropout: float | None = None
    "On the input and before the closing layer."
    layer_dropout: float | None = None
    "Before each layer."
    input: Literal["row", "raw"] | None = None
    "Row-normalised or raw input features."
    gcnii_alpha: float | None = None
    "How much of the opening features GCNII mixes into each layer."
    gcnii_lambda: float | None = None
    "How far GCNII's weights are from the identity."
    mi: float | None = None
    "The weight of mutual information."
    mi_lambda: float | None = None
    "How much MI wants equal classes."
    tv: float | None = None
    "The weight of total variation."
    tv_sigma: float | None = None
    "How different features must be for TV to see a boundary."
    tv_gate: Literal["raw", "row", "standardised", "none"] | None = None
    "The features that TV looks at for boundaries."
    cvg: float | None = None
    "The weight of cross-validating gradients."
    halves: Literal["random", "stratified", "fixed"] | None = None
    "How CVG halves the labelled nodes."
    cvg_every: int | None = None
    "Take CVG at every so many steps only, which costs less."
    preg: float | None = None
    "The weight of P-reg."
    lr_gnn: float | None = None
    "Learning rate of the layers."
    lr_oc: float | None = None
    "Learning rate of opening and closing layer."
    wd_gnn: float | None = None
    "Weight decay of the layers."
    wd_oc: float | None = None
    "Weight decay of opening and closing layer."
    epochs: int | None = None
    "At most so many."
    patience: int | None = None
    "Stop after so many epochs without a better one."
    select: Literal["loss", "accuracy"] | None = None
    "What makes an epoch the best: validation loss, or validation accuracy."

    def run(self, dataset: str, graph: Graph, split: str, *, fold: int, seed: int, objective: str) -> Run:
        """The run that these options describe."""
        from dataclasses import fields

        from everynode.experiments.run import Run
        from everynode.settings import Settings

        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("backbone", "objective", "preset")}
        settings = Settings.preset(self.preset, graph=dataset, split=split, backbone=self.backbone, **named)
        require(0 <= seed < 2**63, "seed", "train and compare", "between 0 and 2**63 - 1", seed)
        graph.nodes("train", fold)  # a fold that is not there is refused before anything is trained
        return Run(dataset, graph.digest, split, fold, seed, self.preset, objective, settings.for_objective(objective))


@app.command
def train(
    name: str,
    /,
    *,
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    fold: int = 0,
    seed: int = 0,
    out: Path | None = None,
    resume: bool = True,
    threads: int = 1,
    json_output: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Train one model on a named graph; say what it got and where it is saved.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
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
    json_output
        One JSON object on stdout.
    quiet
        No progress.
    """
    import torch

    from everynode.experiments.run import short
    from everynode.progress import Bar, describe
    from everynode.training import save_model

    require(threads >= 1, "threads", "train", ">= 1", threads)
    torch.set_num_threads(threads)
    graph, split = data.load(name)
    run = model.run(name, graph, split, fold=fold, seed=seed, objective=model.objective)
    folder = out or Path("runs") / f"{name}-{run.settings.backbone}-{model.objective}-{run.key[:8]}"
    finished = _prepare_folder(folder, run, resume)
    if finished:
        say(f"This run was finished before in {folder}; --no-resume trains again.", quiet)
        record = finished
    else:
        state = folder / "training.safetensors"
        if state.exists():
            say(f"Going on from {state}.", quiet)
        with Bar(f"{name} {run.settings.backbone} {model.objective}", run.settings.epochs, unit="epochs", show=not quiet) as bar:
            fitted = run.execute(graph, report=lambda epoch, row: bar.advance(describe(row), to=epoch + 1), checkpoint=state)
        record = run.record(fitted, graph)
        save_model(folder, fitted, {"run": record})
        if fitted.interrupted:
            say(f"Interrupted after {fitted.epochs} epochs: the best so far is kept, and the same command goes on from here.", quiet)
        else:
            state.unlink(missing_ok=True)
    if json_output:
        print(json.dumps(record))
    else:
        seconds = f"{record['seconds']:.1f} s, {1000 * record['seconds_per_epoch']:.1f} ms each"
        print(f"{name}, {run.settings.backbone}, {model.objective}, split {split}, fold {fold}, seed {seed}")
        print(f"  epochs               {record['epochs']} ({seconds}), best {record['best_epoch']}")
        print(f"  validation accuracy  {short(record['val_accuracy'])} %")
        print(f"  test accuracy        {short(record['test_accuracy'])} %")
        print(f"  model                {folder}")
    return 130 if record["interrupted"] else 0


def _prepare_folder(folder: Path, run: Run, resume: bool) -> dict[str, Any] | None:
    """Make sure that the folder is this run's; its record if the run is finished there."""
    from everynode.errors import DataError
    from everynode.training.checkpoint import write_atomically

    spec, card, state = folder / "run.json", folder / "model.json", folder / "training.safetensors"
    if folder.is_file():
        raise UsageError(f"{folder} is a file: give --out a folder.")
    if not resume:
        state.unlink(missing_ok=True)
        card.unlink(missing_ok=True)
    elif spec.exists():
        try:
            key = json.loads(spec.read_text(encoding="utf-8"))["key"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(f"{spec} cannot be read ({error}): --no-resume starts over.") from error
        if key != run.key:
            raise UsageError(f"{folder} holds another run: give another --out, or --no-resume to replace it.")
        if card.exists() and not state.exists():
            try:
                record: dict[str, Any] = json.loads(card.read_text(encoding="utf-8"))["run"]
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise DataError(f"{card} cannot be read ({error}): --no-resume trains again.") from error
            return record
    elif card.exists():
        raise UsageError(f"{folder} holds another model: give another --out, or --no-resume to replace it.")
    write_atomically(spec, json.dumps({"key": run.key, "command": [Path(sys.argv[0]).name, *sys.argv[1:]]}).encode())
    return None


@app.command
def compare(
    name: str,
    /,
    *,
    model: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
    data: DataOptions = DataOptions(),  # noqa: B008 - frozen
    seeds: int = 10,
    folds: int | None = None,
    fold: int = 0,
    seed: int = 0,
    workers: int | None = None,
    out: Path = Path("runs"),
    resume: bool = True,
    json_output: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Compare the objective with plain cross-entropy: everything else the same, paired, with intervals.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    seeds
        How many seeds, on one fold.
    folds
        Instead of several seeds on one fold: one seed on each of the first so many folds, with intervals corrected for their overlap.
    fold
        Which fold the seeds are run on.
    seed
        The first seed.
    workers
        How many processes; default: one per core.
    out
        The folder of the run store; runs that are in it are not done again.
    resume
        --no-resume does these runs again.
    json_output
        One JSON object on stdout.
    quiet
        No progress.
    """
    import torch

    from everynode.experiments.compare import BASELINE, conclude, do_runs
    from everynode.experiments.run import short
    from everynode.experiments.store import Store
    from everynode.progress import Bar

    torch.set_num_threads(1)
    if model.objective == BASELINE:
        raise UsageError("Cross-entropy cannot be compared with itself: choose another --objective.")
    if seeds < 1 or (folds is not None and folds < 1) or (workers is not None and workers < 1):
        raise UsageError("--seeds, --folds and --workers must be at least 1.")
    graph, split = data.load(name)
    if folds is not None and folds > len(graph.splits):
        raise UsageError(
            f"Split {split!r} of {name} has {len(graph.splits)} fold(s), not {folds}: choose fewer --folds or another --split."
        )
    pairs = [(fold, seed + i) for i in range(seeds)] if folds is None else [(f, seed) for f in range(folds)]
    runs = [
        model.run(name, graph, split, fold=f, seed=s, objective=objective) for f, s in pairs for objective in (BASELINE, model.objective)
    ]
    path = out / "runs.db"
    store = Store(path)
    if not resume:
        for run in runs:
            store.forget(run.key)
    known = 0
    try:
        with Bar(f"{name} {model.backbone}", len(runs), unit="runs", show=not quiet) as bar:

            def on_record(record: dict[str, Any], fresh: bool) -> None:
                nonlocal known
                known += not fresh
                where = f"fold {record['fold']}" if folds else f"seed {record['seed']}"
                bar.advance(f"{record['objective']} {where}: test {short(record['test_accuracy'])}")

            records = do_runs(runs, graph, store, workers=workers, on_record=on_record)
    except KeyboardInterrupt:
        say(f"\nInterrupted: what has ended is in {path}, and the same command goes on from there.", quiet)
        return 130
    if known:
        say(f"{known} of {len(runs)} runs were in {path} already.", quiet)
    share = None if folds is None else len(graph.nodes("test")) / len(graph.nodes("train"))
    result = conclude(records, model.objective, test_share=share)
    if json_output:
        print(json.dumps({"command": shlex.join(["everynode", *sys.argv[1:]]), **result.to_dict()}))
        return 0
    from rich.console import Console
    from rich.table import Table

    over = f"{len(pairs)} seeds" if folds is None else f"{len(pairs)} folds"
    table = Table(title=f"{name}, {model.backbone}, split {split}, {over}: accuracy in %", title_justify="left")
    for heading in ("objective", "test mean", "std", "95% interval", "validation mean", "s per run"):
        table.add_column(heading, justify="left" if heading == "objective" else "right")
    for objective, test in result.test.items():
        seconds = [r["seconds"] for r in records if r["objective"] == objective]
        interval = f"{short(test.low)} to {short(test.high)}"
        table.add_row(
            "cross-entropy" if objective == BASELINE else objective,
            short(test.mean), short(test.std), interval, short(result.val[objective].mean), f"{sum(seconds) / len(seconds):.1f}",
        )  # fmt: skip
    Console().print(table)
    gain = result.gain
    print(f"{model.objective} minus cross-entropy, paired: {100 * gain.mean:+.2f} points", end="")
    print(f", 95% interval {100 * gain.low:+.2f} to {100 * gain.high:+.2f} (p = {gain.p_value:.2g})" if gain.count > 1 else "")
    return 0


@data_app.command(name="list")
def data_list(*, data_dir: Path | None = None, json_output: Annotated[bool, Parameter(name="--json", negative="")] = False) -> int:
    """List the graphs that can be named, and whether their files are here.

    Parameters
    ----------
    data_dir
        Where the public graphs are.
    json_output
        A JSON list on stdout.
    """
    from everynode.data import CATALOGUE, is_present

    entries = [(entry, is_present(entry.name, data_dir=data_dir)) for entry in CATALOGUE.values()]
    if json_output:
        print(
            json.dumps(
                [{"name": e.name, "present": here, "splits": e.splits, "about": e.about, "caution": e.caution} for e, here in entries]
            )
        )
        return 0
    for entry, here in entries:
        print(f"{entry.name:15} {'here' if here else 'not here':9} {' | '.join(entry.splits):28} {entry.about} {entry.caution}".rstrip())
    return 0


@data_app.command(name="check")
def data_check(
    name: str,
    /,
    *,
    split: str | None = None,
    data_dir: Path | None = None,
    json_output: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Measure a graph and say what is odd about it.

    Parameters
    ----------
    name
        A graph of `everynode data list`.
    split
        public, geom-gcn, random or official; default: the graph's own.
    data_dir
        Where the public graphs are.
    json_output
        One JSON object on stdout.
    """
    from everynode.data import check_named

    report = check_named(name, split, data_dir=data_dir)
    if json_output:
        print(json.dumps(report.to_dict()))
        return 0
    for fact, value in report.facts.items():
        print(f"{fact.replace('_', ' '):28} {value:.4g}" if isinstance(value, float) else f"{fact.replace('_', ' '):28} {value}")
    print()
    for finding in report.findings:
        print(f"{'!' if finding.level == 'warning' else '-'} {finding.text}")
    return 0


@app.command
def bench(
    *,
    graphs: str = "cora,citeseer,pubmed,chameleon,squirrel,actor",
    backbones: str = "gcn,gat,gcnii",
    objectives: str = "ce,mi+tv,enc",
    threads: str = "1,2",
    seconds: float = 3.0,
    memory: bool = False,
    data_dir: Path | None = None,
    json_output: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False,
) -> int:
    """Time one training step and one evaluation against stock PyG, side by side; graphs whose files are not here are left out.

    Parameters
    ----------
    graphs
        Which graphs.
    backbones
        Which backbones (gcn with 2 layers, gat with 2, gcnii with 8).
    objectives
        Which objectives.
    threads
        With how many torch threads.
    seconds
        How long to measure each combination.
    memory
        Measure peak memory too, in processes of their own (one thread).
    data_dir
        Where the public graphs are.
    json_output
        One JSON object on stdout.
    quiet
        No progress.
    """
    from everynode.benchmarks.measure import bench as measure
    from everynode.benchmarks.measure import machine
    from everynode.benchmarks.memory import peak
    from everynode.benchmarks.sides import DEPTH, settings_for
    from everynode.data import is_present

    for backbone in backbones.split(","):
        if backbone not in DEPTH:
            unknown("backbone", backbone, DEPTH)
        for objective in objectives.split(","):
            settings_for(backbone, objective)  # an objective that is not one is refused before anything is measured
    named = graphs.split(",")
    here = [name for name in named if is_present(name, data_dir=data_dir)]
    for name in named:
        if name not in here:
            say(f"{name} is left out: its files are not here. `everynode data check {name}` gets them.", quiet)
    try:
        counts = [int(count) for count in threads.split(",")]
    except ValueError:
        raise UsageError(f"--threads takes numbers such as 1,2. Got {threads!r}.") from None
    for count in counts:
        require(count >= 1, "threads", "bench", ">= 1", count)
    limits = [machine(count) for count in counts]
    result: dict[str, Any] = {"command": shlex.join(["everynode", *sys.argv[1:]]), "machine": limits, "rows": []}
    for row in measure(here, backbones.split(","), objectives.split(","), limits, seconds, data_dir):
        if memory and row["threads"] == counts[0]:
            where = row["graph"], row["backbone"].partition("-")[0], row["objective"]
            row["memory"] = {side: peak(side, *where, data_dir) for side in ("everynode", "stock")}
        result["rows"].append(row)
        text = f"{row['graph']:10} {row['backbone']:8} {row['objective']:6} {row['threads']} thread(s)"
        timing = f"everynode {row['everynode_ms']:8.2f} ms   stock PyG {row['stock_ms']:8.2f} ms   {row['ratio']:5.1f}x"
        if "memory" in row:
            timing += "   peak " + " / ".join(f"{row['memory'][side]['peak_mb']:.0f} MB" for side in ("everynode", "stock"))
        if not json_output:
            print(f"{text}   {timing}   {100 * row['roofline_ms'] / row['everynode_ms']:3.0f}% of the machine's limit", flush=True)
        else:
            say(f"{text}   {timing}", quiet)
    if json_output:
        print(json.dumps(result))
    return 0


def say(text: str, quiet: bool = False) -> None:
    """Tell the person, not the program that reads stdout."""
    if not quiet:
        print(text, file=sys.stderr)


def main() -> None:
    """Run a command; what is wrong with the input becomes one sentence on stderr and exit code 2 or 3, never a traceback."""
    try:
        code = app(exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        say(f"everynode: {str(error).strip()} Try 'everynode --help'.")
        code = 2
    except EverynodeError as error:
        say(f"everynode: {error}")
        code = error.exit_code
    except BrokenPipeError:  # `everynode ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    except OSError as error:
        say(f"everynode: Cannot write the result: {error.strerror or error}.")
        code = 3
    sys.exit(code)
