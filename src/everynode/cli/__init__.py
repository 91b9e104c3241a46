"""The command line: parses, calls, prints.

Commands import PyTorch when they run, so that ``--help`` answers at once.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from cyclopts import App, CycloptsError, Parameter, Token, convert
from cyclopts.exceptions import UnusedCliTokensError

from everynode import __version__
from everynode.cli.interrupt import INTERRUPTED, ctrl_c_ends_at_once
from everynode.cli.options import TRAINING
from everynode.console import say
from everynode.errors import EverynodeError


def _exactly(kind: Any, tokens: Sequence[Token]) -> Any:
    """Convert the words of a flag. Without this, cyclopts rounds 2.5 to 2 for whole numbers."""
    for token in tokens if int in (kind, *get_args(kind)) else ():
        if "." in token.value:
            raise ValueError(f"{token.value} is not a whole number.")
    return convert(kind, tokens)


#: New objects between two garbage collections. Python's default of 700 makes an import of PyTorch,
#: which creates 300,000 objects to stay, a tenth slower.
COLLECT_EVERY = 20_000

app = App(
    name="everynode",
    version=__version__,
    help="Node classifiers trained on every node, labeled or not.",
    default_parameter=Parameter(converter=_exactly),
)
# A text names a function or an app, whose module is imported when the command runs.
for command in (
    "fit", "predict", "explain", "suggest", "suspicious", "app", "train", "compare", "bench",
    "reproduce", "report",
):  # fmt: skip
    shared: dict[str, Any] = {}
    if command in ("fit", "train", "compare"):
        shared = {"group_parameters": TRAINING}
    # A module named app would replace the app of this package once it is imported.
    module = "serve" if command == "app" else command
    app.command(f"everynode.cli.{module}:{command}", **shared)
for group in ("tune", "data", "results"):
    app.command(f"everynode.cli.{group}:{group}_app", name=group)


def resolve(words: Sequence[str]) -> None:
    """Import every command for the help that lists them, but not if the first word names one."""
    if not words or words[0].startswith("-"):
        for command in app:
            app[command]  # this imports it


def _drop_stdout() -> None:
    """Send the rest of stdout nowhere: Python flushes it once more at its end."""
    with contextlib.suppress(OSError, ValueError):  # it has no file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run a command. Bad input becomes one sentence on stderr and exit code 2 or 3."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller: only the output is lost
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open until the end
    gc.set_threshold(COLLECT_EVERY)
    if isinstance(sys.stdout, io.TextIOWrapper):  # file names may not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with ctrl_c_ends_at_once():
            resolve(sys.argv[1:])
            code = app(exit_on_error=False, print_error=False, result_action="return_value")
            sys.stdout.flush()
    except UnusedCliTokensError as error:
        command = " ".join(["everynode", *(error.command_chain or ())])
        words = " ".join(error.unused_tokens or ())
        option = " (such as --nodes)" if command == "everynode fit" else ""
        say(
            f"everynode: Unexpected {words!r}: write its option{option} before it. "
            f"'{command} --help' lists the options."
        )
        code = 2
    except CycloptsError as error:
        command = " ".join(["everynode", *(error.command_chain or ())])
        say(f"everynode: {str(error).strip()} Try '{command} --help'.")
        code = 2
    except EverynodeError as error:
        say(f"everynode: {error}")
        code = error.exit_code
    except BrokenPipeError:  # `everynode ... | head`
        _drop_stdout()
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "can't allocate memory" not in str(error):
            raise  # only this message of torch is about memory
        say(
            "everynode: Not enough memory: use sampled subgraphs (--batch-size 256, for fit and "
            "train), --workers 1, or fewer --hidden-channels."
        )
        code = 3
    except OSError as error:
        if not error.filename:
            _drop_stdout()
        what = f"read or write {error.filename}" if error.filename else "write the result"
        say(f"everynode: Cannot {what}: {error.strerror or error}.")
        code = 3
    gc.freeze()  # at its end Python looks through all objects that are not frozen, for 0.2 seconds
    sys.exit(code)
