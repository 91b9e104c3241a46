"""The training in a separate process, followed and stopped from the page."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Trainer:
    """Start one training at a time, and follow its reports.

    Parameters
    ----------
    on_event : callable
        Called with ``ready`` when a round can be shown, with ``queue`` when its queue was chosen,
        and with ``end`` when the process ended.

    Attributes
    ----------
    title, note : str
        What is going on, and a detail.
    done, total : int
        Finished trainings and all of them; 0: unknown.
    left : float or None
        Seconds probably left.
    error : str
        Why the last training failed; empty if it did not.
    started : float
        When the training started, on the monotonic clock.
    stopping : bool
        Whether somebody asked it to stop.
    """

    def __init__(self, on_event: Callable[[str, Path], None]):
        self._on_event = on_event
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.error = ""
        self._reset()

    def _reset(self) -> None:
        self.title, self.note = "Starting", ""
        self.done = self.total = 0
        self.left: float | None = None
        self.started = time.monotonic()
        self.stopping = False

    @property
    def running(self) -> bool:
        """Whether a training runs."""
        return self._task is not None and not self._task.done()

    async def start(self, folder: Path) -> None:
        """Start the training of a round; nothing happens while another one runs."""
        if self.running:
            return
        self._reset()
        self.error = ""
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "everynode.app.worker", str(folder),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environment,
            stdin=asyncio.subprocess.DEVNULL, limit=2**20, start_new_session=True,
        )  # fmt: skip
        self._task = asyncio.create_task(self._follow(self._process, folder))

    async def _follow(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(process.stderr.read())
        async for line in process.stdout:
            try:
                self.take(json.loads(line), folder)
            except ValueError:  # a library printed something
                continue
        code = await process.wait()
        last = (await errors).decode(errors="replace").strip().splitlines()[-1:]
        if code and not self.error and not self.stopping:
            self.error = f"The training ended unexpectedly ({code}). {''.join(last)}".strip()
        self._on_event("end", folder)

    def take(self, event: Mapping[str, Any], folder: Path) -> None:
        """Take a report of the worker."""
        kind = event.get("event")
        if kind == "progress":
            self.title, self.note = str(event["title"]), str(event["note"])
            self.done, self.total, self.left = event["done"], event["total"], event["left"]
        elif kind == "error":
            self.error = str(event["message"])
        elif kind == "stopped":
            self.error = "The training was stopped before a first result."
        elif kind == "queue":
            self._on_event("queue", folder)
        elif kind == "ready":
            self.title, self.note = "Writing the report", ""
            self._on_event("ready", folder)

    def stop(self) -> None:
        """Ask the training to stop; it keeps the best result so far."""
        if self.running and self._process is not None:
            self.stopping = True
            self._process.send_signal(signal.SIGINT)

    async def close(self) -> None:
        """End the training at once."""
        if self.running and self._process is not None:
            self._process.kill()
            await self._process.wait()
