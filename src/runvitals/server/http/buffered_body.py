"""Reads the whole body of requests other than ingest before the application runs, within a size and a
time.
"""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runvitals.model.numbers import parse_integer
from runvitals.server.ingest.admission import Admission
from runvitals.server.ingest.errors import RequestRejected
from runvitals.server.ingest.limits import MIB, Limits
from runvitals.server.ingest.request_body import BodyReader, ClientDisconnected

BODY_BYTES = MIB
"""The longest body of any call but that which takes in samples; notes of a run are the longest there is."""
_MOST_TOLD = 1 << 62
_LIMITS = Limits(requests_in_flight=256, bytes_in_flight=64 * MIB)


class BufferedBodies:
    """Reads the body of each request, so that nothing behind it need know of sizes and slow clients.

    Args:
        most_bytes: a longer body is refused, 413, before it is read where its length is declared.
        most_s: so is one that takes longer to arrive, 408.
    """

    def __init__(self, app: ASGIApp, most_bytes: int = BODY_BYTES, most_s: float = _LIMITS.body_s) -> None:
        self._app = app
        self._body_reader = BodyReader(most_bytes, most_s)
        self._admission = Admission(_LIMITS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = _declared_length(scope) if scope["type"] == "http" else 0
        if length == 0:
            await self._app(scope, receive, send)
            return
        try:
            in_flight = self._admission.admit()
            try:
                if length is not None:
                    self._body_reader.check_length(length)
                    in_flight.reserve(length)
                body = await self._body_reader.read(receive, in_flight.reserve)
                await self._app(scope, _replayed(body, receive), send)
            finally:
                in_flight.release()
        except RequestRejected as error:
            await refusal(error)(scope, receive, send)
        except ClientDisconnected:
            pass


def _declared_length(scope: Scope) -> int | None:
    """How many bytes a request says that it has; None where it does not say."""
    length: int | None = 0
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = parse_integer(value, _MOST_TOLD)
        elif name == b"transfer-encoding":
            return None
    return length


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body, and then what comes on the connection."""
    first: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal first
        if first is not None:
            message, first = first, None
            return message
        return await receive()

    return replay


def refusal(error: RequestRejected) -> JSONResponse:
    """A refusal as an answer. After one that came too slowly a connection is not used again."""
    headers = {"connection": "close"} if error.status == 408 else {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    return JSONResponse({"error": error.text}, error.status, headers)
