"""Reads the bodies of requests to doors, which are larger than those of other routes, within limits.

Paths of doors that use this begin with one of `server.http.buffered_body.READ_BY_ROUTE`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from starlette.requests import Request

from runvitals.base.numbers import parse_integer
from runvitals.server.doors.recording import DoorRecorder
from runvitals.server.http.admission import InFlightRequest
from runvitals.server.http.request_body import BodyReader
from runvitals.server.ingest.decompression import decompress_in_turn

_MAX_LENGTH: Final = 1 << 62
_reader = lru_cache(maxsize=16)(BodyReader)


async def read_body(
    request: Request,
    recorder: DoorRecorder,
    in_flight: InFlightRequest,
    most_bytes: int | None = None,
    most_unpacked: int | None = None,
) -> bytes:
    """Return the body of a request, without its content encoding.

    Args:
        in_flight: what `DoorRecorder.in_flight` yields; it reserves the memory.
        most_bytes, most_unpacked: limits of the body as sent, and decompressed; default: those of ingest.

    Raises:
        HttpRejection: 400, 408, 413, 415, 429.
        ClientDisconnected: the connection ended.

    Example:
        >>> with recorder.in_flight() as in_flight:
        ...     body = await read_body(request, recorder, in_flight)
    """
    limits = recorder.limits
    reader = _reader(most_bytes or limits.body_bytes, limits.body_s)
    declared = request.headers.get("content-length")
    if declared is not None:
        length = parse_integer(declared.encode("latin-1"), _MAX_LENGTH)
        if length is not None:
            reader.check_length(length)
            in_flight.reserve(length)
    body = await reader.read(request.receive, in_flight.reserve)
    encoding = request.headers.get("content-encoding", "")
    if encoding.strip().lower() in ("", "identity"):
        return body
    most = most_unpacked or limits.message_bytes
    in_flight.reserve(len(body) + min(most, 20 * len(body)))
    data = await decompress_in_turn(body, encoding, most, limits.thread_bytes, recorder.decompressing)
    in_flight.reserve(len(body) + len(data))
    return data
