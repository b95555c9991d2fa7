"""Requests without TLS that the proxy for buckets passes on."""

from __future__ import annotations

import pytest

from runvitals.server.outbound.forward_proxy import _PlainRequests

TWO = (
    b"PUT http://s3.example:9000/b/k%2F?x=http://y/ HTTP/1.1\r\nHost: s3.example:9000\r\n"
    b"Proxy-Authorization: Basic c2VjcmV0\r\nContent-Length: 8\r\n\r\n"
    b"\r\n\r\nGET "
    b"GET http://s3.example:9000/ HTTP/1.1\r\nProxy-Connection: x\r\n\r\n"
)
SENT = (
    b"PUT /b/k%2F?x=http://y/ HTTP/1.1\r\nHost: s3.example:9000\r\nContent-Length: 8\r\n\r\n"
    b"\r\n\r\nGET "
    b"GET / HTTP/1.1\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_the_server_gets_what_is_meant_for_it(size: int) -> None:
    requests = _PlainRequests(b"s3.example:9000")
    pieces = [TWO[start : start + size] for start in range(0, len(TWO), size)]
    assert b"".join(map(requests.next_bytes, pieces)) == SENT


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET http://s3.example:9000.evil.example/ HTTP/1.1\r\n\r\n",
        b"GET /latest/meta-data HTTP/1.1\r\n\r\n",
        b"PUT http://s3.example:9000/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT http://s3.example:9000/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        b"x" * 9000,
    ],
)
def test_other_requests_end_the_connection(request_bytes: bytes) -> None:
    with pytest.raises(OSError, match="request"):
        _PlainRequests(b"s3.example:9000").next_bytes(request_bytes)
