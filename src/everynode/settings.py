"""Settings: every choice of a run in one frozen record, by hand, from a preset, or from flags."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from everynode.errors import UsageError, require, unknown

TERMS = ("mi", "tv", "cvg", "preg")
PRESETS = ("default", "paper")
Select = Literal["loss", "accuracy"]
SELECTIONS: tuple[Select, ...] = ("loss", "accuracy")


@dataclass(frozen=True)
class Settings:
    """Every choice of a run but the graph, the fold and the seed. The field defaults are the ``default`` preset's for GCN."""

    # the network (everynode.backbones.Network)
    backbone: Literal["gcn", "gat", "gcnii"] = "gcn"
    layers: int = 2
    channels: int = 64
    dropout: float = 0.5  # on the input and before the closing layer
    layer_dropout: float = 0.5  # before each of the L layers; 0 in the paper
    input: Literal["row", "raw"] = "raw"  # row-normalised features, or as they are
    gcnii_alpha: float = 0.1
    gcnii_lambda: float = 0.5
    # the objective (everynode.ENC)
    mi: float = 0.3
    mi_lambda: float = 0.3
    tv: float = 5.0
    tv_sigma: float = 10.0
    tv_gate: Literal["raw", "row", "standardised", "none"] = "raw"
    cvg: float = 0.05
    halves: Literal["random", "stratified", "fixed"] = "stratified"
    cvg_every: int = 1  # take CVG at every so many steps only
    preg: float = 0.0
    # Adam, for the L layers (gnn) and for opening and closing layer (oc)
    lr_gnn: float = 5e-4
    lr_oc: float = 0.03
    wd_gnn: float = 0.0
    wd_oc: float = 0.01
    # when to stop, and which epoch counts
    epochs: int = 1500
    patience: int = 100
    select: Select = "accuracy"  # best validation accuracy (ties by loss), or lowest validation loss

    def __post_init__(self) -> None:
        require(self.epochs >= 1, "epochs", "Settings", ">= 1", self.epochs)
        require(self.cvg_every >= 1, "cvg_every", "Settings", ">= 1", self.cvg_every)
        require(self.patience >= 1, "patience", "Settings", ">= 1", self.patience)
        for name in ("lr_gnn", "lr_oc"):
            require(getattr(self, name) > 0, name, "Settings", "> 0", getattr(self, name))
        for name in ("wd_gnn", "wd_oc", *TERMS):
            require(getattr(self, name) >= 0, name, "Settings", ">= 0", getattr(self, name))
        for name in ("layers", "channels"):
            require(getattr(self, name) >= 1, name, "Settings", ">= 1", getattr(self, name))
        for name in ("dropout", "layer_dropout"):
            require(0 <= getattr(self, name) < 1, name, "Settings", "in [0, 1)", getattr(self, name))
        require(self.tv_sigma > 0, "tv_sigma", "Settings", "> 0", self.tv_sigma)
        require(self.mi_lambda >= 0, "mi_lambda", "Settings", ">= 0", self.mi_lambda)
        if self.select not in SELECTIONS:
            unknown("selection", self.select, SELECTIONS)

    @classmethod
    def preset(cls, name: str = "default", *, graph: str = "", split: str = "", backbone: str = "gcn", **changes: Any) -> Settings:
        """The settings of a preset for a graph, a split and a backbone, with ``changes`` on top (those that are None do not count).

        >>> Settings.preset("paper", graph="cora", split="public", backbone="gcn").tv
        2.0
        """
        if name not in PRESETS:
            unknown("preset", name, PRESETS)
        table = read_preset(name)
        if backbone not in table["backbone"]:
            unknown("backbone", backbone, table["backbone"])
        fields = {"backbone": backbone, **table["base"], **table["backbone"][backbone]}
        if name == "paper":
            try:
                fields |= table[split][graph][backbone]
            except KeyError:
                # The paper's random splits of Cora follow its public-split table.
                row = table["public"].get(graph, {}).get(backbone) if split == "random" else None
                if row is None:
                    raise UsageError(
                        f"The paper has no hyper-parameters for {backbone} on graph {graph!r} with split {split!r}: use --preset default."
                    ) from None
                fields |= row
        return cls(**fields | {key: value for key, value in changes.items() if value is not None})

    def for_objective(self, objective: str) -> Settings:
        """The same settings with only the named terms on: ``ce`` alone, ``enc`` = ``mi+tv+cvg``, or any sum such as ``mi+tv``.

        >>> s = Settings().for_objective("tv")
        >>> s.mi, s.tv, s.cvg
        (0.0, 5.0, 0.0)
        """
        wanted = parse_objective(objective)
        for term in wanted:
            if term in objective.lower().split("+") and not getattr(self, term):
                raise UsageError(f"The objective {objective!r} names {term}, but its weight is 0: give one ({term}=1.0, or --{term} 1).")
        off: dict[str, Any] = {term: 0.0 for term in TERMS if term not in wanted}
        return dataclasses.replace(self, **off)

    def network_options(self) -> dict[str, Any]:
        """The fields that :class:`everynode.backbones.Network` takes."""
        names = ("backbone", "layers", "channels", "dropout", "layer_dropout", "input", "gcnii_alpha", "gcnii_lambda")
        return {name: getattr(self, name) for name in names}

    def objective_options(self) -> dict[str, Any]:
        """The fields that :class:`everynode.ENC` takes."""
        names = ("mi", "mi_lambda", "tv", "tv_sigma", "tv_gate", "cvg", "halves", "cvg_every", "preg")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Batches:
    """How a graph is trained on a part at a time."""

    #: The seeds of a step: nodes whose own logits are computed. Training nodes are at most half of them, if other nodes count at all.
    size: int
    #: How many neighbours a node hears of in each layer, the last layer's first; -1 is all of them. One number is for every layer.
    fan_out: tuple[int, ...] = (10,)
    #: How many edges of each seed TV looks at; -1 is all of them.
    tv_edges: int = 1
    #: Take the seeds as whole clusters, of so many into which the graph is cut; None: at random.
    clusters: int | None = None

    def __post_init__(self) -> None:
        require(self.size >= 2, "size", "Batches", ">= 2", self.size)
        good = len(self.fan_out) > 0 and all(f >= 1 or f == -1 for f in self.fan_out)
        require(good, "fan_out", "Batches", "numbers >= 1, or -1 for all neighbours", self.fan_out)
        require(self.tv_edges >= 1 or self.tv_edges == -1, "tv_edges", "Batches", ">= 1, or -1 for all edges", self.tv_edges)
        require(self.clusters is None or self.clusters >= 2, "clusters", "Batches", ">= 2", self.clusters)

    def for_layers(self, layers: int) -> tuple[int, ...]:
        """The fan-out of each layer, the last layer's first.

        >>> Batches(1024, (15, 10)).for_layers(2), Batches(1024, (5,)).for_layers(3)
        ((15, 10), (5, 5, 5))
        """
        if len(self.fan_out) == 1:
            return self.fan_out * layers
        require(len(self.fan_out) == layers, "fan_out", "Batches", f"one number, or one for each of the {layers} layers", self.fan_out)
        return self.fan_out


def parse_objective(objective: str) -> tuple[str, ...]:
    """The terms that an objective's name stands for, cross-entropy being always there.

    >>> parse_objective("enc"), parse_objective("ce"), parse_objective("tv+mi")
    (('mi', 'tv', 'cvg'), (), ('mi', 'tv'))
    """
    named = objective.lower().split("+")
    for part in named:
        if part not in ("ce", "enc", *TERMS):
            unknown("objective", part, ("enc", "ce", *TERMS, "mi+tv (or any other sum)"))
    terms = {"mi", "tv", "cvg"} if "enc" in named else set()
    return tuple(term for term in TERMS if term in terms | set(named))


@cache
def read_preset(name: str) -> dict[str, Any]:
    """A preset's TOML file as it stands."""
    text = resources.files("everynode").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
