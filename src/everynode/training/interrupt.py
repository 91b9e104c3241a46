"""Ctrl-C during training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into an event, so that the step completes; the second one interrupts.

    Only the main thread receives Ctrl-C. In any other thread the event is never set.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    previous: Any = signal.getsignal(signal.SIGINT)

    def set_event(signum: int, frame: FrameType | None) -> None:
        event.set()
        signal.signal(signal.SIGINT, previous)

    if previous is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, set_event)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, previous)
