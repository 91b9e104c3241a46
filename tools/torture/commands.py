"""Commands for kills and full disks: each writes a folder whose results can be compared."""

from __future__ import annotations

import csv
import ctypes
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

SMALL = ("--epochs", "12", "--hidden-channels", "8")
FILES = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "label")
FIT = (
    "fit",
    *FILES,
    "--effort",
    "quick",
    "--time-limit",
    "1h",
    "--cv",
    "2",
    *SMALL,
    "--out",
    "out",
)
#: The arguments of each command. They run in a folder of :func:`prepare`.
COMMANDS: dict[str, tuple[str, ...]] = {
    "fit": FIT,
    "fit, two workers": (*FIT, "--workers", "2"),
    "train": ("train", "citeseer", *SMALL, "--out", "out"),
    "compare": ("compare", "citeseer", "--seeds", "2", *SMALL, "--workers", "1", "--out", "out"),
    "compare, two workers": (
        "compare", "citeseer", "--seeds", "2", *SMALL, "--workers", "2", "--out", "out",
    ),
    "reproduce": ("reproduce", "datasets", "--graphs", "citeseer", "--out", "out"),
    "tune": ("tune", "citeseer", "--trials", "3", "--seeds", "1", *SMALL, "--out", "out"),
    "predict": ("predict", "model", *FILES[:4], "--out", "out/predictions.csv"),
    "results export": ("results", "export", "out/runs.csv", "--store", "runs.db"),
}  # fmt: skip
#: Commands of several processes on a cluster of this machine. Their start takes seconds.
CLUSTERS: dict[str, tuple[str, ...]] = {
    "compare, Ray": (*COMMANDS["compare"], "--engine", "ray"),
    "train, torchrun": ("torchrun", *COMMANDS["train"], "--batch-size", "512"),
}


def prepare(folder: Path) -> None:
    """Write a small graph, a model and a store of runs for the commands."""
    folder.mkdir(parents=True)
    chance = random.Random(0)
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "label"])
        writer.writerows(
            [i, chance.randrange(20) + 20 * (i % 2), "ab"[i % 2] if i % 5 else ""]
            for i in range(90)
        )
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows(
            [i, (i + 2 * chance.randrange(1, 9)) % 90] for i in range(90) for _ in "ab"
        )
    for words in (
        ("fit", *FILES, "--backbone", "gcn", "--objective", "ce", *SMALL, "--out", "fitted"),
        ("compare", "citeseer", "--seeds", "1", *SMALL, "--workers", "1", "--out", "compared"),
    ):
        done = run(words, folder)
        if done.code:
            raise RuntimeError(f"{words} failed: {done.err}")
    shutil.copytree(folder / "fitted" / "model", folder / "model")
    shutil.copy(folder / "compared" / "runs.db", folder / "runs.db")


class Command:
    """A command in a separate process group, which can be killed at any moment.

    The process is forked from a server that has imported everynode and PyTorch already. With
    ``fresh``, it starts a new interpreter instead, which imports them itself.

    Parameters
    ----------
    words
        The arguments of ``everynode``.
    folder
        The current folder of the process.
    fresh
        Whether to start a new interpreter.
    limit
        Largest size of a file in bytes: from this size on, writes fail as on a full disk.
    obey_modes
        Whether the process gives up the privileges of root, which may write read-only folders.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, *, fresh: bool = False, limit: int | None = None,
        obey_modes: bool = False,
    ) -> None:  # fmt: skip
        self._log = Path(tempfile.mkdtemp(prefix="torture-"))
        for name in ("out", "err"):  # the process may be killed before it opens them
            (self._log / name).touch()
        self._process = _server().Process(
            target=_run_command, args=(words, folder, self._log, fresh, limit, obey_modes)
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, for some seconds; return whether it has come."""
        self._process.join(seconds)
        return self._process.exitcode is not None

    def end(self, seconds: float = 900) -> Ended:
        """Wait for the end of the process and of its workers, and return what it left."""
        late = not self.wait(seconds)
        if late:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        _wait_for_group(self.pid)
        out, err = (
            (self._log / name).read_text(encoding="utf-8", errors="replace")
            for name in ("out", "err")
        )
        shutil.rmtree(self._log)
        return Ended(self._process.exitcode or 0, out, err, late)


class Ended(NamedTuple):
    """A command that has ended: its exit code, what it wrote, and whether it was too late."""

    code: int
    out: str
    err: str
    late: bool = False


def run(words: Sequence[str], folder: Path, **options: Any) -> Ended:
    """Run a command to its end."""
    return Command(words, folder, **options).end()


def _server() -> Any:
    """Return the multiprocessing context of the server that the commands are forked from."""
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tools.torture.preload"])
    return context


def _run_command(
    words: Sequence[str], folder: Path, log: Path, fresh: bool, limit: int | None, obey_modes: bool
) -> None:
    """Become the command, in a new process."""
    os.setsid()
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(log / name, os.O_WRONLY), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if limit is not None:
        import resource  # not on Windows, where the other parts work

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if obey_modes:
        _drop_privileges()
    module = ("-m", "everynode")
    if words[0] == "torchrun":
        launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        fresh, words, module = True, words[1:], (*launch, *module)
    if fresh:
        os.execv(sys.executable, [sys.executable, *module, *words])
    from everynode.__main__ import main

    sys.argv = ["everynode", *words]
    main()


def _drop_privileges() -> None:
    """Give up all capabilities of Linux: then even root obeys the modes of files and folders."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def _wait_for_group(leader: int) -> None:
    """Wait until the workers of a process have ended too."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(leader, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.01)


def results(folder: Path) -> dict[str, str]:
    """Return a digest of everything that equal runs have in common, by file.

    Times and pages differ from run to run. Of a store, the runs count; of a study, its trials.
    """
    found: dict[str, str] = {}
    for path in sorted((folder / "out").rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.endswith((".html", ".lock", "-wal", "-shm")):
            continue
        if path.suffix == ".db":
            with closing(sqlite3.connect(path)) as connection:
                rows = connection.execute(
                    "SELECT key, specification, record, curve FROM runs ORDER BY key"
                ).fetchall()
                content = repr(rows).encode()
        elif path.suffix in (".safetensors", ".csv"):
            content = path.read_bytes()
            if name.endswith("runs.csv"):
                content = b"\n".join(sorted(content.splitlines()))
        elif path.name in ("model.json", "member.json"):
            card = json.loads(path.read_bytes())
            kept = ("classes", "settings", "history", "temperature", "weight", "networks")
            content = json.dumps({k: card[k] for k in kept if k in card}, sort_keys=True).encode()
        elif path.suffix == ".journal":
            content = str(path.read_bytes().count(b'"state":1')).encode()
        else:  # it must be there, whole
            content = b""
            if path.suffix == ".json":
                json.loads(path.read_bytes())
        found[name] = hashlib.sha256(content).hexdigest()[:16]
    return found
