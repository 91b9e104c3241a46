"""The server of the application: one page, a few files, and the guard in front of them."""

from __future__ import annotations

import asyncio
import io
import re
import secrets
import socket
import webbrowser
import zipfile
from pathlib import Path

from fastapi import HTTPException, Request, Response
from fastapi.responses import FileResponse
from nicegui import app, background_tasks, ui

from everynode.app.guard import Guard, cookie_names
from everynode.app.page import Page
from everynode.app.round import Round
from everynode.app.workspace import Workspace
from everynode.console import say
from everynode.errors import UsageError

ASSETS = Path(__file__).parent / "assets"
REPORT_STYLE = Path(__file__).parents[1] / "report" / "assets" / "page.css"
#: The picture in the browser's tab.
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M4 4L12 6M4 4L7 12M12 6L7'
    ' 12" stroke="#888"/><circle cx="4" cy="4" r="3" fill="#0072b2"/><circle cx="12" cy="6" r="2.4"'
    ' fill="#d55e00"/><circle cx="7" cy="12" r="2.4" fill="#009e73"/></svg>'
)


def style() -> str:
    """Return the style of the page: the colors of the report, then the application's own."""
    colors = REPORT_STYLE.read_text(encoding="utf-8").partition("*, ::before")[0]
    return colors + (ASSETS / "app.css").read_text(encoding="utf-8")


def find_port(host: str, port: int | None) -> int:
    """Return a free port: the given one, or any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port or 0))
        except OSError as error:
            where = f"{host} port {port}" if port else host
            raise UsageError(
                f"Cannot listen on {where}: {error.strerror}. Choose another --port or --host."
            ) from error
        return int(probe.getsockname()[1])


def serve(work: Workspace, *, host: str, port: int | None, browser: bool) -> None:
    """Serve a workspace until Ctrl-C."""
    port, token = find_port(host, port), secrets.token_urlsafe(24)
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    shown = f"[{shown}]" if ":" in shown else shown
    address = f"http://{shown}:{port}/?token={token}"
    _add_routes(work, cookie_names(port)[1])

    async def announce() -> None:
        await _until_it_answers(host, port)
        say(f"everynode app: {address}")
        say("Ctrl-C ends it. Every answer is saved when it is given.")
        if browser:
            webbrowser.open(address)

    for task in (announce, lambda: _open(work)):
        app.on_startup(lambda task=task: background_tasks.create(task()))
    app.on_shutdown(work.trainer.close)
    names = {socket.gethostname(), shown} if shown != host else {host}
    app.add_middleware(Guard, token=token, port=port, host=host, names=tuple(names))
    ui.run(
        host=host, port=port, title="everynode", favicon=ICON, dark=None, reload=False, show=False,
        tailwind=False, show_welcome_message=False, reconnect_timeout=30.0,
        uvicorn_logging_level="error", ws_max_size=2**24,
    )  # fmt: skip


async def _until_it_answers(host: str, port: int) -> None:
    """Wait until the server accepts connections."""
    own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    while True:
        try:
            _reader, writer = await asyncio.open_connection(own, port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return


async def _open(work: Workspace) -> None:
    """Read the files, and show the model if the project starts with one."""
    await work.read()
    await work.show_model()


def _add_routes(work: Workspace, person_cookie: str) -> None:
    """Register the page and the files."""

    @ui.page("/", title="everynode")
    def index(request: Request) -> None:
        ui.add_css(style())
        Page(work, request.cookies.get(person_cookie, "somebody"))

    @app.get("/map/{number}")
    def map_numbers(number: int) -> Response:
        if work.view is None:
            raise HTTPException(404)
        content = _round(work, number).map_bytes(work.labels(), work.classes)
        return Response(content, media_type="application/octet-stream")

    @app.get("/names")
    def names() -> list[str]:
        view = work.view
        return [] if view is None else [view.name(node) for node in range(view.num_nodes)]

    @app.get("/labels.csv")
    def labels() -> Response:
        view = work.view
        if view is None and work.reading:  # the names of the columns are not known yet
            raise HTTPException(503, "The files are being read. Try again in some seconds.")
        columns = (view.id_column, view.label_column) if view else ("id", "label")
        text = work.project.labels_csv(columns)
        return Response(text, media_type="text/csv; charset=utf-8", headers=_attached("labels.csv"))

    @app.get("/round/{number}/model.zip")
    def model(number: int) -> Response:
        content = zipped(_round(work, number).folder / "model")
        return Response(content, media_type="application/zip", headers=_attached("model.zip"))

    @app.get("/round/{number}/{name}")
    def result(number: int, name: str) -> FileResponse:
        file = _round(work, number).folder / name
        if name not in ("report.html", "predictions.csv") or not file.exists():
            raise HTTPException(404)
        return FileResponse(file, filename=None if name == "report.html" else name)


def _round(work: Workspace, number: int) -> Round:
    found = [one for one in work.rounds if one.number == number]
    if not found:
        raise HTTPException(404)
    return found[0]


def _attached(name: str) -> dict[str, str]:
    assert re.fullmatch(r"[\w.]+", name)
    return {"content-disposition": f'attachment; filename="{name}"'}


def zipped(folder: Path) -> bytes:
    """Return a folder as a ZIP file, under the name ``model``."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, Path("model") / path.relative_to(folder))
    return content.getvalue()
