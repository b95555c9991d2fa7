"""The bodies of OTLP's responses, in protocol buffers or JSON.

https://opentelemetry.io/docs/specs/otlp/#otlphttp-response
"""

from __future__ import annotations

from typing import Final

import msgspec

from runvitals.base.protobuf import text, uint
from runvitals.server.doors.otlp.receiver import Received

INVALID_ARGUMENT: Final = 3
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16
_CODES: Final = {
    401: UNAUTHENTICATED,
    403: PERMISSION_DENIED,
    404: UNIMPLEMENTED,
    405: UNIMPLEMENTED,
    408: UNAVAILABLE,
    413: INVALID_ARGUMENT,
    429: RESOURCE_EXHAUSTED,
    501: UNIMPLEMENTED,
    503: UNAVAILABLE,
}
_encode_json = msgspec.json.Encoder().encode


def grpc_code(status: int) -> int:
    """Return the code of gRPC for a status of HTTP.

    Example:
        >>> grpc_code(503), grpc_code(422), grpc_code(500)
        (14, 3, 13)
    """
    return _CODES.get(status, INVALID_ARGUMENT if status < 500 else INTERNAL)


def http_status(status: int) -> int:
    """Return the status for senders, which retry after 429 and 503 and drop the data after others.

    Example:
        >>> http_status(408), http_status(422), http_status(413)
        (503, 400, 413)
    """
    return {408: 503, 422: 400}.get(status, status)


def success(received: Received, as_json: bool) -> bytes:
    """Return an ExportMetricsServiceResponse."""
    if as_json:
        if not received.rejected:
            return b"{}"
        partial = {"rejectedDataPoints": str(received.rejected), "errorMessage": received.reason}
        return _encode_json({"partialSuccess": partial})
    if not received.rejected:
        return b""
    return text(1, uint(1, received.rejected) + text(2, received.reason))


def failure(status: int, why: str, as_json: bool) -> bytes:
    """Return a google.rpc.Status."""
    code = grpc_code(status)
    if as_json:
        return _encode_json({"code": code, "message": why})
    return uint(1, code) + text(2, why)
