"""Who may talk to the application: this browser, from this page, and nobody else."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Nothing is loaded from, or sent to, another host. The library's own pages need inline scripts.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'self'; frame-ancestors 'self'; object-src 'none'"
)
#: The names of this computer for itself.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Refuse requests without the token, for other host names, or from other origins.

    The address with the token sets a cookie, which no other site can send (``SameSite=Strict``)
    and no script can read (``HttpOnly``). The checks hold for websockets too.

    Parameters
    ----------
    app : callable
        The ASGI application.
    token : str
        The secret of this start.
    port : int
        The port of the server.
    host : str
        The address on which the server listens. On loopback, only its own names are answered;
        else also numerical addresses.
    names : tuple of str
        More names that are answered.

    Attributes
    ----------
    app, token, port, host, names
        The arguments.
    cookie, person_cookie : str
        The names of the cookies with the token, and with the person.
    """

    def __init__(
        self, app: Handler, token: str, port: int, host: str = "127.0.0.1",
        names: tuple[str, ...] = (),
    ):  # fmt: skip
        self.app, self.token, self.port, self.host, self.names = app, token, port, host, names
        self.cookie, self.person_cookie = cookie_names(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a refusal."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if reason := self.refusal(headers):
            await _refuse(scope, receive, send, reason)
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        (given,) = query.pop("token", [""])[:1]
        cookies = _cookies(headers.get("cookie", ""))
        if _equal(given, self.token) and scope["type"] == "http" and scope["method"] == "GET":
            await self._welcome(scope, send, query, cookies)
        elif _equal(cookies.get(self.cookie, ""), self.token):
            await self.app(scope, receive, _with_policy(send))
        else:
            await _refuse(
                scope, receive, send,
                "Open the address that the terminal shows: it has the token of this start.",
            )  # fmt: skip

    def refusal(self, headers: MutableMapping[str, str]) -> str:
        """Return why a request is refused; empty if its host and origin are right."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own(host):
            return f"{host or 'No host'} is not the address of this application."
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests of other pages are refused."
        # A link to the page is harmless; everything else of another site is not.
        is_link = headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") == "cross-site" and not is_link:
            return "Requests of other sites are refused."
        return ""

    def _is_own(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        if name in (*LOOPBACK, self.host, *self.names):
            return True
        if self.host in ("127.0.0.1", "localhost", "::1"):
            return False
        try:  # a numerical address cannot be rebound, as a name can
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    async def _welcome(
        self, scope: Scope, send: Send, query: dict[str, list[str]], cookies: dict[str, str]
    ) -> None:
        """Set the cookies and lead to the address without the token."""
        rest = urlencode(query, doseq=True)
        cookie = "HttpOnly; SameSite=Strict; Path=/"
        person = cookies.get(self.person_cookie) or secrets.token_hex(6)
        headers = [
            (b"location", (scope["path"] + ("?" + rest if rest else "")).encode()),
            (b"set-cookie", f"{self.cookie}={self.token}; {cookie}".encode()),
            (b"set-cookie", f"{self.person_cookie}={person}; Max-Age=31536000; {cookie}".encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def cookie_names(port: int) -> tuple[str, str]:
    """Return the names of the cookies of a port: browsers share cookies between ports.

    >>> cookie_names(8765)
    ('everynode-8765', 'everynode-person')
    """
    return f"everynode-{port}", "everynode-person"


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _with_policy(send: Send) -> Send:
    """Add the content policy to an answer."""

    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", []),
                (b"content-security-policy", POLICY.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"referrer-policy", b"no-referrer"),
            ]
        await send(message)

    return wrapped


async def _refuse(scope: Scope, receive: Receive, send: Send, reason: str) -> None:
    """Answer with 403, or do not accept the websocket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": f"{reason}\n".encode()})
