"""Terms and models from outside: a file (``--plugin my_file.py``), an entry point, or a class.

Every subclass of :class:`everynode.Term` that a file defines is a term, and every other
``torch.nn.Module`` is a model. The name is the attribute ``name`` or the class name in lower case.
Classes with a leading underscore are left out; so are the classes that ``__all__`` does not list,
if the file has one. The paths of the files are kept in the environment, so that worker processes
load them too.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from everynode.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from everynode.objectives.term import Term

#: The environment variable with the paths of the loaded files.
VARIABLE = "EVERYNODE_PLUGINS"
#: The group of entry points; each one names a module.
ENTRY_POINTS = "everynode.plugins"
#: Names that work on the command line and in the name of an objective.
NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Plugin:
    """A module with terms and models.

    Parameters
    ----------
    where : str
        The file, the entry point or the class, for messages.
    digest : str
        A digest of the source.
    terms, models : dict
        The classes by name.
    """

    where: str
    digest: str
    terms: dict[str, type[Term]]
    models: dict[str, type[nn.Module]]


#: The classes that :func:`register` added, by kind and name.
_registered: dict[tuple[str, str], Plugin] = {}


def add(path: Path | str) -> None:
    """Load a file, for this process and the processes that it starts."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"There is no plugin file {path}.")
    files = _files()
    if str(file) not in files:
        _check([*loaded(), _load_file(str(file))])
        os.environ[VARIABLE] = os.pathsep.join([*files, str(file)])


def register(cls: type[nn.Module]) -> str:
    """Make a class known by its name, in this process only, and return the name.

    A class that is defined again, as in a notebook, replaces the earlier one.
    """
    from everynode.models.names import MODELS

    place = f"{cls.__module__}:{cls.__qualname__}"
    if place in MODELS.values():
        return next(name for name, built_in in MODELS.items() if built_in == place)
    name = _name(cls)
    if any(cls in {*p.terms.values(), *p.models.values()} for p in loaded()):
        return name
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # typed into an interpreter
        source = f"{cls.__module__}.{cls.__qualname__}"
    return _register(name, cls, f"{cls.__module__}.{cls.__qualname__}", source)


def register_term(term: Term) -> str:
    """Make a term with its options known by its name, in this process, and return the name."""
    from everynode.objectives.term import Term

    if not isinstance(term, Term):
        raise UsageError(
            "objective takes names and everynode.Term objects, such as ['mi', MyTerm(weight=0.2)]. "
            f"Got {term!r}."
        )
    cls = type(term)
    if any(True for _ in term.parameters()):
        raise UsageError(
            f"The term {_name(cls)!r} has parameters, which only your own loop can train: "
            "use it with en.ENC."
        )

    class Configured(cls):  # type: ignore[misc, valid-type]
        """Copies of the term with another weight."""

        default_weight = float(term.weight)

        def __new__(_, weight: float | None = None) -> Any:
            copied = copy.deepcopy(term)
            copied.weight = float(term.weight if weight is None else weight)
            return copied

    where = f"{cls.__module__}.{cls.__qualname__}"
    return _register(_name(cls), Configured, where, _source_of(term))


def _source_of(term: Term) -> str:
    """Return the code and the options of a term: what decides its value."""
    cls = type(term)
    try:
        code = inspect.getsource(cls)
    except (OSError, TypeError):  # typed into a prompt
        code = cls.__qualname__
    simple = (bool, int, float, str, tuple, list, dict, type(None))
    options = {
        name: value
        for name, value in sorted(vars(term).items())
        if isinstance(value, simple) and not name.startswith("_") and name != "training"
    }
    tensors = {name: value.tolist() for name, value in sorted(term.state_dict().items())}
    return f"{code} {options} {tensors}"


def _register(name: str, cls: type[Any], where: str, source: str) -> str:
    from everynode.objectives.term import Term

    kind = "terms" if issubclass(cls, Term) else "models"
    digest = hashlib.sha256(source.encode()).hexdigest()
    classes: dict[str, Any] = {"terms": {}, "models": {}, kind: {name: cls}}
    plugin = Plugin(where, digest, **classes)
    same = _registered.get((kind, name))
    others = [p for p in loaded() if not (p is same and p.where == where)]
    _check([*others, plugin])
    _registered[kind, name] = plugin
    return name


def loaded() -> list[Plugin]:
    """Return the plugins of this process: entry points, files, then registered classes."""
    return [*_installed(), *(_load_file(file) for file in _files()), *_registered.values()]


