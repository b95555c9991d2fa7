"""The client of destinations: headers of responses, and servers that do not speak HTTP properly."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from email.message import Message
from email.utils import formatdate

import pytest

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.relay.engine.delivery_thread import backoff


def _response(**headers: str) -> ServerResponse:
    message = Message()
    for name, text in headers.items():
        message[name.replace("_", "-")] = text
    return ServerResponse(503, message, b"")


_EARLY, _LATE = "Thu, 01 Jan 0001 00:00:00", "Fri, 31 Dec 9999 23:59:59"
_NONE = ["nan", "inf", "-inf", "-5", "1e400", "9" * 5000, "soon", "", "Mon, 32 Foo 2026", f"{_EARLY} GMT"]


@pytest.mark.parametrize("text", _NONE)
def test_invalid_retry_after_is_ignored(text: str) -> None:
    after_s = _response(Retry_After=text).retry_after_s
    assert after_s is None or after_s == 0.0
    assert backoff().note_failure(0.0, after_s) >= 1.0


def test_retry_after_in_seconds_or_as_a_date() -> None:
    assert _response(Retry_After="7").retry_after_s == 7.0
    after_s = _response(Retry_After=formatdate(time.time() + 100, usegmt=True)).retry_after_s
    assert after_s is not None
    assert 90 < after_s <= 100
    late_s = _response(Retry_After=f"{_LATE} GMT").retry_after_s
    assert backoff().note_failure(0.0, late_s) <= 3600 * 1.5


@pytest.mark.parametrize(
    "text", ["", "nan", "Thu, 01 Jan 0001 00:00:00 -2359", "Fri, 31 Dec 9999 23:59:59 -2359"]
)
def test_invalid_date_header(text: str) -> None:
    date_ms = _response(Date=text).date_ms
    assert date_ms is None or abs(date_ms) < 1 << 60


Serve = Callable[[bytes, bytes], str]
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers that answer every request with some bytes, then repeat others without end."""
    listeners: list[socket.socket] = []

    def answer(listener: socket.socket, first: bytes, repeated: bytes) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(first)
                    while repeated:
                        connection.sendall(repeated)

    def start(first: bytes, repeated: bytes = b"") -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=answer, args=(listener, first, repeated), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize(
    ("first", "repeated"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (_CHUNKED, b"1;" + b"x" * 1000 + b"\r\na\r\n"),
        (_CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
    ],
    ids=["interim responses", "a body in small pieces", "trailers"],
)
def test_a_response_without_end(serve: Serve, first: bytes, repeated: bytes) -> None:
    client = HttpClient(serve(first, repeated), timeout_s=0.1)
    with pytest.raises(ConnectionError, match=r"took longer than 1 s|timed out|invalid HTTP"):
        client.post("/", b"{}", {})
    client.close()


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        _CHUNKED + b"-5\r\nabc\r\n",
        _CHUNKED + b"f" * 40 + b"\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
        b"nonsense",
    ],
)
def test_an_invalid_response_is_a_failed_connection(serve: Serve, response: bytes) -> None:
    client = HttpClient(serve(response, b""))
    for _ in range(2):  # the rest of an invalid response is not taken for the next one
        with pytest.raises(ConnectionError, match="could not reach http://127"):
            client.post("/", b"{}", {})


def test_a_connection_is_used_again_with_its_whole_timeout(serve: Serve) -> None:
    client = HttpClient(serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b""))
    assert [client.post("/", b"{}", {}).body for _ in range(3)] == [b"{}"] * 3
    client.close()


def test_a_client_that_nobody_closed_is_reported_where_it_was_dropped(serve: Serve) -> None:
    """Not later, by the garbage collector."""
    client = HttpClient(serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b""))
    client.post("/", b"{}", {})
    with pytest.warns(ResourceWarning, match=r"unclosed <socket"):
        del client
