"""`POST /api/v1/ingest` as a plain ASGI application.

A framework would cost too much at thousands of requests a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec
from starlette.types import Receive, Scope, Send

from runvitals.server.http.admission import Admission, InFlightRequest
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_body import BodyReader, ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection, malformed
from runvitals.server.ingest.decompression import decompress
from runvitals.server.ingest.envelope import Ack, decode_envelopes
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.ingest.sender_rights import IngestRights, IngestRightsSource, WithoutAccounts
from runvitals.server.ingest.validation import ValidEnvelope

PATH = "/api/v1/ingest"
_DECODING_THREADS = 2
_encode = msgspec.json.Encoder().encode


class IngestCounters(Protocol):
    """Counts what the endpoint accepts and rejects."""

    def count_ingested(self, envelopes: int, points: int, body_bytes: int, seconds: float) -> None:
        """A request was acknowledged, `seconds` after it arrived."""

    def count_rejected(self, status: int) -> None:
        """A request was rejected."""


class IngestEndpoint:
    """The ASGI application.

    Args:
        recorder: validates and stores the envelopes.
        counters: count the requests.
        access: knows what each request may send.
    """

    def __init__(
        self,
        recorder: Recorder,
        limits: Limits,
        counters: IngestCounters,
        access: IngestRightsSource | None = None,
    ) -> None:
        self._access: IngestRightsSource = access or WithoutAccounts()
        self.admission = Admission(limits)
        self._recorder = recorder
        self._limits = limits
        self._counters = counters
        self._body_reader = BodyReader(limits.body_bytes, limits.body_s)
        self._decoding = anyio.CapacityLimiter(_DECODING_THREADS)

    def post(
        self, headers: Iterable[tuple[bytes, bytes]], body: bytes, on_done: Callable[[bytes | None], None]
    ) -> bool:
        """Ingest a request that has only samples of registered writers, without starting a task.

        Args:
            on_done: called with the response body once everything is durable; or with None if nothing was
                stored, and the request is to be passed to the ASGI application.

        Returns:
            False if the request is to be passed to the ASGI application; `on_done` is not called then.
        """
        started_s = time.monotonic()
        limits, size = self._limits, len(body)
        access = self._access.known(headers)
        if access is None or size > limits.body_bytes or self.admission.requests >= limits.requests_in_flight:
            return False
        try:
            content_type, encoding, _ = _headers(headers)
            small = limits.thread_bytes
            envelopes, is_list = self._decode_within(body, access, content_type, encoding, small, small)
            points, array_bytes = _extent(envelopes)
            in_flight = self.admission.admit()
        except HttpRejection:
            return False

        def settle(acks: list[Ack] | None) -> None:
            in_flight.release()
            if acks is None:
                on_done(None)
                return
            self._counters.count_ingested(len(envelopes), points, size, time.monotonic() - started_s)
            on_done(_encode({"acks": acks}) if is_list else _encode(acks[0]))

        try:
            in_flight.reserve(size + array_bytes)
            recorded = self._recorder.record_samples(envelopes, access, settle)
        except HttpRejection:
            recorded = False
        if not recorded:
            in_flight.release()
        return recorded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an ingest request, and count it if it is rejected."""
        try:
            if scope["method"] != "POST":
                raise HttpRejection(405, f"{scope['method']} {PATH}: only POST is allowed")
            in_flight = self.admission.admit()
            try:
                response = await self._ingest(scope, receive, in_flight)
            finally:
                in_flight.release()
        except HttpRejection as error:
            self._counters.count_rejected(error.status)
            await _respond_rejected(send, error)
        except ClientDisconnected:
            self._counters.count_rejected(499)
        else:
            await _respond(send, 200, response)

    async def _ingest(self, scope: Scope, receive: Receive, in_flight: InFlightRequest) -> bytes:
        """The response to a request, once its envelopes are durable."""
        started_s = time.monotonic()
        access = self._access.of_request(scope)
        content_type, encoding, length = _headers(scope["headers"])
        self._body_reader.check_length(length)
        in_flight.reserve(length)
        body = await self._body_reader.read(receive, in_flight.reserve)
        size = len(body)
        envelopes, is_list = await self._decode(body, access, content_type, encoding)
        points, array_bytes = _extent(envelopes)
        in_flight.reserve(size + array_bytes)
        try:
            acks = await self._recorder.record(envelopes, access)
        except HttpRejection as error:
            if not is_list:
                error.index = None
            raise
        self._counters.count_ingested(len(envelopes), points, size, time.monotonic() - started_s)
        return _encode({"acks": acks}) if is_list else _encode(acks[0])

    async def _decode(
        self, body: bytes, access: IngestRights, content_type: str, encoding: str
    ) -> tuple[list[ValidEnvelope], bool]:
        """The envelopes of a body, and whether it was a list. Large ones are decoded in a thread."""
        limits, small = self._limits, self._limits.thread_bytes
        if len(body) <= small:
            try:
                return self._decode_within(body, access, content_type, encoding, small, small)
            except HttpRejection as error:
                if error.status != 413:
                    raise
        return await anyio.to_thread.run_sync(
            self._decode_within,
            body,
            access,
            content_type,
            encoding,
            limits.message_bytes,
            limits.unpacked_bytes,
            limiter=self._decoding,
        )

    def _decode_within(
        self,
        body: bytes,
        access: IngestRights,
        content_type: str,
        encoding: str,
        message_bytes: int,
        unpacked_bytes: int,
    ) -> tuple[list[ValidEnvelope], bool]:
        """The envelopes of a body, validated, and whether it was a list.

        Raises:
            HttpRejection: 413 for more than `message_bytes` after decompression, or for times and values of
                more than `unpacked_bytes`; another status for an invalid request.
        """
        data = decompress(body, encoding, message_bytes) if encoding else body
        envelopes, is_list = decode_envelopes(data, content_type, self._limits)
        try:
            return self._recorder.validate(envelopes, access, unpacked_bytes), is_list
        except HttpRejection as error:
            if not is_list:
                error.index = None
            raise


def _headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str, int]:
    """Content-Type, Content-Encoding and Content-Length (0 if unknown)."""
    content_type = encoding = ""
    length = 0
    for name, value in headers:
        if name == b"content-type":
            content_type = value.decode("latin-1")
        elif name == b"content-encoding":
            encoding = value.decode("latin-1")
        elif name == b"content-length":
            if not value.isdigit():
                raise malformed(f"invalid Content-Length {value.decode('latin-1')!r}; expected a number")
            length = int(value[:20])
    return content_type, encoding, length


def _extent(envelopes: Sequence[ValidEnvelope]) -> tuple[int, int]:
    """The number of points, and the bytes of their arrays."""
    points = rows = 0
    for valid in envelopes:
        if valid.columns is not None:
            points += valid.columns.values.size
            rows += len(valid.columns.t)
    return points, 8 * (points + rows)


async def _respond_rejected(send: Send, error: HttpRejection) -> None:
    body: dict[str, object] = {"error": error.text}
    if error.index is not None:
        body = {"error": f"envelope {error.index}: {error.text}", "index": error.index}
    headers = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(error.retry_after_s).encode("ascii")))
    if error.status == 405:
        headers.append((b"allow", b"POST"))
    if error.status == 408:  # the rest of the body may still arrive, where the next request would begin
        headers.append((b"connection", b"close"))
    await _respond(send, error.status, _encode(body), headers)


async def _respond(send: Send, status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]] = ()) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