def terms() -> dict[str, type[Term]]:
    """Return the terms of all plugins by name."""
    return {name: term for plugin in _all() for name, term in plugin.terms.items()}


def models() -> dict[str, type[nn.Module]]:
    """Return the models of all plugins by name."""
    return {name: model for plugin in _all() for name, model in plugin.models.items()}


def digest(names: set[str]) -> str | None:
    """Return a digest of the source of these terms and models; None if no plugin has one of them.

    It is part of the identity of a run: changed code makes another run.
    """
    used = sorted(p.digest for p in loaded() if names & {*p.terms, *p.models})
    return hashlib.sha256("".join(used).encode()).hexdigest()[:16] if used else None


def files(names: set[str]) -> list[str]:
    """Return the loaded files that define one of these terms or models."""
    used = ((file, _load_file(file)) for file in _files())
    return [file for file, plugin in used if names & {*plugin.terms, *plugin.models}]


def _all() -> list[Plugin]:
    plugins = loaded()
    _check(plugins)
    return plugins


def _check(plugins: list[Plugin]) -> None:
    """Refuse a name that two places define."""
    from everynode.models.names import MODELS
    from everynode.settings import TERMS, declarations

    built_in = {name: declarations()[name].term.replace(":", ".") for name in TERMS}
    places = {("term", name): where for name, where in built_in.items()}
    places |= {("term", name): "everynode" for name in ("ce", "enc", "auto")}
    places |= {("model", name): where.replace(":", ".") for name, where in MODELS.items()}
    for plugin in plugins:
        named = [("term", n) for n in plugin.terms] + [("model", n) for n in plugin.models]
        for kind, name in named:
            if (kind, name) in places:
                raise UsageError(
                    f"{plugin.where} defines the {kind} {name!r}, and so does "
                    f"{places[kind, name]}: set another `name` in the class."
                )
            places[kind, name] = plugin.where


def _files() -> list[str]:
    return [file for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]


@cache
def _load_file(file: str) -> Plugin:
    path = Path(file)
    # The path is part of the name: two files may have the same stem.
    name = f"everynode_plugin_{path.stem}_{hashlib.sha256(file.encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file: the name of a plugin ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled
    try:
        source = path.read_bytes()
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UsageError(_reason(error, file)) from error
    return _plugin(module, file, source)


@cache
def _installed() -> tuple[Plugin, ...]:
    from importlib.metadata import entry_points  # takes longer than the rest of this module

    plugins = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            module = entry.load()
            file = Path(module.__file__ or "")
            source = file.read_bytes() if file.is_file() else b""
        except Exception as error:
            raise UsageError(_reason(error, entry.value)) from error
        plugins.append(_plugin(module, entry.value, source))
    return tuple(plugins)


def _reason(error: Exception, where: str) -> str:
    """Say in one sentence why a plugin cannot be imported, with the line."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == where]
    if isinstance(error, SyntaxError) and error.filename == where:
        lines = [error.lineno]
    line = f", line {lines[-1]}" if lines else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    reason = f"{type(error).__name__}: {message}".rstrip(".")
    return f"The plugin {where} cannot be imported{line}: {reason}."


def _plugin(module: ModuleType, where: str, source: bytes) -> Plugin:
    from torch import nn

    from everynode.models.layer import Layer
    from everynode.objectives.term import Term

    listed = getattr(module, "__all__", None)
    own: list[Any] = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, nn.Module)
        and not issubclass(value, Layer)
        and value.__module__ == module.__name__
        and not value.__name__.startswith("_")
        and (listed is None or value.__name__ in listed)
    ]
    if not own:
        raise UsageError(f"The plugin {where} defines no term and no model (torch.nn.Module).")
    return Plugin(
        where,
        hashlib.sha256(source).hexdigest(),
        _by_name([cls for cls in own if issubclass(cls, Term)], where),
        _by_name([cls for cls in own if not issubclass(cls, Term)], where),
    )


def _by_name(classes: list[Any], where: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for cls in classes:
        name = _name(cls)
        if name in named and named[name] is not cls:
            both = f"{named[name].__name__} and {cls.__name__}"
            raise UsageError(f"{where}: {both} have the same name {name!r}. Rename one of them.")
        named[name] = cls
    return named


def _name(cls: type[Any]) -> str:
    """Return the name of a term or model: its attribute ``name``, or its class name."""
    own = vars(cls).get("name")
    name = own if isinstance(own, str) and own else cls.__name__.lower()
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{cls.__module__}.{cls.__qualname__} has the name {name!r}: a name starts with a "
            "lower-case letter, followed by lower-case letters, digits, '_' or '-'."
        )
    return name
