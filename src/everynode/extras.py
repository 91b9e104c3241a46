"""Optional dependencies: which extra installs them, and the error that says so."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from everynode.errors import UsageError

#: The packages of each extra that ``pyproject.toml`` declares for users.
EXTRAS = {
    "app": ("nicegui",),
    "ray": ("ray",),
    "scale": ("pymetis",),
    "tables": ("pandas",),
    "tune": ("optuna", "sqlalchemy", "tomli_w"),
}


def install_command(extra: str) -> str:
    """Return the command that installs an extra, also from a clone.

    >>> install_command("tune")
    "pip install 'everynode[tune]' (in a clone: '.[tune]')"
    """
    return f"pip install 'everynode[{extra}]' (in a clone: '.[{extra}]')"


def need_extra(extra: str, feature: str, *, otherwise: str = "") -> ModuleType:
    """Import the packages of an extra and return the first of them.

    Parameters
    ----------
    extra
        A key of :data:`EXTRAS`.
    feature
        The feature that needs the extra; the subject of the error message.
    otherwise
        An alternative, added to the message.

    Raises
    ------
    UsageError
        If a package is missing. The message names the command that installs the extra.
    """
    try:
        modules = [import_module(name) for name in EXTRAS[extra]]
    except ImportError as error:
        raise UsageError(
            f"{feature} needs {error.name or EXTRAS[extra][0]}: "
            f"{install_command(extra)}{otherwise}."
        ) from error
    return modules[0]
