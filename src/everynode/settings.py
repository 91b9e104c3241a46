"""Settings: every choice of a run in one frozen record, by hand, from a preset, or from flags."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from everynode.datasets.entries import is_generated
from everynode.errors import DataError, UsageError, require, unknown

TERMS = ("mi", "tv", "cvg", "consistency", "prior", "preg")
#: Those of the objective ``enc`` that the paper does not have, and which only everynode's own presets give a weight.
NOT_OF_THE_PAPER = {"consistency": "consistency", "prior": "class prior"}
#: Those of the objective ``enc``.
ENC_TERMS = ("mi", "tv", "cvg", *NOT_OF_THE_PAPER)
PRESETS = ("default", "paper", "tuned", "authors")
#: Settings that are younger than the first records, presets and models, and the value at which they do nothing: what has none of them means
#: this one, whatever the default has become.
LATER: dict[str, Any] = {
    "class_weight": None,
    "consistency": 0.0,
    "consistency_temperature": 0.5,
    "prior": 0.0,
}
Monitor = Literal["loss", "accuracy", "macro-f1", "balanced-accuracy", "auc"]
MONITORS: tuple[Monitor, ...] = ("loss", "accuracy", "macro-f1", "balanced-accuracy", "auc")
#: Where a preset such as tuned has settings: split, graph, backbone, objective.
Place = tuple[str, str, str, str]


class NoSettings(UsageError):
    """A preset has nothing for this graph, split, backbone and objective."""


@dataclass(frozen=True)
class Settings:
    """Every choice of a run but the graph, the fold and the seed. The field defaults are the ``default`` preset's for GCN."""

    # the network (everynode.models.Network)
    backbone: Literal["gcn", "gat", "gcnii"] = "gcn"
    num_layers: int = 2
    hidden_channels: int = 64
    dropout: float = 0.5  # on the input and before the closing layer
    layer_dropout: float = 0.5  # before each of the L layers; 0 in the paper
    normalize_features: bool = False  # divide each row of the features by its sum
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
    consistency: float = 0.0  # consistency of two passes, which the paper does not have
    consistency_temperature: float = 0.5
    prior: float = (
        0.0  # the class prior, estimated from validation nodes, which the paper does not have
    )
    preg: float = 0.0
    class_weight: Literal["balanced"] | None = (
        None  # balanced: in cross-entropy and in CVG's halves every class weighs the same
    )
    # Adam, for the L layers (gnn) and for opening and closing layer (oc)
    lr_gnn: float = 5e-4
    lr: float = 0.03
    weight_decay_gnn: float = 0.0
    weight_decay: float = 0.01
    # when to stop, and which epoch counts
    epochs: int = 1500
    patience: int = 100
    monitor: Monitor = "accuracy"  # the best of this validation metric, ties by loss; or the lowest validation loss

    def __post_init__(self) -> None:
        for setting in dataclasses.fields(
            self
        ):  # NumPy's numbers are the same settings, and have to have the same hash and JSON
            if hasattr(given := getattr(self, setting.name), "item"):
                object.__setattr__(self, setting.name, given.item())
        require(self.epochs >= 1, "epochs", "Settings", ">= 1", self.epochs)
        require(self.cvg_every >= 1, "cvg_every", "Settings", ">= 1", self.cvg_every)
        require(self.patience >= 1, "patience", "Settings", ">= 1", self.patience)
        for name in ("lr_gnn", "lr"):
            require(getattr(self, name) > 0, name, "Settings", "> 0", getattr(self, name))
        for name in ("weight_decay_gnn", "weight_decay", *TERMS):
            require(getattr(self, name) >= 0, name, "Settings", ">= 0", getattr(self, name))
        for name in ("num_layers", "hidden_channels"):
            require(getattr(self, name) >= 1, name, "Settings", ">= 1", getattr(self, name))
        for name in ("dropout", "layer_dropout"):
            require(
                0 <= getattr(self, name) < 1, name, "Settings", "in [0, 1)", getattr(self, name)
            )
        for name in ("tv_sigma", "consistency_temperature"):
            require(getattr(self, name) > 0, name, "Settings", "> 0", getattr(self, name))
        for name in ("mi_lambda", "gcnii_lambda"):
            require(getattr(self, name) >= 0, name, "Settings", ">= 0", getattr(self, name))
        require(
            0 <= self.gcnii_alpha <= 1, "gcnii_alpha", "Settings", "in [0, 1]", self.gcnii_alpha
        )
        if self.monitor not in MONITORS:
            unknown("selection", self.monitor, MONITORS)
        require(
            self.class_weight in (None, "balanced"),
            "class_weight",
            "Settings",
            "None or 'balanced'",
            self.class_weight,
        )

    @classmethod
    def preset(
        cls,
        name: str = "default",
        *,
        graph: str = "",
        split: str = "",
        backbone: str = "gcn",
        objective: str = "enc",
        **changes: Any,
    ) -> Settings:
        """The settings of a preset for a graph, a split, a backbone and an objective, with ``changes`` on top (None does not count).

        ``name``: one of :data:`PRESETS`, or a TOML file that ``everynode tune --export`` wrote. Terms that the objective does not name
        are not switched off here: see :meth:`for_objective`.

        >>> Settings.preset("paper", graph="cora", split="public", backbone="gcn").tv
        2.0
        """
        if name not in PRESETS and not name.endswith(".toml"):
            unknown("preset", name, [*PRESETS, "a file that ends in .toml"])
        if backbone not in read_preset("default")["backbone"]:
            unknown("backbone", backbone, read_preset("default")["backbone"])
        if name in ("default", "paper"):
            table = read_preset(name)
            fields = {**table["base"], **table["backbone"][backbone]}
            if name == "paper":
                fields |= LATER
                fields |= _paper_row(table, graph, split, backbone, objective_name(objective))
        else:
            fields = _tuned_row(name, graph, split, backbone, objective_name(objective))
        return cls(
            **{"backbone": backbone}
            | fields
            | {key: value for key, value in changes.items() if value is not None}
        )

    def for_objective(self, objective: str) -> Settings:
        """The same settings with only the named terms on: ``ce`` alone, ``enc`` (all that has a weight), or any sum such as ``mi+tv``.

        >>> s = Settings().for_objective("tv")
        >>> s.mi, s.tv, s.cvg
        (0.0, 5.0, 0.0)
        """
        wanted = parse_objective(objective)
        for term in wanted:
            if term in named_terms(objective) and not getattr(self, term):
                raise UsageError(
                    f"The objective {objective!r} names {term}, but its weight is 0: give one ({term}=1.0, or --{term} 1)."
                )
        off: dict[str, Any] = {term: 0.0 for term in TERMS if term not in wanted}
        if not self.consistency or "consistency" in off:
            off["consistency_temperature"] = LATER[
                "consistency_temperature"
            ]  # so that runs without the term are the same run, whatever it was
        return dataclasses.replace(self, **off)

    def remark(self, objective: str) -> str:
        """What an objective's name does not say: which of the paper's terms have no weight here, and which others have one.

        >>> Settings(cvg=0.0).remark("enc"), Settings(mi=0.0, tv=0.0, cvg=0.0).remark("enc"), Settings().remark("ce")
        ('without CVG', 'no term', '')
        >>> Settings(consistency=1.0, mi=0.0).remark("enc")
        'without MI, with consistency'
        >>> Settings(consistency=1.0, prior=1.0).remark("enc")
        'with consistency, class prior'
        """
        terms = parse_objective(objective)
        if terms and not any(getattr(self, term) for term in terms):
            return "no term"
        none = [
            term.upper()
            for term in terms
            if not getattr(self, term) and term not in NOT_OF_THE_PAPER
        ]
        unsaid = [
            term for term in terms if term not in named_terms(objective) and getattr(self, term)
        ]
        more = [name for term, name in NOT_OF_THE_PAPER.items() if term in unsaid]
        return ", ".join(
            [
                *([f"without {', '.join(none)}"] if none else []),
                *([f"with {', '.join(more)}"] if more else []),
            ]
        )

    @property
    def of_the_paper(self) -> bool:
        """Whether no term has a weight that the paper does not have."""
        return not any(getattr(self, term) for term in NOT_OF_THE_PAPER)

    @classmethod
    def entrants(cls, preset: str = "default", **choice: Any) -> dict[str, Settings]:
        """The settings that race where no objective was chosen (``objective="auto"``), the simplest first; ``choice``: see :meth:`preset`.

        Of another preset than ``default``, whose settings suit their graph already, its cross-entropy and its ENC race.

        >>> list(Settings.entrants()), list(Settings.entrants("paper", graph="cora", split="public"))
        (['ce', 'enc', 'light-ce', 'light-enc'], ['ce', 'enc'])
        """
        given = {name: value for name, value in choice.items() if value is not None}
        table = (
            read_preset("default")["race"]
            if preset == "default"
            else {name: {"objective": name} for name in ("ce", "enc")}
        )
        return {
            name: cls.preset(preset, **entrant | given).for_objective(entrant["objective"])
            for name, entrant in table.items()
        }

    def network_options(self) -> dict[str, Any]:
        """The fields that :class:`everynode.models.Network` takes."""
        names = (
            "backbone",
            "num_layers",
            "hidden_channels",
            "dropout",
            "layer_dropout",
            "normalize_features",
            "gcnii_alpha",
            "gcnii_lambda",
        )
        return {name: getattr(self, name) for name in names}

    def objective_options(self) -> dict[str, Any]:
        """The fields that :class:`everynode.ENC` takes."""
        of_terms = (
            "mi",
            "mi_lambda",
            "tv",
            "tv_sigma",
            "tv_gate",
            "cvg",
            "halves",
            "cvg_every",
            "consistency",
            "consistency_temperature",
        )
        return {name: getattr(self, name) for name in (*of_terms, "prior", "preg", "class_weight")}


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
        require(
            self.tv_edges >= 1 or self.tv_edges == -1,
            "tv_edges",
            "Batches",
            ">= 1, or -1 for all edges",
            self.tv_edges,
        )
        require(
            self.clusters is None or self.clusters >= 2,
            "clusters",
            "Batches",
            ">= 2",
            self.clusters,
        )

    def for_layers(self, num_layers: int) -> tuple[int, ...]:
        """The fan-out of each layer, the last layer's first.

        >>> Batches(1024, (15, 10)).for_layers(2), Batches(1024, (5,)).for_layers(3)
        ((15, 10), (5, 5, 5))
        """
        if len(self.fan_out) == 1:
            return self.fan_out * num_layers
        require(
            len(self.fan_out) == num_layers,
            "fan_out",
            "Batches",
            f"one number, or one for each of the {num_layers} layers",
            self.fan_out,
        )
        return self.fan_out


