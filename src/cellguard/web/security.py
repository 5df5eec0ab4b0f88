"""Who may talk to the server, and what every answer says: loopback, a token, one origin, nothing kept.

The server is reached by this machine only, and still not by every program or page on it: a page from elsewhere
that the same browser shows may send requests here (cross-site), or pretend that its own name is this machine
(DNS rebinding). So the Host is checked, the Origin is checked, and a secret is asked for.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from cellguard.exceptions import place_of_exception

__all__ = ["HEADERS", "TOO_LARGE", "Guard", "Keys", "TooLargeError"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 4 << 20
"""Bytes of a request that is no upload: a job file with a large hierarchy drawn by hand is far below."""
TOO_LARGE = "The file is larger than this server takes."
_SAFE = ("GET", "HEAD")

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""What every answer says, unless it says something stricter of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The secrets of one run of the server."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """In the link that opens the page; scripts send it as ``Authorization: Bearer``."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """In the cookie: whoever reads the address of a page learns nothing."""

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers send cookies to every port of a machine."""
        return f"cellguard-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser may call this server."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def opens(self, token: str) -> bool:
        """Say whether a token is the one of the link."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Say whether a request carries a secret."""
        return self.by_token(headers) or self._by_cookie(headers)

    def by_token(self, headers: Mapping[str, str]) -> bool:
        """Say whether a request carries the token itself, as scripts do and browsers never do by themselves."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.opens(token.strip())

    def _by_cookie(self, headers: Mapping[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.session.encode())


class TooLargeError(Exception):
    """A request that is larger than it may be."""


class Guard:
    """Stands before the application: lets nobody in who is not this user at this machine.

    Parameters
    ----------
    app
        The application.
    keys
        What a request must know.
    max_upload
        Bytes of an uploaded file.
    """

    def __init__(self, app: Any, keys: Keys, *, max_upload: int) -> None:
        self.app, self.keys, self.max_upload = app, keys, max_upload

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _send_http_answer(send, *refused)
            return
        await self._let_in(scope, receive, send)

    def _refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Say why a request is refused, if it is."""
        if headers.get("host") not in self.keys.hosts:
            return 421, "This server answers to 127.0.0.1 and localhost only."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        ours = f"http://{headers['host']}"
        if origin is not None and origin != ours:
            return 403, "Requests from another page are refused."
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "Requests from another page are refused."
        if scope["path"] == "/enter" and scope["method"] in _SAFE:
            return None  # checks the token itself
        if not self.keys.knows(headers):
            return 401, "Open the link that `cellguard serve` printed: it holds the token of this session."
        if scope["method"] not in _SAFE and origin is None and not self.keys.by_token(headers):
            return 403, "A browser says where a change comes from; this request does not."
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > self._limit(scope):
            return 413, TOO_LARGE
        return None

    def _limit(self, scope: Mapping[str, Any]) -> int:
        return self.max_upload if scope["method"] == "PUT" and "/files/" in scope["path"] else MAX_BODY

    async def _let_in(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        limit, seen, started = self._limit(scope), 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise TooLargeError
            return message

        async def marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name.decode("latin-1").lower() for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n not in own]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        try:
            await self.app(scope, counted, marked)
        except Exception as error:  # noqa: BLE001 - the application has answered; no traceback and no value in a log
            if not started:
                await _send_http_answer(send, 500, f"internal error: {place_of_exception(error)}")


async def _send_http_answer(send: Send, status: int, text: str) -> None:
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8"}
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
    }
    await send(start)
    await send({"type": "http.response.body", "body": (text + "\n").encode()})
