"""`POST /api/v1/ingest` as a bare ASGI application: no framework, because it answers thousands a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec
from starlette.types import Receive, Scope, Send

from runvitals.server.ingest.admission import Admission, Visit
from runvitals.server.ingest.decompression import unpacked
from runvitals.server.ingest.envelope import Ack, decoded
from runvitals.server.ingest.errors import Refused, malformed
from runvitals.server.ingest.limits import Limits
from runvitals.server.ingest.recorder import Recorder
from runvitals.server.ingest.request_body import Bodies, ClientLeft
from runvitals.server.ingest.validation import Prepared

PATH = "/api/v1/ingest"
_LONG_BODIES_AT_ONCE = 2
_encode = msgspec.json.Encoder().encode


class SelfMetrics(Protocol):
    """Who counts what is taken in."""

    def ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        """A request was acknowledged, so long after it came."""

    def refused(self, status: int) -> None:
        """A request was not taken in."""


class Ingest:
    """The endpoint.

    Args:
        recorder: takes envelopes in.
        tally: is told of each request.
    """

    def __init__(self, recorder: Recorder, limits: Limits, tally: SelfMetrics) -> None:
        self.admission = Admission(limits)
        self._recorder = recorder
        self._limits = limits
        self._tally = tally
        self._bodies = Bodies(limits.body_bytes, limits.body_s)
        self._decoding = anyio.CapacityLimiter(_LONG_BODIES_AT_ONCE)

    def post(
        self, headers: Iterable[tuple[bytes, bytes]], body: bytes, done: Callable[[bytes | None], None]
    ) -> bool:
        """Take in a request that says nothing new but samples, without a task of its own.

        Args:
            done: is told the answer once all is durable; None where it was not stored, and is to be sent the
                other way.

        Returns:
            False where it is to be sent the other way at once.
        """
        began_s = time.monotonic()
        limits, size = self._limits, len(body)
        if size > limits.body_bytes or self.admission.requests >= limits.requests_in_flight:
            return False
        try:
            content_type, encoding, _ = _headers(headers)
            small = limits.thread_bytes
            prepared, is_list = self._prepared(body, content_type, encoding, small, small)
            points, held = _extent(prepared)
            visit = self.admission.enter()
        except Refused:
            return False

        def settle(acks: list[Ack] | None) -> None:
            visit.leave()
            if acks is None:
                done(None)
                return
            self._tally.ingested(len(prepared), points, size, time.monotonic() - began_s)
            done(_encode({"acks": acks}) if is_list else _encode(acks[0]))

        try:
            visit.hold(size + held)
            recorded = self._recorder.record_samples(prepared, settle)
        except Refused:
            recorded = False
        if not recorded:
            visit.leave()
        return recorded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if scope["method"] != "POST":
                raise Refused(405, f"{scope['method']} {PATH}: only POST is allowed")
            visit = self.admission.enter()
            try:
                answer = await self._take_in(scope, receive, visit)
            finally:
                visit.leave()
        except Refused as error:
            self._tally.refused(error.status)
            await _refuse(send, error)
        except ClientLeft:
            self._tally.refused(499)
        else:
            await _answer(send, 200, answer)

    async def _take_in(self, scope: Scope, receive: Receive, visit: Visit) -> bytes:
        """The answer to a request, once its envelopes are durable."""
        began_s = time.monotonic()
        content_type, encoding, length = _headers(scope["headers"])
        self._bodies.check_length(length)
        visit.hold(length)
        body = await self._bodies.read(receive, visit.hold)
        size = len(body)
        prepared, is_list = await self._understood(body, content_type, encoding)
        points, held = _extent(prepared)
        visit.hold(size + held)
        acks = await self._recorder.record(prepared)
        self._tally.ingested(len(prepared), points, size, time.monotonic() - began_s)
        return _encode({"acks": acks}) if is_list else _encode(acks[0])

    async def _understood(self, body: bytes, content_type: str, encoding: str) -> tuple[list[Prepared], bool]:
        """The envelopes of a body, whether it was a list. In a thread where they are large once unpacked."""
        limits, small = self._limits, self._limits.thread_bytes
        if len(body) <= small:
            try:
                return self._prepared(body, content_type, encoding, small, small)
            except Refused as error:
                if error.status != 413:
                    raise
        return await anyio.to_thread.run_sync(
            self._prepared,
            body,
            content_type,
            encoding,
            limits.message_bytes,
            limits.unpacked_bytes,
            limiter=self._decoding,
        )

    def _prepared(
        self, body: bytes, content_type: str, encoding: str, message_bytes: int, unpacked_bytes: int
    ) -> tuple[list[Prepared], bool]:
        """
        Raises:
            Refused: 413 for what has more bytes without its encoding than `message_bytes`, or more times and
                values than `unpacked_bytes`; other statuses for other faults.
        """
        data = unpacked(body, encoding, message_bytes) if encoding else body
        envelopes, is_list = decoded(data, content_type, self._limits)
        try:
            return self._recorder.prepared(envelopes, unpacked_bytes), is_list
        except Refused as error:
            if not is_list:
                error.index = None
            raise


def _headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str, int]:
    """Content-Type, Content-Encoding and Content-Length (0 where it is not known)."""
    content_type = encoding = ""
    length = 0
    for name, value in headers:
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"content-encoding":
            encoding = value.decode("latin-1")
        elif name == b"content-length":
            if not value.isdigit():
                raise malformed(f"Content-Length {value.decode('latin-1')!r} is no number")
            length = int(value[:20])
    return content_type, encoding, length


def _extent(prepared: Sequence[Prepared]) -> tuple[int, int]:
    """How many points there are, and how many bytes their arrays take."""
    points = rows = 0
    for one in prepared:
        if one.columns is not None:
            points += one.columns.values.size
            rows += len(one.columns.t)
    return points, 8 * (points + rows)


async def _refuse(send: Send, error: Refused) -> None:
    said: dict[str, object] = {"error": error.text}
    if error.index is not None:
        said = {"error": f"envelope {error.index}: {error.text}", "index": error.index}
    extra = []
    if error.retry_after_s is not None:
        extra.append((b"retry-after", str(error.retry_after_s).encode("ascii")))
    if error.status == 405:
        extra.append((b"allow", b"POST"))
    if error.status == 408:  # who knows whether the rest will come
        extra.append((b"connection", b"close"))
    await _answer(send, error.status, _encode(said), extra)


async def _answer(send: Send, status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
