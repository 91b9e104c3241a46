"""The folder of a run: its owner, and the files that a new start removes."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from everynode.console import showable
from everynode.errors import DataError, UsageError
from everynode.storage.json_text import parse_json

#: New results wait here until all of them are written.
STAGED = ".new-results"


def command() -> str:
    """Return the command of this process, as a user types it."""
    return showable(
        shlex.join([Path(sys.argv[0]).name.replace("__main__.py", "everynode"), *sys.argv[1:]])
    )


def prepare(folder: Path, key: str, results: Sequence[str], states: str, resume: bool) -> bool:
    """Claim a folder for a run, and return whether the run has finished there.

    A new start removes the results and the states of the run. Other files stay: a folder is refused
    if it has unrelated files under the names of results or states.

    Parameters
    ----------
    folder : Path
        The folder.
    key : str
        A digest of everything that determines the result.
    results : sequence of str
        The files of a finished run.
    states : str
        The file or folder with the states of an unfinished run. They are removed at the end.
    resume : bool
        Whether to continue an earlier run; False starts over.
    """
    from everynode.storage.atomic import write_atomically
    from everynode.training.checkpoint import is_state

    start, keep = folder / "run.json", folder / states
    if folder.is_file():
        raise UsageError(f"{folder} is a file: choose a folder for --out.")
    kept, earlier = _entries(keep), _read_start(start)
    for path in kept:
        if not is_state(path, damaged=earlier is not None):
            raise UsageError(f"{path} is not a training state of everynode: choose another --out.")
    present = [name for name in results if (folder / name).exists()] + [states] * bool(kept)
    if not resume:
        for name in results:
            (folder / name).unlink(missing_ok=True)
        remove_states(keep)
    elif earlier is not None:
        if "unreadable" in earlier:
            raise DataError(
                f"{start} cannot be read ({earlier['unreadable']}): --no-resume starts over."
            )
        if present and earlier["key"] != key:
            raise UsageError(
                f"{folder} has {_other_run(earlier)}: choose another --out, or --no-resume to "
                "replace it."
            )
        if present == list(results):
            return True
    elif present:
        raise UsageError(
            f"{folder} has files of something else ({', '.join(present)}): choose another --out, "
            "or --no-resume to replace them."
        )
    write_atomically(start, json.dumps({"key": key, "command": command()}).encode())
    return False


@contextlib.contextmanager
def publish(folder: Path, last: str) -> Iterator[Path]:
    """Yield a folder for new results, which then appear in ``folder`` together.

    The file ``last`` is removed first and appears last: if it exists, all other files belong to it.
    An earlier crash leaves the old results unchanged.
    """
    staged = folder / STAGED
    shutil.rmtree(staged, ignore_errors=True)  # of a killed process
    try:
        yield staged
        files = [path for path in staged.rglob("*") if path.is_file() and path.name[0] != "."]
        files.sort(key=lambda path: (path == staged / last, path))
        (folder / last).unlink(missing_ok=True)
        for path in files:
            target = folder / path.relative_to(staged)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
    except OSError as error:
        raise DataError(
            f"Cannot write the results to {folder}: {error.strerror or error}. Free some space, or "
            "choose another --out; the same command continues."
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def read_result(file: Path) -> dict[str, Any]:
    """Read the summary of a finished run."""
    try:
        result: dict[str, Any] = parse_json(file.read_text(encoding="utf-8"))
        return result
    except (ValueError, OSError) as error:
        raise DataError(f"{file} cannot be read ({error}): --no-resume starts over.") from error


def remove_states(states: Path) -> None:
    """Remove the states of a finished training, and their folder if it becomes empty."""
    from everynode.training.checkpoint import is_state

    for path in _entries(states):
        if is_state(path, damaged=True):
            path.unlink()
    with contextlib.suppress(OSError):  # a removed file, or a folder with other files
        states.rmdir()


def _read_start(start: Path) -> dict[str, Any] | None:
    """Read the file that a run writes at its start; None without one. Refuse other files."""
    if not start.exists():
        return None
    try:
        earlier = parse_json(start.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        return {"unreadable": str(error)}
    if not isinstance(earlier, dict) or "key" not in earlier:
        raise UsageError(f"{start} is not a file of everynode: choose another --out.")
    return earlier


def _other_run(earlier: dict[str, Any]) -> str:
    """Describe the other run of a folder."""
    written = earlier.get("command")
    if written == command():
        return "an older run of this command, and the files or everynode have changed since"
    return f"another run ({written})" if isinstance(written, str) else "another run"


def _entries(states: Path) -> list[Path]:
    return sorted(states.iterdir()) if states.is_dir() else [states] * states.exists()
