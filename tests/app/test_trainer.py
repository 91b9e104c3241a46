"""The training, followed and stopped from the page."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path

from everynode.app.project import Source
from everynode.app.trainer import Trainer


def request(folder: Path, source: Source) -> None:
    choices = {"model": "", "effort": "quick", "before": "", "answered": 0}
    (folder / "request.json").write_text(json.dumps({"source": asdict(source), **choices}))


def test_it_follows_reports(tmp_path: Path) -> None:
    events: list[str] = []
    trainer = Trainer(lambda kind, folder: events.append(f"{kind} {folder.name}"))
    step = {
        "event": "progress",
        "title": "portfolio",
        "done": 2,
        "total": 9,
        "left": 3.5,
        "note": "best",
    }
    trainer.take(step, tmp_path)
    assert (trainer.title, trainer.done, trainer.total, trainer.left) == ("portfolio", 2, 9, 3.5)
    trainer.take({"event": "ready"}, tmp_path)
    assert events == [f"ready {tmp_path.name}"]
    trainer.take({"event": "error", "message": "no"}, tmp_path)
    assert trainer.error == "no"
    trainer.stop()  # nothing runs
    assert not trainer.stopping


def test_an_error_of_the_process_is_shown(tmp_path: Path, source: Source) -> None:
    events: list[str] = []
    trainer = Trainer(lambda kind, _folder: events.append(kind))

    async def run() -> None:
        request(tmp_path, replace(source, id="nothing"))
        await trainer.start(tmp_path)
        assert trainer.running
        await trainer.start(tmp_path)  # a second start does nothing
        while trainer.running:
            await asyncio.sleep(0.05)

    asyncio.run(run())
    assert "'nothing'" in trainer.error
    assert events == ["end"]


def test_closing_ends_the_process_at_once(tmp_path: Path, source: Source) -> None:
    trainer = Trainer(lambda _kind, _folder: None)

    async def run() -> int | None:
        request(tmp_path, source)
        await trainer.start(tmp_path)
        process = trainer._process
        await trainer.close()
        assert process is not None
        return process.returncode

    assert asyncio.run(run()) == -9
