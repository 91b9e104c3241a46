"""The flags that commands share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from everynode.errors import UsageError, require

if TYPE_CHECKING:
    import torch

    from everynode.experiments.run_spec import Run
    from everynode.graph import Graph
    from everynode.graph.disk_graph import DiskGraph
    from everynode.settings import Batches, Settings
    from everynode.training.process_pool import Engine

BackboneName = Literal["gcn", "gat", "gcnii"]
#: Under which headings --help lists the flags, in this order; those that a command has alone come under ``LEARNED``, or first.
FILES, LEARNED, GRAPH, NETWORK, TERMS, OPTIMISER, BATCHES, RUNNING, OUTPUT = (
    Group.create_ordered(name)
    for name in (
        "Files",
        "What is learned, and how it is judged",
        "Graph",
        "Network",
        "Terms of the loss",
        "Optimiser",
        "Batches",
        "Where it runs",
        "Output",
    )
)
#: Flags that every command has.
JsonFlag = Annotated[
    bool,
    Parameter(
        name="--json",
        negative="",
        group=OUTPUT,
        help="One JSON object on stdout, everything else on stderr.",
    ),
]
QuietFlag = Annotated[
    bool, Parameter(name=["--quiet", "-q"], negative="", group=OUTPUT, help="No progress.")
]


@Parameter(name="*", group=GRAPH)
@dataclass(frozen=True)
class DataOptions:
    """Which graph."""

    split: str | None = None
    "public, geom-gcn (ten folds), official, stratified, or random; default: the graph's own."
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

    def open(self, name: str) -> tuple[Graph | DiskGraph, str]:
        """The graph of this name, or in this folder; and the name of its split."""
        if not (Path(name) / "graph.json").is_file():
            return self.load(name)
        from everynode.graph.disk_graph import DiskGraph

        if self != DataOptions():
            raise UsageError(
                f"{name} is the folder of a graph, which has its own split: leave out --split and --directed."
            )
        return DiskGraph.open(name), "own"

    def load(self, name: str) -> tuple[Graph, str]:
        """The graph, and the name of its split."""
        from everynode.datasets import load
        from everynode.datasets.entries import find

        graph = load(
            name,
            self.split,
            data_dir=self.data_dir,
            directed=self.directed,
            per_class=self.per_class,
            seed=self.split_seed,
        )
        split = self.split or find(name).splits[0]
        device = self.usable_device()
        return (graph if device.type == "cpu" else graph.to(device)), split

    def usable_device(self) -> torch.device:
        """The device, if there is one here."""
        import torch

        try:
            device = torch.device(self.device)
            torch.zeros(1, device=device).item()
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"The device {self.device!r} cannot be used here ({str(error).splitlines()[0]}): use --device cpu."
            ) from error
        return device


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """Which network and objective; what is not given comes from the preset."""

    backbone: Annotated[BackboneName, Parameter(group=NETWORK)] = "gcn"
    "The layers between the opening and the closing layer."
    objective: Annotated[str, Parameter(group=LEARNED)] = "enc"
    "enc (every term that has a weight in the preset), ce, mi, tv, cvg, con, prior, preg, or a sum such as mi+tv."
    preset: Annotated[str, Parameter(group=LEARNED)] = "default"
    """Where the settings come from: default, paper (its tables), tuned (by graph and objective), authors (GCNII's, for ce), or a file of
    `everynode tune`."""
    num_layers: Annotated[int | None, Parameter(group=NETWORK)] = None
    "How many layers."
    hidden_channels: Annotated[int | None, Parameter(group=NETWORK)] = None
    "How wide."
    dropout: Annotated[float | None, Parameter(group=NETWORK)] = None
    "On the input and before the closing layer."
    layer_dropout: Annotated[float | None, Parameter(group=NETWORK)] = None
    "Before each layer."
    normalize_features: Annotated[bool | None, Parameter(group=NETWORK)] = None
    "Divide each row of the features by its sum."
    gcnii_alpha: Annotated[float | None, Parameter(group=NETWORK)] = None
    "How much of the opening features GCNII mixes into each layer."
    gcnii_lambda: Annotated[float | None, Parameter(group=NETWORK)] = None
    "How far GCNII's weights are from the identity."
    mi: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of mutual information."
    mi_lambda: Annotated[float | None, Parameter(group=TERMS)] = None
    "How much MI wants equal classes."
    tv: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of total variation."
    tv_sigma: Annotated[float | None, Parameter(group=TERMS)] = None
    "How different features must be for TV to see a boundary."
    tv_gate: Annotated[
        Literal["raw", "row", "standardised", "none"] | None, Parameter(group=TERMS)
    ] = None
    "The features that TV looks at for boundaries."
    cvg: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of cross-validating gradients."
    halves: Annotated[Literal["random", "stratified", "fixed"] | None, Parameter(group=TERMS)] = (
        None
    )
    "How CVG halves the labelled nodes."
    cvg_every: Annotated[int | None, Parameter(group=TERMS)] = None
    "Take CVG at every so many steps only, which costs less."
    consistency: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of consistency: two passes of different dropout should agree. Not of the paper; a step takes about twice as long."
    consistency_temperature: Annotated[float | None, Parameter(group=TERMS)] = None
    "How sure consistency wants a node to be: the lower, the surer."
    prior: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of the class prior: classes in the shares that validation nodes let expect. Not of the paper."
    preg: Annotated[float | None, Parameter(group=TERMS)] = None
    "The weight of P-reg."
    lr_gnn: Annotated[float | None, Parameter(group=OPTIMISER)] = None
    "Learning rate of the layers."
    lr: Annotated[float | None, Parameter(group=OPTIMISER)] = None
    "Learning rate of opening and closing layer."
    weight_decay_gnn: Annotated[float | None, Parameter(group=OPTIMISER)] = None
    "Weight decay of the layers."
    weight_decay: Annotated[float | None, Parameter(group=OPTIMISER)] = None
    "Weight decay of opening and closing layer."
    epochs: Annotated[int | None, Parameter(group=OPTIMISER)] = None
    "At most so many."
    patience: Annotated[int | None, Parameter(group=OPTIMISER)] = None
    "Stop after so many epochs without a better one. In a race over folds with fewer than 100 labels these share it, unless it is given."
    class_weight: Annotated[Literal["balanced"] | None, Parameter(group=LEARNED)] = None
    "balanced: every class weighs the same in cross-entropy and CVG, however many of its nodes are labelled."
    monitor: Annotated[str | None, Parameter(name=["--monitor", "--metric"], group=LEARNED)] = None
    "What makes an epoch the best on the validation nodes."

    @property
    def named(self) -> dict[str, Any]:
        """The settings that were given by a flag."""
        values = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("backbone", "objective", "preset")
        }
        return {name: value for name, value in values.items() if value is not None}

    def settings(self, dataset: str, split: str, objective: str) -> Settings:
        """The preset with what was given on top."""
        from everynode.settings import Settings

        return Settings.preset(
            self.preset,
            graph=dataset,
            split=split,
            backbone=self.backbone,
            objective=objective,
            **self.named,
        )

    def run(
        self, dataset: str, graph: Graph | DiskGraph, split: str, data: DataOptions, *, fold: int, seed: int, objective: str,
        batches: Batches | None = None, processes: int = 1,
    ) -> Run:  # fmt: skip
        """The run that these options describe."""
        from everynode.datasets.entries import find
        from everynode.datasets.files import Root
        from everynode.experiments.run_spec import Run
        from everynode.graph.disk_graph import DiskGraph
        from everynode.objective_names import objective_name

        objective = objective_name(objective)  # however it was written, it is the same run
        require(0 <= seed < 2**63, "seed", "train and compare", "between 0 and 2**63 - 1", seed)
        graph.nodes("train", fold)  # a fold that is not there is refused before anything is trained
        per_class, split_seed = (
            (data.per_class, data.split_seed) if split == "random" else (None, None)
        )
        digest = (
            graph.digest
            if isinstance(graph, DiskGraph)
            else find(dataset).digest(split, Root.find(data.data_dir))
        )
        chosen = self.settings(dataset, split, objective).for_objective(objective)
        preset = Path(
            self.preset
        ).name  # of a file: its settings are in the run, and where it lay is nobody's business
        return Run(
            dataset, digest, split, fold, seed, preset, objective, chosen, per_class, split_seed, data.directed,
            batches=batches, processes=processes,
        )  # fmt: skip


@Parameter(name="*", group=BATCHES)
@dataclass(frozen=True)
class BatchOptions:
    """Training on a part of the graph at a time."""

    batch_size: int | None = None
    "Nodes whose predictions a step is about (in each process); default: all nodes in every step."
    fan_out: str = "10"
    "How many neighbours a node hears of in each layer, the last layer's first: 15,10 or one number for all; 'all' is all of them."
    tv_edges: int = 1
    "How many edges of each of these nodes TV looks at."
    clusters: int | None = None
    "Take these nodes as whole clusters, of so many into which METIS cuts the graph; default: at random."

    def batches(self) -> Batches | None:
        """What the options say; None: no batches."""
        from everynode.settings import Batches

        if self.batch_size is None:
            if self != BatchOptions():
                raise UsageError(
                    "--fan-out, --tv-edges and --clusters are for batches: give --batch-size too."
                )
            return None
        words = [word.strip().replace("all", "-1") for word in self.fan_out.split(",")]
        if not all(word.removeprefix("-").isdecimal() for word in words):
            raise UsageError(
                f"--fan-out takes numbers such as 15,10, or 'all'. Got {self.fan_out!r}."
            )
        return Batches(
            self.batch_size, tuple(int(word) for word in words), self.tv_edges, self.clusters
        )


@Parameter(name="*")
@dataclass(frozen=True)
class RaceOptions(ModelOptions):
    """Which network and objective; where no objective is given, several race."""

    objective: Annotated[str, Parameter(group=LEARNED)] = "auto"
    "auto starts cross-entropy and enc, each strong and light, and keeps the best on validation; or enc, ce, a sum such as mi+tv."


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class EngineOptions:
    """Where many runs are done."""

    workers: int | None = None
    "How many runs at once; default: one per core."
    engine: Literal["local", "ray"] = "local"
    "Processes of this machine, or the machines of a Ray cluster."
    address: str | None = None
    "The Ray cluster, such as 10.0.0.1:6379; default: the one that this machine belongs to."

    def start(self) -> Engine:
        """What does the runs."""
        if self.workers is not None and self.workers < 1:
            raise UsageError("--workers must be at least 1.")
        if self.engine == "ray":
            from everynode.training.ray_engine import run_on_ray

            return partial(run_on_ray, address=self.address)
        if self.address is not None:
            raise UsageError("--address is of a Ray cluster: give --engine ray too.")
        from everynode.training.process_pool import run_many

        return run_many
