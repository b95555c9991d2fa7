"""`POST /v1/metrics` as a plain ASGI application, like ingest: thousands of points arrive in a request."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

import anyio
import anyio.to_thread
import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.server.doors.otlp import json_decoding, protobuf_decoding
from runvitals.server.doors.otlp.paths import METRICS
from runvitals.server.doors.otlp.receiver import OtlpReceiver
from runvitals.server.doors.otlp.responses import failure, http_status, success
from runvitals.server.doors.routing import NamedPlace
from runvitals.server.error_table import meaning_of
from runvitals.server.http.request_body import BodyReader, ClientDisconnected
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.ingest.decompression import decompress_in_turn

OTHER_SIGNALS: Final = tuple(
    f"{prefix}/{signal}"
    for prefix in ("/v1", "/otlp/v1", "/v1development", "/otlp/v1development")
    for signal in ("logs", "traces", "profiles")
)
_DECODING_THREADS: Final = 2
_DECODED_BYTES: Final = 8
"""Memory of a decoded message, in multiples of its size."""
_MAX_NAME: Final = 256
_PROTOBUF = (protobuf_decoding.CONTENT_TYPE, "application/protobuf", "application/vnd.google.protobuf")


class OtlpEndpoint:
    """The ASGI application.

    Args:
        receiver: stores what arrives.
    """

    def __init__(self, receiver: OtlpReceiver) -> None:
        self._receiver = receiver
        self._limits = receiver.recorder.limits
        self._body_reader = BodyReader(self._limits.body_bytes, self._limits.body_s)
        self._decoding = anyio.CapacityLimiter(_DECODING_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Store the metrics of a request, or respond with what is wrong."""
        try:
            if scope["path"] in OTHER_SIGNALS:
                signal = scope["path"].rpartition("/")[2]
                text = f"{signal} are not stored: send metrics only, to {METRICS[0]}"
                if signal == "traces":
                    text += "; and traces to a backend for them, such as Jaeger, Tempo or Langfuse"
                raise HttpRejection(501, text)
            if scope["path"] not in METRICS:
                raise HttpRejection(404, f"there is no {scope['path'][:200]}: send metrics to {METRICS[0]}")
            if scope["method"] != "POST":
                raise HttpRejection(405, f"{scope['method']} {scope['path']}: only POST is allowed")
            body = await self._receive(scope, receive)
        except HttpRejection as error:
            await _respond_error(send, error)
        except ClientDisconnected:
            pass
        else:
            await _respond(send, 200, body, _is_json(scope))

    async def _receive(self, scope: Scope, receive: Receive) -> bytes:
        """Store a request; returns the body of the response."""
        headers = dict(scope["headers"])
        encoding = headers.get(b"content-encoding", b"").decode("latin-1")
        length = _length(headers.get(b"content-length", b"0"))
        self._body_reader.check_length(length)
        with self._receiver.recorder.in_flight(length) as in_flight:
            body = await self._body_reader.read(receive, in_flight.reserve)
            as_json = _is_json(scope)
            decode = json_decoding.decode if as_json else protobuf_decoding.decode
            limits = self._limits
            data = await decompress_in_turn(
                body, encoding, limits.message_bytes, limits.thread_bytes, self._decoding
            )
            in_flight.reserve(_DECODED_BYTES * len(data))
            if len(data) <= self._limits.thread_bytes:
                resources = decode(data)
            else:
                resources = await anyio.to_thread.run_sync(decode, data, limiter=self._decoding)
            received = await self._receiver.receive(scope, resources, _sender(headers), len(body))
        return success(received, as_json)


class StatusBodies:
    """Middleware that gives errors, those of authentication too, the body that OTLP's senders read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Convert the body of a response that is an error."""
        head: Message | None = None
        body = b""

        async def convert(message: Message) -> None:
            nonlocal head, body
            if message["type"] == "http.response.start" and message["status"] >= 400:
                head = message
            elif head is None:
                await send(message)
            elif message["type"] == "http.response.body":
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    await _respond_status(scope, send, head, body)

        await self._app(scope, receive, convert)


async def _respond_status(scope: Scope, send: Send, head: Message, body: bytes) -> None:
    as_json = dict(scope["headers"]).get(b"content-type", b"").startswith(b"application/json")
    status: int = head["status"]
    try:
        why = str(msgspec.json.decode(body)["error"])
    except (msgspec.MsgspecError, TypeError, LookupError):
        why = body[:1000].decode("utf-8", "replace")
    headers = [
        (name, value) for name, value in head["headers"] if name not in (b"content-type", b"content-length")
    ]
    await _respond(send, http_status(status), failure(status, why, as_json), as_json, headers)


def _is_json(scope: Scope) -> bool:
    """Return whether the request is JSON; else it is protocol buffers.

    Raises:
        HttpRejection: 415: neither JSON nor protocol buffers.
    """
    sent = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    media_type = sent.partition(";")[0].strip().lower()
    if media_type in _PROTOBUF:
        return False
    if media_type == json_decoding.CONTENT_TYPE:
        return True
    expected = f"{protobuf_decoding.CONTENT_TYPE} or {json_decoding.CONTENT_TYPE}"
    raise HttpRejection(415, f"unknown Content-Type {sent!r}; expected {expected}")


def _sender(headers: dict[bytes, bytes]) -> NamedPlace:
    """Return the project that a sender names in headers; other characters than ASCII are percent-encoded."""
    entity, project = (
        unquote(headers.get(name, b"").decode("latin-1")).strip()[:_MAX_NAME] or None
        for name in (b"x-runvitals-entity", b"x-runvitals-project")
    )
    return NamedPlace(entity, project)


def _length(value: bytes) -> int:
    if not value.isdigit():
        raise HttpRejection(400, f"invalid Content-Length {value.decode('latin-1')!r}; expected a number")
    return int(value[:20])


async def _respond_error(send: Send, error: Exception) -> None:
    """Send what the error means, in our JSON, which `StatusBodies` converts as it does errors of access."""
    meaning = meaning_of(error)
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in meaning.headers.items()]
    if meaning.status == 405:
        headers.append((b"allow", b"POST"))
    if meaning.status == 408:  # the rest of the body may still arrive, where the next request would begin
        headers.append((b"connection", b"close"))
    await _respond(send, meaning.status, msgspec.json.encode({"error": meaning.text}), True, headers)


async def _respond(
    send: Send, status: int, body: bytes, as_json: bool, extra: list[tuple[bytes, bytes]] | None = None
) -> None:
    content_type = json_decoding.CONTENT_TYPE if as_json else protobuf_decoding.CONTENT_TYPE
    headers = [
        (b"content-type", content_type.encode("ascii")),
        (b"content-length", b"%d" % len(body)),
        *(extra or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
