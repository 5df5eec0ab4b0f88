"""Access control of the server and its security headers: loopback only, a token, one origin, no caching.

Only this machine can reach the server, but not every program or page on it may use it: a page of another site
in the same browser may send requests here (cross-site), or pretend that its own name is this machine
(DNS rebinding). So the guard checks the Host and the Origin, and requires a secret.
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
"""Size limit in bytes of a request other than an upload: a job file with a large hierarchy is far smaller."""
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
"""Headers of every answer, unless the answer sets stricter ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The secrets of one run of the server."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Secret in the link that opens the page; scripts send it as ``Authorization: Bearer``."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Secret in the cookie, so that the address of a page reveals nothing."""

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers send cookies to every port of a machine."""
        return f"cellguard-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names by which a browser may address this server."""
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}")

    def accepts_token(self, token: str) -> bool:
        """Return whether a token is the one in the link."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def is_authorized(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request carries a secret."""
        return self.has_token(headers) or self._has_cookie(headers)

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request carries the token itself, which scripts send and browsers never add on their own."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self.accepts_token(token.strip())

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self.session.encode())


class TooLargeError(Exception):
    """A request exceeds its size limit."""


class Guard:
    """Middleware that admits only this user at this machine.

    Parameters
    ----------
    app
        The application.
    keys
        The secrets that a request must carry.
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
        refused = self._explain_refusal(scope, headers)
        if refused is not None:
            await _send_http_answer(send, *refused)
            return
        await self._set_cookie(scope, receive, send)

    def _explain_refusal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[int, str] | None:
        """Return why a request is refused; None if it is not."""
        if headers.get("host") not in self.keys.hosts:
            return 421, "This server answers to 127.0.0.1 and localhost only."
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        ours = f"http://{headers['host']}"
        if origin is not None and origin != ours:
            return 403, "Requests from another page are refused."
        if site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "Requests from another page are refused."
        if scope["path"] in ("/enter", "/health") and scope["method"] in _SAFE:
            return None  # the one checks the token itself, the other says only that the server runs
        if not self.keys.is_authorized(headers):
            return 401, "Open the link that `cellguard serve` printed: it holds the token of this session."
        if scope["method"] not in _SAFE and origin is None and not self.keys.has_token(headers):
            return 403, "A browser says where a change comes from; this request does not."
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > self._limit(scope):
            return 413, TOO_LARGE
        return None

    def _limit(self, scope: Mapping[str, Any]) -> int:
        return self.max_upload if scope["method"] == "PUT" and "/files/" in scope["path"] else MAX_BODY

    async def _set_cookie(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        limit, seen, started = self._limit(scope), 0, False

        async def count_received() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise TooLargeError
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name.decode("latin-1").lower() for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n not in own]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        try:
            await self.app(scope, count_received, send_with_headers)
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
