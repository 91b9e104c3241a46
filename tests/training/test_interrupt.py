"""Ctrl-C: the first one waits for the step, the second one does not."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from everynode.training.interrupt import deferred_interrupt


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_sets_the_event_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt() as event:
        assert not event.is_set()
        press()
        assert event.is_set()
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_ctrl_c_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferred_interrupt() as event:
            press()
            assert not event.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_has_no_ctrl_c():
    handlers = []

    def work():
        with deferred_interrupt() as event:
            handlers.append((signal.getsignal(signal.SIGINT), event.is_set()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [(signal.getsignal(signal.SIGINT), False)]
