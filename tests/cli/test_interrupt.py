"""Ctrl-C: who handles it when, and that everything is as before afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from everynode.cli.interrupt import INTERRUPTED, ctrl_c_ends_at_once, ctrl_c_raises, end

pytestmark = [
    pytest.mark.skipif(
        sys.platform == "win32",
        reason="sends SIGINT and SIGKILL to a process, which Windows does not have",
    ),
    pytest.mark.filterwarnings("ignore:Cyclopts application invoked without tokens"),
]


@pytest.fixture(autouse=True)
def pythons_own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def handler():
    return signal.getsignal(signal.SIGINT)


def test_the_handlers_nest_and_are_given_back():
    with ctrl_c_ends_at_once():
        assert handler() is end
        with ctrl_c_raises():
            assert handler() is signal.default_int_handler
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert handler() is end
    assert handler() is signal.default_int_handler


@pytest.mark.parametrize("block", [ctrl_c_ends_at_once, ctrl_c_raises])
def test_what_is_raised_inside_comes_through_and_the_handler_is_given_back(block):
    with pytest.raises(ValueError, match="inside"), ctrl_c_ends_at_once(), block():
        raise ValueError("inside")
    assert handler() is signal.default_int_handler


@pytest.mark.parametrize(
    "theirs", [signal.SIG_IGN, signal.SIG_DFL, lambda *_: None], ids=["ignored", "system", "own"]
)
def test_somebody_elses_handler_stays(theirs):
    signal.signal(signal.SIGINT, theirs)
    with ctrl_c_ends_at_once():
        assert handler() is theirs
        with ctrl_c_raises():
            assert handler() is theirs
    assert handler() is theirs


def test_another_thread_changes_nothing():
    seen = []

    def work():
        with ctrl_c_ends_at_once(), ctrl_c_raises():
            seen.append(handler())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


@pytest.mark.parametrize(
    "arguments", [["--version"], ["reproduce", "no-such-experiment"], ["no-such-command"]]
)
def test_after_main_the_handler_is_the_old_one(call, arguments):
    call(*arguments)
    assert handler() is signal.default_int_handler


def test_main_runs_in_another_thread():
    code = """
import sys, threading
from everynode.cli import main
sys.argv = ["everynode", "--version"]
def work():
    try:
        main()
    except SystemExit as exit:
        print("exit", exit.code or 0)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith("exit 0\n")
    assert done.stderr == ""


SELF = """
import os, signal, sys
{before}
from everynode.cli import app, main

@app.command
def press():
    os.kill(os.getpid(), signal.SIGINT)
    print("went on")

sys.argv = ["everynode", "press"]
main()
"""


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [("", INTERRUPTED, ""), ("signal.signal(signal.SIGINT, signal.SIG_IGN)", 0, "went on\n")],
    ids=["plain", "nohup"],
)
def test_ctrl_c_ends_the_command_unless_it_is_ignored(before, code, said):
    done = subprocess.run(
        [sys.executable, "-c", SELF.format(before=before)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, said)
    assert "Traceback" not in done.stderr


STARTS = """
import signal, sys
if {early}:
    import importlib.abc
    class Press(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name == "cyclopts":
                signal.raise_signal(signal.SIGINT)
    sys.meta_path.insert(0, Press())
else:
    import atexit
    atexit.register(signal.raise_signal, signal.SIGINT)
from everynode.__main__ import main
sys.argv = ["everynode", "--version"]
main()
"""


@pytest.mark.parametrize(("early", "code"), [(True, -signal.SIGINT), (False, INTERRUPTED)])
def test_ctrl_c_during_the_imports_and_at_the_end_shows_no_traceback(early, code):
    done = subprocess.run(
        [sys.executable, "-c", STARTS.format(early=early)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")
