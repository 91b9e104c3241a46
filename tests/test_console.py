"""Messages on stderr."""

from __future__ import annotations

import subprocess
import sys

from everynode.console import say, showable


def test_messages_go_to_stderr(capsys):
    say("hello")
    say("not this", quiet=True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")


def test_a_closed_stderr_ends_nothing():
    code = "import sys, os; from everynode.console import say; r, w = os.pipe(); os.dup2(w, 2)\n"
    code += "os.close(r); say('lost'); say('lost too'); print('done')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n"


def test_names_of_files_can_be_shown():
    assert showable("a\udce9b") == "a\N{REPLACEMENT CHARACTER}b"
    assert showable("é") == "é"
