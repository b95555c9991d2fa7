"""A response that has begun when its requester loses the right to it."""

from __future__ import annotations

import anyio
import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from runvitals.server.access.enforcement import long_request
from runvitals.server.access.enforcement.long_request import LongRequest


@pytest.mark.parametrize(
    ("content_type", "last"),
    [
        (b"text/event-stream", [b'event: unauthorised\ndata: {"status": 401}\n\n']),
        (b"text/csv", []),  # without an end: the server closes the connection, and the client notices
    ],
)
def test_a_file_that_is_cut_does_not_look_whole(
    monkeypatch: pytest.MonkeyPatch, content_type: bytes, last: list[bytes]
) -> None:
    monkeypatch.setattr(long_request, "RECHECK_S", 0)
    sent: list[Message] = []

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"a,b\n", "more_body": True})
        await anyio.sleep_forever()

    async def refuse() -> Response | None:
        return Response(status_code=401) if sent else None

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    anyio.run(LongRequest(refuse).run, endless, {"type": "http"}, receive, send)
    assert [message["body"] for message in sent[2:]] == last