def parse_objective(objective: str) -> tuple[str, ...]:
    """The terms that an objective's name stands for, cross-entropy being always there.

    >>> parse_objective("enc"), parse_objective("ce"), parse_objective("tv+mi")
    (('mi', 'tv', 'cvg', 'con', 'prior'), (), ('mi', 'tv'))
    """
    named = objective.lower().split("+")
    for part in named:
        if part not in ("ce", "enc", *TERMS):
            unknown("objective", part, ("enc", "ce", *TERMS, "mi+tv (or any other sum)"))
    terms = {*named, *(ENC_TERMS if "enc" in named else ())}
    return tuple(term for term in TERMS if term in terms)


def named_terms(objective: str) -> tuple[str, ...]:
    """The terms that an objective names one by one, which therefore are there: ``enc`` names none.

    >>> named_terms("mi+tv"), named_terms("enc"), named_terms("enc+preg")
    (('mi', 'tv'), (), ('preg',))
    """
    return tuple(term for term in TERMS if term in objective.lower().split("+"))


def objective_name(objective: str) -> str:
    """The one name of an objective, whichever way it was written.

    >>> objective_name("tv+mi"), objective_name("CE"), objective_name("preg+ENC")
    ('mi+tv', 'ce', 'enc+preg')
    """
    parse_objective(objective)
    return (
        "+".join(
            [*(["enc"] if "enc" in objective.lower().split("+") else []), *named_terms(objective)]
        )
        or "ce"
    )


