"""The guard: own page, own browser, nobody else; websockets too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everynode.app.guard import Guard

OWN = {"host": "127.0.0.1:8000"}
COOKIE = {"cookie": "everynode-8000=secret"}


async def inner(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(
    headers: dict[str, str],
    *,
    query: str = "",
    kind: str = "http",
    method: str = "GET",
    host: str = "127.0.0.1",
) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {
        "type": kind, "method": method, "path": "/", "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    asyncio.run(Guard(inner, "secret", 8000, host, names=("box",))(scope, receive, send))
    return sent


def status(headers: dict[str, str], **options: Any) -> int:
    return ask(headers, **options)[0]["status"]


def test_the_cookie_opens_the_page_with_a_policy() -> None:
    start = ask(OWN | COOKIE)[0]
    assert start["status"] == 200
    assert b"connect-src 'self'" in dict(start["headers"])[b"content-security-policy"]


def test_the_token_sets_the_cookie_and_leaves_the_address() -> None:
    start = ask(OWN, query="token=secret&x=1")[0]
    assert start["status"] == 303
    assert (b"location", b"/?x=1") in start["headers"]
    cookies = [value.decode() for name, value in start["headers"] if name == b"set-cookie"]
    assert cookies[0] == "everynode-8000=secret; HttpOnly; SameSite=Strict; Path=/"
    assert cookies[1].startswith("everynode-person=")
    kept = ask(OWN | {"cookie": "everynode-person=ann"}, query="token=secret")[0]["headers"]
    assert any(b"everynode-person=ann" in value for _name, value in kept)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        (OWN, ""),
        (OWN, "token=wrong"),
        (OWN | {"cookie": "everynode-8000=wrong"}, ""),
        (OWN | {"cookie": "everynode-9999=secret"}, ""),
        ({"host": "evil.example:8000"} | COOKIE, ""),  # DNS rebinding
        ({"host": "127.0.0.1:9999"} | COOKIE, ""),
        ({"host": "192.168.0.9:8000"} | COOKIE, ""),
        (COOKIE, ""),
        (OWN | COOKIE | {"origin": "http://evil.example"}, ""),
        (OWN | COOKIE | {"origin": "http://localhost:8000"}, ""),
        (OWN | COOKIE | {"origin": "null"}, ""),
        (OWN | COOKIE | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, ""),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_strangers_are_refused(headers: dict[str, str], query: str, kind: str) -> None:
    (first, *_) = ask(headers, query=query, kind=kind)
    if kind == "websocket":
        assert first["type"] == "websocket.close"
    else:
        assert first["status"] == 403


def test_the_own_page_may_ask_for_websockets_and_posts() -> None:
    own = OWN | COOKIE | {"origin": "http://127.0.0.1:8000"}
    assert ask(own, kind="websocket")[0]["type"] == "websocket.accept"
    assert status(own, method="POST") == 200
    assert status({"host": "localhost:8000", "origin": "http://localhost:8000"} | COOKIE) == 200


def test_a_token_does_not_open_a_websocket_or_a_post() -> None:
    assert ask(OWN, query="token=secret", kind="websocket")[0]["type"] == "websocket.close"
    assert status(OWN, query="token=secret", method="POST") == 403


def test_other_addresses_are_answered_only_when_asked() -> None:
    numeric = {"host": "192.168.0.9:8000"} | COOKIE
    assert status(numeric, host="0.0.0.0") == 200
    assert status({"host": "box:8000"} | COOKIE, host="0.0.0.0") == 200
    assert status({"host": "evil.example:8000"} | COOKIE, host="0.0.0.0") == 403
