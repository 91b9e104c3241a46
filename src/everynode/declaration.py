"""The declaration of a setting: its help, range, search range, and what it belongs to.

:mod:`everynode.settings` and :mod:`everynode.batches` declare every setting with it. This module
does not import PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Literal

from everynode.errors import require, unknown

#: What a setting belongs to.
Group = Literal["Training", "Model", "Objective", "Optimizer", "Mini-batches"]
#: The expected value in words, by the type of the default.
KINDS: dict[type, str] = {
    int: "a whole number", float: "a number", bool: "True or False", str: "text"
}  # fmt: skip


@dataclass(frozen=True)
class Search:
    """The values that tuning tries: a range, or a list of choices.

    Under the objective ``enc``, tuning may also set the weight of a term to 0.

    Parameters
    ----------
    low, high : float
        The ends of a range.
    log : bool
        Draw on a logarithmic scale.
    choices : tuple
        The values to choose from, instead of a range.
    backbones : mapping of str to tuple
        The choices of a backbone that differ from ``choices``.

    Examples
    --------
    >>> Search(choices=(2, 4), backbones={"gat": (2, 3)}).space("gat")
    {'choices': [2, 3]}
    >>> Search(0.1, 10.0, log=True).space("gcn")
    {'low': 0.1, 'high': 10.0, 'log': True}
    """

    low: float = math.nan
    high: float = math.nan
    log: bool = False
    choices: tuple[Any, ...] = ()
    backbones: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def space(self, backbone: str) -> dict[str, Any]:
        """Return the entry of a search space, as a TOML file of ``--space`` spells it."""
        if self.choices:
            return {"choices": list(self.backbones.get(backbone, self.choices))}
        log = {"log": True} if self.log else {}
        return {"low": self.low, "high": self.high} | log


@dataclass(frozen=True)
class Declaration:
    """The declaration of a field of :class:`Settings` or :class:`~everynode.batches.Batches`.

    Parameters
    ----------
    help : str
        One sentence for ``--help`` and the documentation.
    group : str
        What it belongs to, and its heading in ``--help``; but see ``heading``.
    low, high : float
        The range of a number, ends included.
    above, below : float
        The range of a number, ends excluded.
    minus_one : str
        The meaning of -1; empty if -1 has no special meaning.
    choices : tuple of str
        The allowed names.
    search : Search
        The values that tuning tries; None: the setting is not tuned.
    off : object
        The value at which the setting does nothing, if there is one.
    term : str
        Only for the weight of a term: its class, as ``module:Class``.
    title : str
        Only for the weight of a term: the name of the term in tables.
    enc : bool
        Only for the weight of a term: whether the objective ``enc`` includes the term.
    paper : bool
        Only for the weight of a term: whether the paper has the term.
    of_term : str
        The term that the setting belongs to. Without the term, it has no effect.
    option : str
        The name of this setting in the constructor of the term.
    of_backbones : tuple of str
        The only backbones that use the setting; empty: all do.
    flags : tuple of str
        The flags of the command line, if they differ from the name.
    pairs : bool
        Whether the value is a weight for each name; a flag spells it ``NAME=WEIGHT``.
    """

    help: str
    group: Group
    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    minus_one: str = ""
    choices: tuple[str, ...] = ()
    search: Search | None = None
    off: Any = ...
    term: str = ""
    title: str = ""
    enc: bool = False
    paper: bool = False
    of_term: str = ""
    option: str = ""
    of_backbones: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pairs: bool = False

    @property
    def heading(self) -> str:
        """The heading of ``--help``: a setting of one term or of a few models stands apart.

        >>> Declaration("", "Objective", of_term="tv").heading
        'Single terms'
        """
        if self.of_term:
            return "Single terms"
        return "Single models" if self.of_backbones else self.group

    @property
    def expected(self) -> str:
        """The range or the choices in words; empty if every value is allowed.

        >>> Declaration("", "Model", low=0, below=1).expected
        'in [0, 1)'
        >>> Declaration("", "Model", low=1, minus_one="all edges").expected
        '>= 1, or -1 for all edges'
        """
        if self.minus_one:
            return f"{replace(self, minus_one='').expected}, or -1 for {self.minus_one}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if max(self.low, self.above) == -math.inf and min(self.high, self.below) == math.inf:
            return ""
        left = f"[{self.low:g}" if self.low > -math.inf else f"({self.above:g}"
        right = f"{self.high:g}]" if self.high < math.inf else f"{self.below:g})"
        if "inf" not in left + right:
            return f"in {left}, {right}"
        if max(self.low, self.above) > -math.inf:
            return f">= {self.low:g}" if self.low > -math.inf else f"> {self.above:g}"
        return f"<= {self.high:g}" if self.high < math.inf else f"< {self.below:g}"

    def flag(self, name: str) -> str:
        """Return the flag of the command line for a field of this name.

        >>> Declaration("", "Model").flag("num_layers")
        '--num-layers'
        """
        return self.flags[0] if self.flags else f"--{name.replace('_', '-')}"

    def is_of(self, backbone: str) -> bool:
        """Whether a backbone uses the setting; a plugin's model may use any."""
        from everynode.models.names import MODELS

        return not self.of_backbones or backbone in self.of_backbones or backbone not in MODELS

    def allows(self, value: Any) -> bool:
        """Whether a value lies in the range."""
        if self.choices:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if self.minus_one and value == -1:
            return True
        return self.low <= value <= self.high and self.above < value < self.below

    def check(self, name: str, value: Any, default: Any, owner: str = "Settings") -> None:
        """Refuse a value of another type than the default's, or outside the range."""
        value = _plain_number(value)
        kind = type(default)
        if kind in KINDS:
            allowed = (int, float) if kind is float else kind
            right = isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))
            require(right, name, owner, KINDS[kind], value)
        if self.choices and value not in self.choices:
            unknown(name, value, self.choices)
        require(self.allows(value), name, owner, self.expected, value)


