"""The folder of a run: whose it is, what is removed to start over, and what never is."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from everynode.console import showable
from everynode.errors import DataError, UsageError


def command() -> str:
    """The command that was given, as it is typed."""
    return showable(
        shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "everynode"), *sys.argv[1:]])
    )


def prepare(folder: Path, key: str, made: Sequence[str], states: str, resume: bool) -> bool:
    """Make sure that the folder is this run's; whether the run has ended there.

    ``key``: of everything that decides the result. ``made``: the files that the run leaves behind. ``states``: the file or the folder of
    its states while it goes on. To start over, these files are removed, and of a folder of states only the states; what anybody else
    keeps where the states should be is refused, for when the run ends they are removed.
    """
    from everynode.storage.atomic import write_atomically
    from everynode.training.checkpoint import is_state

    start, keep = folder / "run.json", folder / states
    if folder.is_file():
        raise UsageError(f"{folder} is a file: give --out a folder.")
    kept, before = _entries(keep), _begun(start)
    for path in kept:
        if not is_state(path, damaged=before is not None):
            raise UsageError(f"{path} is no state of a training of everynode: give another --out.")
    there = [name for name in made if (folder / name).exists()] + [states] * bool(kept)
    if not resume:
        for name in made:
            (folder / name).unlink(missing_ok=True)
        remove_states(keep)
    elif before is not None:
        said = before.get("command")
        if "unreadable" in before:
            raise DataError(
                f"{start} cannot be read ({before['unreadable']}): --no-resume starts over."
            )
        if there and before["key"] != key:
            what = (
                "an older run of this command; the files, or everynode, have changed since"
                if said == command()
                else f"another run{f' ({said})' if isinstance(said, str) else ''}"
            )
            raise UsageError(
                f"{folder} holds {what}: give another --out, or --no-resume to replace it."
            )
        if there == list(made):
            return True
    elif there:
        raise UsageError(
            f"{folder} holds files that are not this run's ({', '.join(there)}): give another --out, or --no-resume to replace them."
        )
    write_atomically(start, json.dumps({"key": key, "command": command()}).encode())
    return False


def _begun(start: Path) -> dict[str, Any] | None:
    """What the file says that a run writes when it begins; None if it is not there. Somebody else's is refused."""
    if not start.exists():
        return None
    try:
        before = json.loads(start.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        return {"unreadable": str(error)}
    if not isinstance(before, dict) or "key" not in before:
        raise UsageError(f"{start} is not of everynode: give another --out.")
    return before


def remove_states(states: Path) -> None:
    """Remove the states of a training that has ended, and their folder if nothing else is in it."""
    from everynode.training.checkpoint import is_state

    for path in _entries(states):
        if is_state(path, damaged=True):
            path.unlink()
    with contextlib.suppress(
        OSError
    ):  # it is a file, and gone; or somebody has put something else there
        states.rmdir()


def _entries(states: Path) -> list[Path]:
    return sorted(states.iterdir()) if states.is_dir() else [states] * states.exists()
