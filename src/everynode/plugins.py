"""Terms and models from outside: a file (``--plugin my_file.py``) or a Python entry point.

Every subclass of :class:`everynode.Term` that the file defines becomes a term, and every other
``torch.nn.Module`` a model, under its attribute ``name`` or its class name in lower case. The
files' paths are kept in the environment, so that worker processes load them too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from everynode.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from everynode.objectives.term import Term

#: The environment variable with the paths of the loaded files.
VARIABLE = "EVERYNODE_PLUGINS"
#: The group of entry points whose modules are plugins.
ENTRY_POINTS = "everynode.plugins"


@dataclass(frozen=True)
class Plugin:
    """A loaded module with its terms and models, and a digest of its source."""

    where: str
    digest: str
    terms: dict[str, type[Term]]
    models: dict[str, type[nn.Module]]


def add(path: Path | str) -> None:
    """Load a file and keep it for this process and the processes that it starts."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"There is no plugin file {path}.")
    files = _files()
    if str(file) not in files:
        _load_file(str(file))  # an error in it is told now
        os.environ[VARIABLE] = os.pathsep.join([*files, str(file)])


def loaded() -> list[Plugin]:
    """Return the plugins of this process, those of entry points first."""
    return [*_installed(), *(_load_file(file) for file in _files())]


def terms() -> dict[str, type[Term]]:
    """Return the terms of all plugins by name."""
    return {name: term for plugin in loaded() for name, term in plugin.terms.items()}


def models() -> dict[str, type[nn.Module]]:
    """Return the models of all plugins by name."""
    return {name: model for plugin in loaded() for name, model in plugin.models.items()}


def digest(names: set[str]) -> str | None:
    """Return a digest of the source of these terms and models; None if no plugin has any of them.

    It is part of the identity of a run: when the code changes, it is another run.
    """
    used = [p.digest for p in loaded() if names & {*p.terms, *p.models}]
    return hashlib.sha256("".join(used).encode()).hexdigest()[:16] if used else None


def _files() -> list[str]:
    return [file for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]


@cache
def _load_file(file: str) -> Plugin:
    path = Path(file)
    name = f"everynode_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file: a plugin ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"The plugin {file} cannot be imported ({error!r}).") from error
    return _plugin(module, file, path.read_bytes())


@cache
def _installed() -> tuple[Plugin, ...]:
    found = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            module = entry.load()
        except Exception as error:
            raise UsageError(f"The plugin {entry.value} cannot be imported ({error!r}).") from error
        source = Path(module.__file__ or "")
        found.append(_plugin(module, entry.value, source.read_bytes() if source.is_file() else b""))
    return tuple(found)


def _plugin(module: ModuleType, where: str, source: bytes) -> Plugin:
    from torch import nn

    from everynode.objectives.term import Term

    own: list[Any] = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
    ]
    names = {cls: str(getattr(cls, "name", "") or cls.__name__.lower()) for cls in own}
    return Plugin(
        where,
        hashlib.sha256(source).hexdigest(),
        {names[cls]: cls for cls in own if issubclass(cls, Term)},
        {names[cls]: cls for cls in own if not issubclass(cls, Term)},
    )
