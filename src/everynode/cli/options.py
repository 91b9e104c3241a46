"""The flags that commands share. The flags of settings are derived from their declarations."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import Group, Parameter

from everynode.datasets.entries import PER_CLASS
from everynode.errors import UsageError, require
from everynode.fit_options import OBJECTIVE, FitOptions, fit_declarations
from everynode.models.names import MODELS
from everynode.settings import TERMS, Settings, declarations

if TYPE_CHECKING:
    import torch

    from everynode.batches import Batches
    from everynode.experiments.run_spec import Run
    from everynode.graph import Graph
    from everynode.graph.disk_graph import DiskGraph

#: The headings of --help, in this order.
GROUPS = {
    name: Group.create_ordered(name)
    for name in (
        "Files", "Training", "Graph", "Model", "Single models", "Objective", "Single terms",
        "Optimizer", "Mini-batches", "Workers", "Output",
    )
}  # fmt: skip
FILES, TRAINING, OUTPUT = GROUPS["Files"], GROUPS["Training"], GROUPS["Output"]

JsonFlag = Annotated[
    bool,
    Parameter(
        name="--json", negative="", group=OUTPUT,
        help="Print one JSON object on stdout, and everything else on stderr.",
    ),
]  # fmt: skip
QuietFlag = Annotated[
    bool, Parameter(name=["--quiet", "-q"], negative="", group=OUTPUT, help="Show no progress.")
]
PluginFlag = Annotated[
    tuple[Path, ...],
    Parameter(
        name="--plugin", negative="", group=TRAINING, show_default=False,
        help="Python file with your own terms and models; repeat it for several files.",
    ),
]  # fmt: skip
DeviceFlag = Annotated[
    str, Parameter(group=GROUPS["Workers"], help="Where to compute: cpu, cuda, cuda:1, ...")
]


#: The class weights that have a name.
BALANCED = ("balanced",)


def load_plugins(files: tuple[Path, ...]) -> None:
    """Load the files of ``--plugin``. Call it before any name is resolved."""
    from everynode import plugins

    for file in files:
        plugins.add(file)


def _flag(name: str, default: Any) -> tuple[str, Any, Any]:
    """Return the field of a setting: its name, its type with help and group, its default."""
    declared, kind = declarations()[name], get_type_hints(Settings)[name]
    options: dict[str, Any] = {"group": GROUPS[declared.heading], "help": declared.help}
    if declared.flags:
        options["name"] = declared.flags
    if isinstance(default, tuple):
        options |= {"negative": "", "show_default": False}
        return name, Annotated[tuple[str, ...], Parameter(**options)], field(default=())
    if declared.choices:
        kind = Literal[declared.choices]
    elif declared.pairs:
        kind = str
    elif declared.expected:
        options["help"] = f"{declared.help.removesuffix('.')}, {declared.expected}."
    return name, Annotated[kind | None, Parameter(**options)], field(default=None)


if TYPE_CHECKING:

    @dataclass(frozen=True)
    class SettingFlags:
        """A flag for every setting except the backbone."""
else:
    SettingFlags = make_dataclass(
        "SettingFlags",
        [_flag(f.name, f.default) for f in fields(Settings) if f.name != "backbone"],
        frozen=True,
        namespace={"__module__": __name__, "__doc__": "A flag for every setting but backbone."},
    )


def parse_pairs(text: str, flag: str) -> dict[str, float]:
    """Parse ``a=1,b=2``.

    >>> parse_pairs("yes=5,no=1", "--class-weight")
    {'yes': 5.0, 'no': 1.0}
    """
    pairs: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            pairs[name.strip()] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            also = "balanced, or " if flag == "--class-weight" else ""
            raise UsageError(f"{flag} takes {also}NAME=NUMBER. Got {part!r}.")
    return pairs


@Parameter(name="*", group=GROUPS["Graph"])
@dataclass(frozen=True)
class DataOptions:
    """The graph.

    Parameters
    ----------
    split : str, optional
        public, geom-gcn (ten folds), official, stratified or random. Default: the graph's own
        split. Of --nodes: the column with train, val or test, or `none`.
    per_class : int
        Training nodes per class with --split random.
    split_seed : int
        Seed of --split random, and of labels that are held out of --nodes.
    data_dir : Path, optional
        Folder of the public graphs. Default: $EVERYNODE_DATA, else a cache for downloads.
    directed : bool
        Keep the direction of edges.
    device : str
        ``--device``.
    """

    split: str | None = None
    per_class: int = PER_CLASS
    split_seed: int = 0
    data_dir: Path | None = None
    directed: bool = False
    device: DeviceFlag = "cpu"

    def open(self, name: str) -> tuple[Graph | DiskGraph, str]:
        """Return the graph of this name or folder, and the name of its split."""
        if not (Path(name) / "graph.json").is_file():
            return self.load(name)
        from everynode.graph.disk_graph import DiskGraph

        if self != DataOptions():
            raise UsageError(
                f"{name} is the folder of a graph with its own split: leave out --split and "
                "--directed."
            )
        return DiskGraph.open(name), "own"

    def load(self, name: str) -> tuple[Graph, str]:
        """Return the public graph of this name, and the name of its split."""
        from everynode.datasets import load
        from everynode.datasets.entries import find

        split = self.split or find(name).splits[0]
        for flag, value in (("per_class", self.per_class), ("split_seed", self.split_seed)):
            if split != "random" and value != getattr(DataOptions, flag):
                raise UsageError(
                    f"--{flag.replace('_', '-')} has no effect without --split random. "
                    "Leave it out, or give --split random."
                )
        graph = load(
            name,
            self.split,
            data_dir=self.data_dir,
            directed=self.directed,
            per_class=self.per_class,
            seed=self.split_seed,
        )
        device = self.usable_device()
        return (graph if device.type == "cpu" else graph.to(device)), split

    def digest(self, name: str, split: str) -> str:
        """Return the digest of the files of a public graph."""
        from everynode.datasets.entries import find
        from everynode.datasets.files import Root

        return find(name).digest(split, Root.find(self.data_dir))

    def changes(self, split: str) -> dict[str, Any]:
        """Return the differences from the public graph: a drawn split, the direction."""
        drawn = {"per_class": self.per_class, "split_seed": self.split_seed}
        return (drawn if split == "random" else {}) | ({"directed": True} if self.directed else {})

    def usable_device(self) -> torch.device:
        """Return the device, or refuse it if it does not work here."""
        from everynode.machine import usable_device

        return usable_device(self.device)


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """The model, the objective and the settings; the preset provides settings without a flag.

    Parameters
    ----------
    backbone : str
        Name of the model.
    objective : str
        ``enc``, ``ce``, a term, or a sum of terms.
    preset : str
        As in :mod:`everynode.fit_options`.
    flags : SettingFlags
        The flags of single settings.
    plugin : tuple of Path
        ``--plugin``.
    """

    backbone: Annotated[
        str,
        Parameter(
            group=GROUPS["Model"], help=f"The model: {', '.join(MODELS)}, or one of a plugin."
        ),
    ] = Settings.backbone
    objective: Annotated[
        str,
        Parameter(
            group=TRAINING,
            help=f"enc (every term with a weight), ce, a term ({', '.join(TERMS)}, or one of a"
            " plugin), or a sum such as mi+tv.",
        ),
    ] = OBJECTIVE
    preset: Annotated[str, Parameter(group=TRAINING, help=fit_declarations()["preset"].help)] = (
        FitOptions.preset
    )
    flags: Annotated[SettingFlags, Parameter(name="*")] = SettingFlags()  # noqa: RUF009 - frozen
    plugin: PluginFlag = ()

    def load_plugins(self) -> None:
        """Load the files of ``--plugin``, and refuse flags without effect on this model.

        Call it before any name is resolved.
        """
        from everynode import plugins
        from everynode.objective_names import objective_parts

        load_plugins(self.plugin)
        for name, value in self.named.items():
            declared = declarations()[name]
            term = name if declared.term else declared.of_term
            if term and value != declared.off:
                self._check_term(declared.flag(name), term)
            if self.backbone != "auto":
                self._check_model(declared.flag(name), name)
        for term, weight in self.named.get("weights", {}).items():
            if term in plugins.terms() and "enc" not in objective_parts(self.objective):
                self._check_term(f"--term-weight {term}={weight:g}", term)

    def _check_term(self, flag: str, term: str) -> None:
        """Refuse the flag of a term that the objective does not have."""
        from everynode.objective_names import parse_objective

        if self.objective != "auto" and term not in parse_objective(self.objective):
            raise UsageError(
                f"{flag} has no effect: --objective {self.objective} has no term {term}. Leave it "
                f"out, or give --objective {self.objective}+{term}."
            )

    def _check_model(self, flag: str, name: str) -> None:
        """Refuse the flag of a setting that the model does not use."""
        from everynode.models.build import unused_settings

        if name in unused_settings(self.backbone):
            others = declarations()[name].of_backbones
            remedy = f", or give --backbone {others[0]}" if others else ""
            raise UsageError(
                f"{flag} has no effect with --backbone {self.backbone}, which does not use it. "
                f"Leave it out{remedy}."
            )

    @property
    def named(self) -> dict[str, Any]:
        """The settings that have a flag on the command line."""
        changes: dict[str, Any] = {}
        for name, declared in declarations().items():
            value = getattr(self.flags, name, None)
            if declared.pairs and value not in (None, (), *BALANCED):
                flag = declared.flag(name)
                parts = (value,) if isinstance(value, str) else value
                value = dict(pair for part in parts for pair in parse_pairs(part, flag).items())
            if value not in (None, ()):
                changes[name] = value
        return changes

    def settings(self, dataset: str, split: str, objective: str) -> Settings:
        """Return the settings of the preset, changed by the flags."""
        self.load_plugins()
        return Settings.preset(
            self.preset,
            graph=dataset,
            split=split,
            backbone=self.backbone,
            objective=objective,
            **self.named,
        )

    def run(
        self, dataset: str, graph: Graph | DiskGraph, split: str, data: DataOptions, *, fold: int,
        seed: int, objective: str, batches: Batches | None = None, processes: int = 1,
    ) -> Run:  # fmt: skip
        """Return the run that these options describe."""
        from everynode.experiments.run_spec import Run
        from everynode.graph.disk_graph import DiskGraph
        from everynode.objective_names import objective_name

        self.load_plugins()
        objective = objective_name(objective)  # all spellings name the same run
        require(0 <= seed < 2**63, "seed", "train and compare", "between 0 and 2**63 - 1", seed)
        graph.nodes("train", fold)  # refuses a missing fold before anything is trained
        drawn = split == "random"
        own = isinstance(graph, DiskGraph) or graph.summary is not None
        return Run(
            dataset,
            graph.digest if own else data.digest(dataset, split),
            split,
            fold,
            seed,
            Path(self.preset).name,  # without the folder, which is private
            objective,
            self.settings(dataset, split, objective).for_objective(objective),
            data.per_class if drawn else None,
            data.split_seed if drawn else None,
            data.directed,
            batches=batches,
            processes=processes,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class CandidateOptions(ModelOptions):
    """The same flags, with a portfolio of candidates if neither model nor objective is chosen.

    Parameters
    ----------
    backbone : str
        auto ensembles the best of many models (--effort); or one model, such as gcn, gat, gcnii or
        one of a plugin.
    objective : str
        auto with a named --backbone trains cross-entropy and enc, each with strong and light
        regularization, and keeps the best on the validation nodes; or enc, ce, a term, or a sum
        such as mi+tv.
    """

    backbone: Annotated[str, Parameter(group=GROUPS["Model"])] = "auto"
    objective: Annotated[str, Parameter(group=TRAINING)] = "auto"

    @property
    def is_portfolio(self) -> bool:
        """Whether neither a model nor an objective or preset is chosen."""
        return (self.backbone, self.objective, self.preset) == ("auto", "auto", FitOptions.preset)
