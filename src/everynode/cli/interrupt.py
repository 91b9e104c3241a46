"""Ctrl-C on the command line."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: The exit code of a command that Ctrl-C ended.
INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def ctrl_c_ends_at_once() -> Iterator[None]:
    """End the process on Ctrl-C within this block, without a KeyboardInterrupt.

    Python may lose an exception during an import, in the callback of a weak reference or behind a
    broad ``except`` (measured: once in 250 interrupted imports of torch). The command would then
    continue. Where results must be kept, the training loop and :func:`ctrl_c_raises` handle Ctrl-C.
    """
    with _handler(end, instead_of=signal.default_int_handler):
        yield


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    """Raise a KeyboardInterrupt on Ctrl-C within this block."""
    with _handler(signal.default_int_handler, instead_of=end):
        yield


@contextmanager
def _handler(handler: Any, *, instead_of: Any) -> Iterator[None]:
    """Set the handler of SIGINT within this block, if the current one is ``instead_of``.

    Any other handler belongs to the caller, or SIGINT is ignored, as under nohup.
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not instead_of
    ):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, instead_of)


def end(signum: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C: end the process at once."""
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h\n")  # a progress bar hides the cursor
        sys.stderr.flush()
    os._exit(INTERRUPTED)