def _paper_row(
    table: dict[str, Any], graph: str, split: str, backbone: str, objective: str
) -> dict[str, Any]:
    """The paper's settings for a graph, a split and a backbone; its random splits of Cora follow its public-split table.

    Cross-entropy has ENC's, but for what a table ``ce`` within them says.
    """
    if is_generated(graph):
        graph, split = "ogbn-arxiv", "official"  # for which it stands in
    rows = table.get("public" if split == "random" else split, {})
    if graph not in rows or backbone not in rows[graph]:
        raise NoSettings(
            f"The paper has no hyper-parameters for {backbone} on graph {graph!r} with split {split!r}: use --preset default."
        )
    row = dict(rows[graph][backbone])
    of_cross_entropy: dict[str, Any] = row.pop("ce", {})
    return row | of_cross_entropy if objective == "ce" else row


def _tuned_row(name: str, graph: str, split: str, backbone: str, objective: str) -> dict[str, Any]:
    """What a preset has for a graph, a split, a backbone and an objective, without the study's record."""
    rows = tuned_rows(name)
    row = rows.get((split, graph, backbone, objective))
    if (
        row is None and split == "random"
    ):  # as close as it gets: there are too many random splits to tune for each
        row = rows.get(("public", graph, backbone, objective))
    if row is None:
        here = [f"{b} {o}" for s, g, b, o in rows if (s, g) == (split, graph)]
        known = (
            f"for that graph and split it has {', '.join(here)}"
            if here
            else f"it knows {_graphs(rows)}"
        )
        what = f"{backbone} with objective {objective} on graph {graph!r} with split {split!r}"
        raise NoSettings(
            f"The preset {name} has no settings for {what}; {known}. Choose from these, --preset default, or `everynode tune`."
        )
    found = {key: value for key, value in row.items() if key != "study"}
    defaults = dataclasses.asdict(Settings())
    for key, value in found.items():
        kind = str if key == "class_weight" else type(defaults.get(key))  # whose default is None
        if type(value) is not kind and not (kind is float and type(value) is int):
            where = f"{name}: {key} = {value!r} for {backbone} {objective} on {graph}"
            raise DataError(
                f"{where} is no setting."
                if key not in defaults
                else f"{where} must be of type {kind.__name__}."
            )
    return LATER | found


