"""The flags of mini-batches, derived from the declarations in :mod:`everynode.batches`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from everynode.batches import Batches, batch_declarations
from everynode.cli.options import GROUPS
from everynode.errors import UsageError, require


def _flag(name: str, default: Any) -> tuple[str, Any, Any]:
    """Return the field of a mini-batch option: its name, its type with help, its default."""
    declared = batch_declarations()[name]
    options: dict[str, Any] = {"group": GROUPS[declared.group], "help": declared.help}
    if declared.flags:
        options["name"] = declared.flags
    if default is MISSING:
        options["help"] += " Without it, every step takes the full graph."
    if not declared.minus_one:
        return name, Annotated[int | None, Parameter(**options)], field(default=None)
    options["help"] += f" 'all': {declared.minus_one}."
    words = default if isinstance(default, tuple) else (default,)
    text = field(default=",".join(map(str, words)))
    return name, Annotated[str, Parameter(**options)], text


if TYPE_CHECKING:

    @dataclass(frozen=True)
    class BatchFlags:
        """A flag for every option of mini-batches."""
else:
    BatchFlags = make_dataclass(
        "BatchFlags",
        [_flag(f.name, f.default) for f in fields(Batches)],
        frozen=True,
        namespace={"__module__": __name__, "__doc__": "A flag for every mini-batch option."},
    )


@Parameter(name="*")
@dataclass(frozen=True)
class BatchOptions(BatchFlags):
    """Mini-batch training."""

    def batches(self) -> Batches | None:
        """Return the mini-batches; None for full-batch training."""
        if getattr(self, "size") is not None:  # noqa: B009 - mypy does not see the field
            return _batches(self)
        _refuse_others(self)
        return None


@Parameter(name="*")
@dataclass(frozen=True)
class FitBatchOptions(BatchFlags):
    """Mini-batches where the memory does not hold a step on the full graph.

    Parameters
    ----------
    size : str
        Number of seed nodes in a step, ``auto`` or ``full``.
    """

    size: Annotated[
        str,
        Parameter(
            name=batch_declarations()["size"].flags, group=GROUPS["Mini-batches"],
            help=f"{batch_declarations()['size'].help} Or 'auto': the full graph if the estimate"
            " fits into the free memory, if need be with fewer workers, else sampled subgraphs."
            " Or 'full': the full graph. Models that cannot be sampled take the full graph; a"
            " portfolio leaves them out if the memory does not hold it.",
        ),
    ] = "auto"  # fmt: skip

    def batch_size(self) -> Batches | Literal["auto"] | None:
        """Return the ``batch_size`` of :class:`everynode.NodeClassifier`."""
        if self.size in ("auto", "full"):
            _refuse_others(self)
            return "auto" if self.size == "auto" else None
        return _batches(self)


def block_size(text: str) -> int | None:
    """Return the nodes that a prediction computes at once, for ``--batch-size``.

    >>> block_size("auto"), block_size("full"), block_size("4096")
    (None, 0, 4096)
    """
    if text == "auto":
        return None
    block = 0 if text == "full" else _parse_numbers(text, "--batch-size", False, "'auto' or 'full'")
    assert isinstance(block, int)
    require(text == "full" or block >= 1, "batch_size", "predict", ">= 1, auto or full", text)
    return block


def _refuse_others(options: BatchFlags) -> None:
    """Refuse other flags without a number of seed nodes."""
    default = type(options)()
    names = [f.name for f in fields(options) if f.name != "size"]
    if all(getattr(options, name) == getattr(default, name) for name in names):
        return
    flags = {f.name: batch_declarations()[f.name].flag(f.name) for f in fields(options)}
    *others, last = (flags[name] for name in names)
    raise UsageError(f"{', '.join(others)} and {last} need {flags['size']} with a number.")


def _batches(options: BatchFlags) -> Batches:
    """Return the mini-batches of flags."""
    values: dict[str, Any] = {f.name: getattr(options, f.name) for f in fields(options)}
    for name, value in values.items():
        if isinstance(value, str):
            several = isinstance(getattr(Batches, name, None), tuple)
            word = "'auto' or 'full'" if name == "size" else "'all'"
            flag = batch_declarations()[name].flag(name)
            values[name] = _parse_numbers(value, flag, several, word)
    return Batches(**values)


def _parse_numbers(text: str, flag: str, several: bool, word: str) -> int | tuple[int, ...]:
    """Parse a number, or several such as ``15,10``; ``all`` is -1."""
    words = [part.strip() for part in text.split(",")]
    if word == "'all'":
        words = [part.replace("all", "-1") for part in words]
    good = all(part.removeprefix("-").isdecimal() for part in words)
    if not good or (len(words) > 1 and not several):
        expected = "numbers such as 15,10" if several else "a number"
        raise UsageError(f"{flag} takes {expected}, or {word}. Got {text!r}.")
    numbers = tuple(map(int, words))
    return numbers if several else numbers[0]
