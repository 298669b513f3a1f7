"""What every request passes first: its Host and Origin, and a bound on the bytes and the time of its body.

A page of another site can send requests to a server on this machine, and a name can be made to point here (DNS
rebinding). So the Host must be this machine, and an Origin, where there is one, must be the Host.
"""

import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 8 * 2**20
"""Largest body of a request."""
MOST_HEADERS = 2**14
"""Largest sum of all headers."""
READ_SECONDS = 10.0
"""Time in which a body has to arrive."""
AT_ONCE, WAITING = 4, 96
"""Bodies that are held at once, and requests that may wait for their turn."""
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; style-src 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """ASGI middleware: refuses foreign hosts and origins, and adds the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app, self.open = app, host not in ("127.0.0.1", "localhost", "::1")
        self.names = {"127.0.0.1", "localhost", "[::1]", host.lower()}
        if self.open:
            self.names.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        answer = self.app
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            answer = JSONResponse({"error": f"headers may have {MOST_HEADERS} bytes"}, 431)
        elif len(hosts) != 1 or not self.known(hosts[0]):
            answer = JSONResponse({"error": "this server answers to its own address only"}, 421)
        elif any(origin.split("://")[-1] != hosts[0] for origin in origins):
            answer = JSONResponse({"error": "requests from pages of other sites are refused"}, 403)
        await answer(scope, receive, send_with_headers)

    def known(self, host: str) -> bool:
        """Whether a Host header names this machine; on an open address any numeric one does."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and ":" in host else host
        if name.lower() in self.names:
            return True
        try:
            return self.open and bool(ipaddress.ip_address(name.strip("[]")))
        except ValueError:
            return False


class Turns:
    """Bodies that are held in memory at once, and a queue of bounded length before them."""

    def __init__(self) -> None:
        self._free, self._waiting = anyio.Semaphore(AT_ONCE), 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request, while it is this request's turn."""
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > MOST_BYTES:
            raise HTTPException(413, f"a body may have {MOST_BYTES} bytes, got {declared[:20]}")
        if self._waiting >= WAITING:
            raise HTTPException(503, "too many requests at once; try again in a second")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield await _read(request)
        finally:
            self._free.release()


async def _read(request: Request) -> bytes:
    parts, size = [], 0
    try:
        with anyio.fail_after(READ_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise HTTPException(413, f"a body may have {MOST_BYTES} bytes, got more")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body has to arrive within {READ_SECONDS:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None
    return b"".join(parts)
