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

#: What a shell reports of a command that Ctrl-C ended.
INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def ctrl_c_ends_at_once() -> Iterator[None]:
    """Within this block Ctrl-C ends the process, without a KeyboardInterrupt.

    Python may lose an exception that is raised while a module is being imported (in a weak reference's callback, or behind somebody's
    ``except``: measured, once in 250 interrupted imports of torch), and the command would go on as if nothing had been pressed. Where
    there is something to keep, the training loop and :func:`ctrl_c_raises` listen for themselves.
    """
    with _handler(_end, instead_of=signal.default_int_handler):
        yield


@contextmanager
def ctrl_c_raises() -> Iterator[None]:
    """Within this block Ctrl-C is a KeyboardInterrupt again."""
    with _handler(signal.default_int_handler, instead_of=_end):
        yield


@contextmanager
def _handler(handler: Any, *, instead_of: Any) -> Iterator[None]:
    """SIGINT's handler for this block, if the present one is the expected one (it may be ignored, as under nohup, or a caller's)."""
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


def _end(signum: int, frame: FrameType | None) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h\n")  # a progress bar hides the cursor
        sys.stderr.flush()
    os._exit(INTERRUPTED)
