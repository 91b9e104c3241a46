"""The flags of mini-batches, derived from the declarations in :mod:`everynode.batches`."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from everynode.batches import Batches, batch_declarations
from everynode.cli.options import GROUPS
from everynode.errors import UsageError


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
        values: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        flags = {name: batch_declarations()[name].flag(name) for name in values}
        if values["size"] is None:
            if self != BatchOptions():
                *others, last = (flag for name, flag in flags.items() if name != "size")
                raise UsageError(f"{', '.join(others)} and {last} need {flags['size']}.")
            return None
        for name, value in values.items():
            if isinstance(value, str):
                several = isinstance(getattr(Batches, name), tuple)
                values[name] = _parse_numbers(value, flags[name], several)
        return Batches(**values)


def _parse_numbers(text: str, flag: str, several: bool) -> int | tuple[int, ...]:
    """Parse a number, or several such as ``15,10``; ``all`` is -1."""
    words = [word.strip().replace("all", "-1") for word in text.split(",")]
    good = all(word.removeprefix("-").isdecimal() for word in words)
    if not good or (len(words) > 1 and not several):
        expected = "numbers such as 15,10" if several else "a number"
        raise UsageError(f"{flag} takes {expected}, or 'all'. Got {text!r}.")
    numbers = tuple(map(int, words))
    return numbers if several else numbers[0]
