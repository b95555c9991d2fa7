"""A limit on the memory of answers that clients are slow to read, for the whole server.

An answer stays in memory until its client has read it, so many clients that ask for much and read nothing
could take all of it. Each connection has one answer at a time, and it is handed to the connection in blocks.
What all answers hold together is limited: beyond it a request is answered with 503 and Retry-After.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.workers import Busy

_KIB = 1 << 10
BLOCK_BYTES = 64 * _KIB
"""Answers up to this size are not counted. Longer ones are sent in blocks of it."""
_SCOPE_KEY = "runvitals.response_memory"


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """How much memory answers may hold and how slowly they may be read.

    Args:
        held_bytes: of all answers that are being sent. One answer may be larger when it is the only one.
        patience_s: a client may keep a long answer waiting for so long in total, and longer by
            `slowest_bytes_per_s` for what it has read. Then the connection is closed.
        slowest_bytes_per_s: the rate that is expected of a client.
    """

    held_bytes: int = 256 * _KIB * _KIB
    patience_s: float = 60.0
    slowest_bytes_per_s: int = 32 * _KIB


class ResponseMemory:
    """The bytes that answers hold. Used on the event loop only."""

    def __init__(self, limits: ResponseLimits | None = None) -> None:
        self.limits = limits or ResponseLimits()
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """
        Raises:
            Busy: other answers hold too much.
        """
        if self.held_bytes and self.held_bytes + size > self.limits.held_bytes:
            raise Busy(
                f"answers that other clients are still reading take {self.held_bytes:,} of "
                f"{self.limits.held_bytes:,} bytes: try again later"
            )
        self.held_bytes += size

    def release(self, size: int) -> None:
        self.held_bytes -= size


class _ClientTooSlow(Exception):
    """The client does not read its answer at the rate that is expected."""


class _SentResponse:
    """One answer on its way to a client."""

    def __init__(self, memory: ResponseMemory, send: Send) -> None:
        self._memory = memory
        self._send = send
        self._start: Message | None = None
        self._sent_bytes = 0
        self._waited_s = 0.0
        self._rejected = False
        self.held_bytes = 0

    def hold(self, size: int) -> None:
        self._memory.take(size)
        self.held_bytes += size

    async def send(self, message: Message) -> None:
        """Send a message of the application. The head waits for the body, which may have to be rejected."""
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

    async def _reject(self, reason: str) -> None:
        response = JSONResponse({"error": reason}, status_code=503, headers={"retry-after": "1"})
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
        began_s = time.monotonic()
        with anyio.move_on_after(left_s) as scope:
            await self._send(message)
        if scope.cancelled_caught:
            raise _ClientTooSlow
        self._waited_s += time.monotonic() - began_s
        self._sent_bytes += len(message["body"])


class BoundedResponses:
    """Middleware that counts answers in an `ResponseMemory` and sends them in blocks."""

    def __init__(self, app: ASGIApp, memory: ResponseMemory) -> None:
        self._app = app
        self._memory = memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _SentResponse(self._memory, send)
        scope[_SCOPE_KEY] = answer
        try:
            await self._app(scope, receive, answer.send)
        except _ClientTooSlow:
            pass  # the answer is incomplete, so the server closes the connection
        finally:
            self._memory.release(answer.held_bytes)


def hold(request: Request, size: int) -> None:
    """Count memory that an answer holds until it has been sent, beside its body.

    Raises:
        Busy: other answers hold too much.
    """
    answer: _SentResponse = request.scope[_SCOPE_KEY]
    answer.hold(size)
