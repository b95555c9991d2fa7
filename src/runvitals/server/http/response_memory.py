"""A server-wide limit on the memory of responses that clients have not read yet.

A response stays in memory until its client has read it, so many clients that request large responses and do
not read them could use up all memory. Each connection has one response at a time, which is sent in blocks.
The total is limited: beyond it, a request is answered with 503 and Retry-After.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import anyio
import anyio.lowlevel
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.http.error_forms import error_response
from runvitals.server.http.workers import Busy

_KIB = 1 << 10
BLOCK_BYTES = 64 * _KIB
"""Responses up to this size are not counted. Longer ones are sent in blocks of this size."""
_SCOPE_KEY = "runvitals.response_memory"


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """How much memory responses may use, and how slowly clients may read them.

    Args:
        held_bytes: of all responses that are being sent. A single one may be larger if it is the only one.
        patience_s: how long in total a client may keep a long response waiting, in addition to the time that
            reading at `slowest_bytes_per_s` takes. After that, the connection is closed.
        slowest_bytes_per_s: the slowest rate at which a client may read.
    """

    held_bytes: int = 256 * _KIB * _KIB
    patience_s: float = 60.0
    slowest_bytes_per_s: int = 32 * _KIB


class ResponseMemory:
    """The bytes that responses hold. For use in the event loop's thread only."""

    def __init__(self, limits: ResponseLimits | None = None) -> None:
        self.limits = limits or ResponseLimits()
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """Take memory for a response.

        Raises:
            Busy: other responses hold too much.
        """
        if self.held_bytes and self.held_bytes + size > self.limits.held_bytes:
            raise Busy(
                f"responses that other clients are still reading take {self.held_bytes:,} of "
                f"{self.limits.held_bytes:,} bytes: try again later"
            )
        self.held_bytes += size

    def release(self, size: int) -> None:
        """Give memory back, in bytes."""
        self.held_bytes -= size


class _ClientTooSlow(Exception):
    """The client reads its response more slowly than the limit."""


class _SentResponse:
    """One response that is being sent."""

    def __init__(self, memory: ResponseMemory, send: Send, path: str) -> None:
        self._memory = memory
        self._send = send
        self._path = path
        self._start: Message | None = None
        self._sent_bytes = 0
        self._waited_s = 0.0
        self._rejected = False
        self.held_bytes = 0

    def hold(self, size: int) -> None:
        self._memory.take(size)
        self.held_bytes += size

    async def send(self, message: Message) -> None:
        """Send a message of the application.

        The head is held back until the body is known to be within the limit.
        """
        if self._rejected:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._start is not None:
            start, self._start = self._start, None
            if not more and len(body) > BLOCK_BYTES:
                try:
                    self.hold(len(body))
                except Busy as error:
                    self._rejected = True
                    await self._reject(str(error))
                    return
            await self._send(start)
        for first in range(0, len(body) or 1, BLOCK_BYTES):
            block = bytes(body[first : first + BLOCK_BYTES])
            is_last = first + BLOCK_BYTES >= len(body)
            await self._send_block({**message, "body": block, "more_body": more or not is_last})
            if not is_last:
                await anyio.lowlevel.checkpoint()  # compressing a block takes 2 ms: others have a turn

    async def _reject(self, reason: str) -> None:
        response = error_response(self._path, 503, reason, {"retry-after": "1"})
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )
        await self._send({"type": "http.response.body", "body": response.body})

    async def _send_block(self, message: Message) -> None:
        if not self.held_bytes:
            await self._send(message)
            return
        limits = self._memory.limits
        left_s = limits.patience_s + self._sent_bytes / limits.slowest_bytes_per_s - self._waited_s
        started_s = time.monotonic()
        with anyio.move_on_after(left_s) as scope:
            await self._send(message)
        if scope.cancelled_caught:
            raise _ClientTooSlow
        self._waited_s += time.monotonic() - started_s
        self._sent_bytes += len(message["body"])


class BoundedResponses:
    """Middleware that counts responses in a `ResponseMemory` and sends them in blocks."""

    def __init__(self, app: ASGIApp, memory: ResponseMemory) -> None:
        self._app = app
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, and count the bytes of its response that the client has not taken."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response = _SentResponse(self._memory, send, scope["path"])
        scope[_SCOPE_KEY] = response
        try:
            await self._app(scope, receive, response.send)
        except _ClientTooSlow:
            pass  # the response is incomplete, so the server closes the connection
        finally:
            self._memory.release(response.held_bytes)


def hold(request: Request, size: int) -> None:
    """Count memory that a response holds besides its body until it is sent, or raise Busy."""
    response: _SentResponse = request.scope[_SCOPE_KEY]
    response.hold(size)
