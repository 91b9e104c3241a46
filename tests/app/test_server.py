"""The server, asked over real sockets."""

from __future__ import annotations

import http.client
import io
import socket
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.conftest import App
from everynode.app.server import find_port, style, zipped
from everynode.errors import UsageError


def test_the_style_starts_with_the_colors_of_the_report() -> None:
    text = style()
    assert "--c0: light-dark(#0072b2" in text
    assert text.count(":root {") == 1
    assert "http" not in text  # nothing is loaded from elsewhere


def test_a_taken_port_is_refused() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"Cannot listen on 127.0.0.1 port {port}"):
            find_port("127.0.0.1", port)
    assert find_port("127.0.0.1", None) > 0


def test_a_model_is_packed_under_one_name(tmp_path: Path) -> None:
    (tmp_path / "m" / "2").mkdir(parents=True)
    (tmp_path / "m" / "2" / "a.json").write_text("{}")
    names = zipfile.ZipFile(io.BytesIO(zipped(tmp_path / "m"))).namelist()
    assert names == ["model/2/a.json"]


def ask(
    app: App, path: str, headers: dict[str, str], method: str = "GET"
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    for name, value in ({"Host": f"127.0.0.1:{app.port}"} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text, answer.headers


@pytest.mark.long
def test_only_the_own_page_is_answered(
    start: Callable[..., App], tables: tuple[Path, Path], tmp_path: Path
) -> None:
    app = start("--nodes", tables[0], "--edges", tables[1], "--label", "team")
    own = {"Cookie": f"everynode-{app.port}={app.token}"}
    assert ask(app, "/", {})[0] == 403
    code, _text, headers = ask(app, f"/?token={app.token}", {})
    assert code == 303
    assert "HttpOnly; SameSite=Strict" in str(headers["set-cookie"])
    code, _text, headers = ask(app, "/", own)
    assert code == 200
    assert "connect-src 'self'" in headers["content-security-policy"]
    for path in (
        "/",
        "/labels.csv",
        "/names",
        "/map/1",
        "/_nicegui_ws/socket.io/?EIO=4&transport=polling",
    ):
        assert ask(app, path, own | {"Origin": "http://evil.example"})[0] == 403
        assert ask(app, path, own | {"Host": "evil.example"})[0] == 403
        assert ask(app, path, {})[0] == 403
    assert ask(app, "/", own | {"Origin": "http://evil.example"}, "POST")[0] == 403
    assert ask(app, "/round/1/../project.json", own)[0] == 404
    while (answer := ask(app, "/labels.csv", own))[0] == 503:  # the files are being read
        time.sleep(0.2)
    assert answer[1] == "id,team,answered_by\n"
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    socket_path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert ask(app, socket_path, own | upgrade | {"Origin": "http://evil.example"})[0] == 403
    assert app.process.poll() is None
    with socket.create_connection(("127.0.0.1", app.port)) as line:
        assert line.getpeername()[0] == "127.0.0.1"
    assert not list(tmp_path.glob(".nicegui*"))
