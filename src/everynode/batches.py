"""Mini-batches: their options, declared once.

A field of :class:`Batches` declares its default, range and help text, as a field of
:class:`everynode.Settings` does. The checks, the flags of ``everynode train`` and the defaults of
:class:`everynode.NeighborLoader` follow from it. This module does not import PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from typing import Any

from everynode.declaration import Declaration, document, setting
from everynode.errors import require


@dataclass(frozen=True)
class Batches:
    """Mini-batch training.

    Parameters
    ----------
    (generated)

    Examples
    --------
    >>> Batches(1024, fan_out=(15, 10)).for_layers(2)
    (15, 10)
    """

    size: int = setting(
        MISSING, "Seed nodes of a step, in each process. At most half of them are training nodes,"
        " unless the objective uses labels only.", "Mini-batches", low=2, flags=("--batch-size",),
    )  # fmt: skip
    fan_out: tuple[int, ...] = setting(
        (10,), "Neighbors sampled in each layer, the last layer first, such as 15,10. A single"
        " number holds for every layer.", "Mini-batches", low=1, minus_one="all neighbors",
    )  # fmt: skip
    tv_edges: int = setting(
        1, "Edges of each seed node in total variation.", "Mini-batches", low=1,
        minus_one="all edges",
    )  # fmt: skip
    clusters: int | None = setting(
        None, "Number of METIS clusters from which seed nodes are taken cluster by cluster. Without"
        " it, seed nodes are drawn at random.", "Mini-batches", low=2,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name in batch_declarations():
            check_batch_option(name, getattr(self, name))

    def reaching(self, num_layers: int) -> Batches:
        """Return the same mini-batches for a model of another depth.

        Further layers repeat the last number; models of one portfolio differ in depth.

        >>> Batches(1024, (15, 10)).reaching(3).fan_out, Batches(1024, (15, 10)).reaching(1).fan_out
        ((15, 10, 10), (15,))
        """
        if len(self.fan_out) == 1 or not num_layers:
            return replace(self, fan_out=self.fan_out[:1])
        repeated = self.fan_out + self.fan_out[-1:] * num_layers
        return replace(self, fan_out=repeated[:num_layers])

    def for_layers(self, num_layers: int) -> tuple[int, ...]:
        """Return the fan-out of each layer, the last layer first.

        >>> Batches(1024, (5,)).for_layers(3)
        (5, 5, 5)
        """
        if len(self.fan_out) == 1:
            return self.fan_out * num_layers
        expected = f"one number, or one for each of the {num_layers} layers"
        require(len(self.fan_out) == num_layers, "fan_out", "Batches", expected, self.fan_out)
        return self.fan_out


def batches_from(values: Mapping[str, Any] | None) -> Batches | None:
    """Return the mini-batches of a card in JSON; None for the full graph.

    >>> batches_from({"size": 64, "fan_out": [5, 3], "tv_edges": 1, "clusters": None})
    Batches(size=64, fan_out=(5, 3), tv_edges=1, clusters=None)
    """
    return None if values is None else Batches(**{**values, "fan_out": tuple(values["fan_out"])})


@cache
def batch_declarations() -> dict[str, Declaration]:
    """Return the declaration of every field of :class:`Batches`, by name."""
    return {f.name: f.metadata["setting"] for f in fields(Batches)}


def check_batch_option(
    name: str, value: Any, *, owner: str = "Batches", parameter: str = ""
) -> None:
    """Refuse a value outside the declared range; ``parameter`` is its name in ``owner``.

    >>> check_batch_option("size", 1, owner="NeighborLoader", parameter="batch_size")
    Traceback (most recent call last):
    everynode.errors.UsageError: The 'batch_size' of NeighborLoader must be >= 2. Got 1.
    """
    declared, parameter = batch_declarations()[name], parameter or name
    if isinstance(value, tuple):
        good = len(value) > 0 and all(declared.allows(number) for number in value)
        require(good, parameter, owner, f"numbers {declared.expected}", value)
    elif value is not None:
        declared.check(parameter, value, 0, owner=owner)


document(Batches)