def setting(default: Any, help: str, group: Group, **declared: Any) -> Any:
    """Declare a field of :class:`Settings`; ``declared`` as in :class:`Declaration`."""
    return field(default=default, metadata={"setting": Declaration(help, group, **declared)})


def weight(
    default: float, title: str, help: str, term: str, search: Search,
    *, enc: bool = True, paper: bool = True,
) -> Any:  # fmt: skip
    """Declare the weight of a term; 0 switches the term off. ``term``: ``module:Class``."""
    return setting(
        default, help, "Objective", low=0, search=search, off=0.0,
        term=f"everynode.objectives.{term}", title=title, enc=enc, paper=paper,
    )  # fmt: skip


def document(cls: type[Any]) -> None:
    """Put the declared fields of a class where its docstring says ``(generated)``."""
    lines = []
    for f in fields(cls):
        declared = f.metadata["setting"]
        default = "" if f.default is MISSING else f", default={f.default!r}"
        minus_one = f" -1: {declared.minus_one}." if declared.minus_one else ""
        lines.append(f"{f.name} : {f.type}{default}\n        {declared.help}{minus_one}")
    cls.__doc__ = (cls.__doc__ or "").replace("(generated)", "\n    ".join(lines))


def plain_value(value: Any, name: str, default: Any) -> Any:
    """Return a value in its stored form: plain numbers, and sorted pairs.

    >>> plain_value(1, "tv", 5.0), plain_value({"b": 1, "a": 2}, "weights", ())
    (1.0, (('a', 2.0), ('b', 1.0)))
    """
    value = _plain_number(value)
    if type(default) is float and type(value) is int:
        return float(value)
    if isinstance(value, Mapping | list):
        return _pairs(value, name)
    return value


def _plain_number(value: Any) -> Any:
    """Return the Python number of a NumPy number or a tensor; other values pass unchanged."""
    return value.item() if hasattr(value, "item") else value


def _pairs(values: Any, name: str) -> tuple[tuple[Any, float], ...]:
    """Return a mapping as sorted pairs, each with a weight >= 0."""
    pairs = list(values.items() if isinstance(values, Mapping) else values)
    for pair in pairs:
        good = isinstance(pair, list | tuple) and len(pair) == 2
        good = good and isinstance(pair[1], int | float) and 0 <= pair[1] < math.inf
        require(good, name, "Settings", "a dict with a weight >= 0 for each name", values)
    return tuple(sorted(((key, float(value)) for key, value in pairs), key=lambda p: str(p[0])))