def tuned_rows(name: str) -> dict[Place, dict[str, Any]]:
    """Everything in a preset that goes by objective: ``tuned``, ``authors``, or a file of ``everynode tune``."""
    table = read_preset(name) if name in PRESETS else read_file(name)
    try:
        return {
            (split, graph, backbone, objective): dict(row)
            for split, graphs in table.items()
            for graph, backbones in graphs.items()
            for backbone, objectives in backbones.items()
            for objective, row in objectives.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"{name} is not a preset of `everynode tune`: its tables must be [SPLIT.GRAPH.BACKBONE.OBJECTIVE]."
        ) from None


def _graphs(rows: Iterable[Place]) -> str:
    """The graphs that a tuned preset knows, each with its splits."""
    found: dict[str, list[str]] = {}
    for split, graph, *_ in rows:
        if split not in found.setdefault(graph, []):
            found[graph].append(split)
    return (
        ", ".join(f"{graph} ({', '.join(splits)})" for graph, splits in found.items())
        or "no graph yet"
    )


def read_file(path: str, what: str = "preset") -> dict[str, Any]:
    """A TOML file of somebody's, which is to be a preset (or ``what``)."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no {what} {path}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as a {what} ({error}).") from error


@cache
def read_preset(name: str) -> dict[str, Any]:
    """A preset's TOML file as it stands."""
    text = (
        resources.files("everynode").joinpath("presets", f"{name}.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)
