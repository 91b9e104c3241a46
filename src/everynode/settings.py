"""Settings: every choice of a run, declared once.

A field of :class:`Settings` carries its default, its range, its help text, its group in ``--help``,
the range that tuning searches, and the value at which it does nothing. The checks, the flags of the
command line, the keys of ``NodeClassifier(settings=...)``, the search space of ``everynode tune``
and the identity of a run follow from that declaration. Nothing here imports PyTorch, so that
``everynode --help`` answers at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from everynode.declaration import Declaration, Group, Search, document, plain_value, setting, weight
from everynode.errors import DataError, UsageError, require, unknown
from everynode.evaluation.metrics import MONITORS
from everynode.settings_of_systems import SystemSettings

__all__ = [
    "TERMS",
    "Declaration",
    "Group",
    "Search",
    "Settings",
    "check_settings",
    "declarations",
]


@dataclass(frozen=True, kw_only=True)
class Settings(SystemSettings):
    """Every choice of a run except the graph, the fold and the seed.

    The field defaults are those of the ``default`` preset for GCN. ``everynode train --help``
    lists every field with its range. Settings are frozen and hashable; :meth:`replace` returns
    changed ones.

    Parameters
    ----------
    (generated)

    Examples
    --------
    >>> Settings(num_layers=4, tv=0.5).num_layers
    4
    >>> Settings(dropout=1.0)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'dropout' of Settings must be in [0, 1). Got 1.0.
    """

    # ---------------------------------------------------------------- the model
    backbone: str = setting("gcn", "The model, by name.", "Model")
    num_layers: int = setting(
        2, "Number of propagation layers.", "Model", low=1,
        search=Search(choices=(2, 3, 4, 8), backbones={
            "gat": (2, 3, 4), "gcnii": (2, 4, 8, 16, 32, 64),
        }),
    )  # fmt: skip
    hidden_channels: int = setting(64, "Width of the hidden layers.", "Model", low=1)
    dropout: float = setting(
        0.5, "Dropout on the input and before the last layer.", "Model", low=0, below=1,
        search=Search(0.2, 0.8),
    )  # fmt: skip
    layer_dropout: float = setting(
        0.5, "Dropout before each propagation layer.", "Model", low=0, below=1,
        search=Search(0.0, 0.7),
    )  # fmt: skip
    normalize_features: bool = setting(
        False, "Divide each row of the features by its sum.", "Model",
        search=Search(choices=(True, False)),
    )  # fmt: skip
    gcnii_alpha: float = setting(
        0.1, "Share of the initial features in each GCNII layer.", "Model", low=0, high=1,
        search=Search(0.05, 0.6), of_backbones=("gcnii", "gcnii_star"),
    )  # fmt: skip
    gcnii_lambda: float = setting(
        0.5, "Strength of the GCNII weight matrices; 0 is the identity.", "Model", low=0,
        search=Search(0.2, 3.0), of_backbones=("gcnii", "gcnii_star"),
    )  # fmt: skip

    appnp_alpha: float = setting(
        0.1, "Share of the node's own prediction in each step of APPNP.", "Model", low=0, high=1,
        search=Search(0.02, 0.5), of_backbones=("appnp", "pta"),
    )  # fmt: skip
    appnp_steps: int = setting(
        10, "Propagation steps of APPNP.", "Model", low=1, of_backbones=("appnp", "pta")
    )
    gprgnn_alpha: float = setting(
        0.1, "The coefficients of GPRGNN start as those of APPNP with this share.", "Model",
        low=0, high=1, search=Search(0.02, 0.9), of_backbones=("gprgnn",),
    )  # fmt: skip
    gprgnn_steps: int = setting(
        10, "Propagation steps of GPRGNN.", "Model", low=1, of_backbones=("gprgnn",)
    )
    fagcn_eps: float = setting(
        0.3, "Share of the opening features in each FAGCN layer.", "Model", low=0, high=1,
        search=Search(0.1, 1.0), of_backbones=("fagcn",),
    )  # fmt: skip
    grand_drop_node: float = setting(
        0.5, "Share of the nodes whose features GRAND drops in each pass.", "Model", low=0,
        below=1, of_backbones=("grand",),
    )  # fmt: skip
    grand_steps: int = setting(
        4, "Propagation steps of GRAND.", "Model", low=0, search=Search(choices=(2, 4, 8)),
        of_backbones=("grand",),
    )  # fmt: skip

    # ---------------------------------------------------------------- the objective
    ce: float = setting(
        1.0, "Weight of cross-entropy.", "Objective", low=0, off=1.0,
    )  # fmt: skip
    mi: float = weight(
        0.3, "MI", "Weight of mutual information.",
        "mutual_information:MutualInformation", Search(0.001, 2.0, log=True),
    )  # fmt: skip
    mi_lambda: float = setting(
        0.3, "Pull towards classes of equal size within mutual information.", "Objective", low=0,
        search=Search(0.0, 2.0), of_term="mi", option="lam",
    )  # fmt: skip
    tv: float = weight(
        5.0, "TV", "Weight of total variation.",
        "total_variation:TotalVariation", Search(0.002, 20.0, log=True),
    )  # fmt: skip
    tv_sigma: float = setting(
        10.0, "Feature distance at which total variation sees a boundary.", "Objective", above=0,
        search=Search(3.0, 100.0, log=True), of_term="tv", option="sigma",
    )  # fmt: skip
    tv_gate: str = setting(
        "raw", "Features in which total variation looks for boundaries.", "Objective",
        choices=("raw", "row", "standardized", "none"),
        search=Search(choices=("raw", "standardized", "none")), of_term="tv", option="gate",
    )  # fmt: skip
    cvg: float = weight(
        0.05, "CVG", "Weight of cross-validating gradients.",
        "cross_validating_gradients:CrossValidatingGradients", Search(0.0005, 1.0, log=True),
    )  # fmt: skip
    halves: str = setting(
        "stratified", "Draw of the two halves of cross-validating gradients.", "Objective",
        choices=("random", "stratified", "fixed"), of_term="cvg", option="halves",
    )  # fmt: skip
    cvg_every: int = setting(
        1, "Take cross-validating gradients at every n-th step only.", "Objective", low=1,
        of_term="cvg", option="every",
    )  # fmt: skip
    cvg_nodes: int = setting(
        0, "Largest number of labeled nodes of each half that cross-validating gradients take in a"
        " step, drawn anew each time; 0: all.", "Objective", low=0, off=0, of_term="cvg",
        option="nodes",
    )  # fmt: skip
    consistency: float = weight(
        0.0, "consistency", "Weight of consistency between two passes with different dropout"
        " (not in the paper; doubles the time).",
        "consistency:Consistency", Search(0.05, 2.0, log=True), paper=False,
    )  # fmt: skip
    consistency_temperature: float = setting(
        0.5, "Sharpening of the consistency targets; lower is sharper.", "Objective", above=0,
        search=Search(0.2, 0.9), of_term="consistency", option="temperature",
    )  # fmt: skip
    consistency_ramp: int = setting(
        0, "Epochs over which the weight of consistency grows from 0; 0: full weight at once.",
        "Objective", low=0, off=0, of_term="consistency", option="ramp",
    )  # fmt: skip
    consistency_distance: str = setting(
        "cross_entropy", "Distance of the passes from the consistency targets; GRAND's is squared.",
        "Objective", choices=("cross_entropy", "squared"), off="cross_entropy",
        of_term="consistency", option="distance",
    )  # fmt: skip
    consistency_passes: int = setting(
        2, "Number of passes that consistency compares.", "Objective", low=2, off=2,
        of_term="consistency", option="passes",
    )  # fmt: skip
    prior: float = weight(
        0.0, "class prior", "Weight of the class prior, which pulls the predicted class shares"
        " towards the estimated ones (not in the paper).",
        "class_prior:ClassPrior", Search(0.1, 20.0, log=True), paper=False,
    )  # fmt: skip
    preg: float = weight(
        0.0, "P-reg", "Weight of P-reg, for comparisons.",
        "p_reg:PReg", Search(0.01, 5.0, log=True), enc=False,
    )  # fmt: skip
    preg_distance: str = setting(
        "squared", "Distance in P-reg: squared, summed, as the paper writes it; or its authors'"
        " cross-entropy.", "Objective", choices=("squared", "cross_entropy"), off="squared",
        of_term="preg", option="distance",
    )  # fmt: skip
    soft_labels: float = weight(
        0.0, "soft labels", "Weight of cross-entropy with propagated labels (PTA).",
        "soft_labels:SoftLabels", Search(0.005, 0.5, log=True), enc=False, paper=False,
    )  # fmt: skip
    model_loss: float = weight(
        0.0, "model loss", "Weight of the loss that the model itself brings (superGAT, EGNN).",
        "model_loss:ModelLoss", Search(0.01, 20.0, log=True), enc=False, paper=False,
    )  # fmt: skip
    laplacian: float = weight(
        0.0, "Laplacian", "Weight of Laplacian regularization.",
        "laplacian:Laplacian", Search(0.01, 10.0, log=True), enc=False, paper=False,
    )  # fmt: skip
    class_weight: str | Mapping[Any, float] | None = setting(
        None, "Weight of each class in cross-entropy and CVG: 'balanced', or NAME=WEIGHT,..."
        " with the names of classes.", "Objective", off=None, pairs=True,
    )  # fmt: skip
    weights: Mapping[str, float] = setting(
        (), "Weight of a term of a plugin, as NAME=WEIGHT; repeat it for several.", "Objective",
        off=(), pairs=True, flags=("--term-weight",),
    )  # fmt: skip

    # ---------------------------------------------------------------- training
    drop_edge: float = setting(
        0.0, "Share of the edges that each training pass leaves out (DropEdge).", "Training",
        low=0, below=1, off=0.0,
    )  # fmt: skip

    # ---------------------------------------------------------------- Adam
    lr: float = setting(
        0.03, "Learning rate.", "Optimizer", above=0, search=Search(1e-3, 0.05, log=True)
    )
    lr_gnn: float = setting(
        5e-4, "Learning rate of the propagation layers.", "Optimizer", above=0,
        search=Search(1e-5, 0.05, log=True),
    )  # fmt: skip
    weight_decay: float = setting(
        0.01, "Weight decay.", "Optimizer", low=0, search=Search(1e-6, 0.2, log=True)
    )
    weight_decay_gnn: float = setting(
        0.0, "Weight decay of the propagation layers.", "Optimizer", low=0,
        search=Search(1e-6, 0.02, log=True),
    )  # fmt: skip
    amsgrad: bool = setting(
        False, "Use the AMSGrad variant of Adam.", "Optimizer", off=False,
    )  # fmt: skip
    epochs: int = setting(1500, "Maximum number of epochs.", "Optimizer", low=1)
    patience: int = setting(
        100, "Stop after this many epochs without an improvement.", "Optimizer", low=1
    )
    monitor: str = setting(
        "accuracy", "Validation metric that selects the best epoch; ties go to the lower loss.",
        "Training", choices=MONITORS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = plain_value(getattr(self, f.name), f.name, f.default)
            object.__setattr__(self, f.name, value)
            f.metadata["setting"].check(f.name, value, f.default)
        if self.class_weight is not None and not isinstance(self.class_weight, tuple):
            expected = "None, 'balanced' or a dict with a weight for each class"
            good = self.class_weight == "balanced"
            require(good, "class_weight", "Settings", expected, self.class_weight)

    @classmethod
    def preset(cls, *name: str, **choice: Any) -> Settings:
        """Return the settings of a preset; see :func:`everynode.presets.preset`.

        >>> Settings.preset("paper", graph="cora", split="public", backbone="gcn").tv
        2.0
        """
        from everynode.presets import preset

        return preset(*name, **choice)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str) -> Self:
        """Build settings from a file's values; ``where`` names the file in an error."""
        for name in values:
            if name not in declarations():
                choices = ", ".join(declarations())
                raise DataError(f"{where}: unknown setting {name!r}. Choose from: {choices}.")
        try:
            return cls(**values)
        except UsageError as error:
            raise DataError(f"{where}: {error}") from error

    def replace(self, **changes: Any) -> Self:
        """Return the same settings with some values changed."""
        for name in changes:
            if name not in declarations():
                unknown("setting", name, declarations())
        return dataclasses.replace(self, **changes)

    def for_objective(self, objective: str) -> Settings:
        """Return the same settings with only the named terms.

        ``objective``: ``ce`` (no term; its own weight 0 becomes 1), ``enc`` (every term of ENC or
        of a plugin that has a weight), or a sum such as ``mi+tv``.

        >>> s = Settings().for_objective("tv")
        >>> s.mi, s.tv, s.cvg
        (0.0, 5.0, 0.0)
        """
        from everynode.objective_names import named_terms, parse_objective, plugin_weights

        wanted = parse_objective(objective)
        extra = plugin_weights(objective, dict(self.weights))
        for term in named_terms(objective):
            if not (extra[term] if term in extra else getattr(self, term)):
                flag = f"--term-weight {term}=1" if term in extra else f"--{term} 1"
                raise UsageError(
                    f"The objective {objective!r} names {term}, but its weight is 0: "
                    f"give one ({term}=1.0, or {flag})."
                )
        off: dict[str, Any] = {term: 0.0 for term in TERMS if term not in wanted}
        if not wanted and not extra and not self.ce:
            off["ce"] = 1.0  # a term that replaced cross-entropy is gone: without it, no loss
        return dataclasses.replace(self, weights=extra, **off)

    def active_terms(self) -> dict[str, float]:
        """Return the weight of every term that has one, by name.

        >>> Settings(mi=0.0).active_terms()
        {'tv': 5.0, 'cvg': 0.05}
        """
        own = {term: getattr(self, term) for term in TERMS if getattr(self, term)}
        return own | {term: number for term, number in dict(self.weights).items() if number}

    def group(self, name: Group) -> dict[str, Any]:
        """Return the settings of a group, such as ``Model``, by name."""
        return {
            setting: getattr(self, setting)
            for setting, declared in declarations().items()
            if declared.group == name
        }

    def identity(self) -> dict[str, Any]:
        """Return what makes these settings differ from others: every value that does something.

        A setting at the value at which it does nothing is left out. So are the settings of a term
        without weight and of another built-in backbone. Two runs that do the same thus have the
        same identity, and a new setting that does nothing by default changes no older one.

        >>> sorted(set(Settings(tv=0.0).identity()) & {"tv", "tv_sigma", "mi", "gcnii_alpha"})
        ['mi']
        """
        active = self.active_terms()
        return {
            name: getattr(self, name)
            for name, declared in declarations().items()
            if getattr(self, name) != declared.off
            and (not declared.of_term or declared.of_term in active)
            and declared.is_of(self.backbone)
        }


# A dataclass puts the fields of its base first; lists of settings end with those of the systems.
Settings.__dataclass_fields__ = dict(
    sorted(
        Settings.__dataclass_fields__.items(),
        key=lambda field: field[0] in SystemSettings.__dataclass_fields__,
    )
)


@cache
def declarations() -> dict[str, Declaration]:
    """Return the declaration of every field of :class:`Settings`, by name."""
    return {f.name: f.metadata["setting"] for f in dataclasses.fields(Settings)}


def check_settings(owner: str, **values: Any) -> None:
    """Refuse values of another type, or outside the declared range of their setting.

    The message names the class ``owner``, and the option of its constructor.

    >>> check_settings("TotalVariation", tv_sigma=-1)
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'sigma' of TotalVariation must be > 0. Got -1.
    """
    for name, value in values.items():
        declared = declarations()[name]
        declared.check(declared.option or name, value, getattr(Settings, name), owner=owner)


#: The terms that have a weight in :class:`Settings`, in the order of the sum.
TERMS = tuple(name for name, declared in declarations().items() if declared.term)

document(Settings)
