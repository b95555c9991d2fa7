"""gRPC calls to grpcio's server, and to servers that send invalid responses."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.protobuf import text
from runvitals.monitoring.collectors.tpu import grpc as client
from runvitals.monitoring.collectors.tpu import hpack
from runvitals.monitoring.collectors.tpu.grpc import (
    GrpcConnection,
    GrpcError,
    GrpcRejected,
    NotListening,
    frame,
)
from tests.monitoring.collectors.tpu.messages import gauge, metric
from tests.monitoring.collectors.tpu.servers import FakeRuntime
from tests.patience import PATIENCE_S

GET = "/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric"


@pytest.fixture(scope="module")
def runtime() -> Iterator[FakeRuntime]:
    server = FakeRuntime({"a": [gauge({"device-id": 0}, 7)]})
    yield server
    server.stop()


def test_a_call(runtime: FakeRuntime) -> None:
    connection = GrpcConnection(runtime.port)
    assert connection.call(GET, text(1, "a")) == metric("a", runtime.readings["a"])
    connection.close()


def test_many_calls_on_one_connection(runtime: FakeRuntime) -> None:
    """More bytes than the initial flow-control windows of both sides."""
    runtime.readings["long"] = [gauge({"device-id": device}, device) for device in range(1000)]
    connection = GrpcConnection(runtime.port)
    expected = metric("long", runtime.readings["long"])
    assert len(expected) > 20_000
    for _ in range(20):
        assert connection.call(GET, text(1, "long")) == expected
    connection.close()


def test_a_message_of_megabytes(runtime: FakeRuntime) -> None:
    runtime.readings["huge"] = [gauge({"device-id": device}, device) for device in range(30_000)]
    connection = GrpcConnection(runtime.port, timeout_s=PATIENCE_S)
    assert connection.call(GET, text(1, "huge")) == metric("huge", runtime.readings["huge"])
    runtime.readings["huge"] *= 5
    with pytest.raises(GrpcError, match=r"more than 4194304 bytes"):
        connection.call(GET, text(1, "huge"))
    del runtime.readings["huge"]
    connection.close()


def test_an_error_status_keeps_the_connection(runtime: FakeRuntime) -> None:
    connection = GrpcConnection(runtime.port)
    with pytest.raises(GrpcRejected, match="gRPC status 5: no métric zzz") as refused:
        connection.call(GET, text(1, "zzz"))
    assert refused.value.status == client.NOT_FOUND
    with pytest.raises(GrpcRejected) as refused:
        connection.call("/no.such.Service/Method", b"")
    assert refused.value.status == client.UNIMPLEMENTED
    assert connection.call(GET, text(1, "a"))
    connection.close()


def test_a_server_that_restarts() -> None:
    first = FakeRuntime({"a": []})
    connection = GrpcConnection(first.port)
    assert connection.call(GET, text(1, "a")) == metric("a", [])
    first.stop()
    with pytest.raises(GrpcError):
        connection.call(GET, text(1, "a"))
    with pytest.raises(NotListening, match=f"port {first.port} is closed"):
        connection.call(GET, text(1, "a"))
    second = FakeRuntime({"a": []})
    connection.port = second.port
    assert connection.call(GET, text(1, "a")) == metric("a", [])
    connection.close()
    second.stop()


def test_a_call_that_takes_too_long(runtime: FakeRuntime) -> None:
    runtime.before = lambda: time.sleep(0.5)
    connection = GrpcConnection(runtime.port, timeout_s=0.1)
    # The server gets the deadline too, and may time out first.
    with pytest.raises((GrpcError, GrpcRejected), match=r"did not respond within 0\.1 s|gRPC status 4"):
        connection.call(GET, text(1, "a"))
    runtime.before = lambda: None
    connection.timeout_s = PATIENCE_S
    assert connection.call(GET, text(1, "a"))
    connection.close()


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_server_on_ipv6_only() -> None:
    server = FakeRuntime({"a": []}, address="[::1]:0")
    connection = GrpcConnection(server.port)
    assert connection.call(GET, text(1, "a")) == metric("a", [])
    connection.close()
    server.stop()


# -- invalid servers


class Scripted:
    """A server that reads some bytes and responds with given ones."""

    def __init__(self, answer: bytes, hold: bool = False) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._read_response = answer
        self._hold = threading.Event()
        if not hold:
            self._hold.set()
        self.heard = b""
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        stream, _ = self._socket.accept()
        with stream:
            self.heard = stream.recv(65536)
            stream.sendall(self._read_response)
            self._hold.wait(PATIENCE_S)
            stream.shutdown(socket.SHUT_WR)
            while more := stream.recv(65536):
                self.heard += more

    def end(self) -> None:
        self._hold.set()
        self._socket.close()
        self._thread.join()


def answer_of(response: bytes, hold: bool = False) -> bytes:
    server = Scripted(response, hold)
    connection = GrpcConnection(server.port, timeout_s=0.2 if hold else PATIENCE_S)
    try:
        return connection.call(GET, b"hello")
    finally:
        connection.close()
        server.end()


SETTINGS = frame(client.SETTINGS, 0, 0, b"")
HEAD = hpack.encode([(":status", "200"), ("content-type", "application/grpc")])
TAIL = hpack.encode([("grpc-status", "0")])
BODY = b"\0\0\0\0\x02hi"
ENDS = client.END_HEADERS | client.END_STREAM


def trailers(*headers: tuple[str, str]) -> bytes:
    block = hpack.encode([(":status", "200"), *headers])
    return SETTINGS + frame(client.HEADERS, ENDS, 1, block)


def test_all_frames_that_a_server_may_send() -> None:
    padded = bytes((3,)) + BODY[:4] + b"\0\0\0"
    prioritised = b"\0\0\0\0\x10" + HEAD[:10]
    response = (
        SETTINGS
        + frame(client.SETTINGS, client.ACK, 0, b"")
        + frame(client.PING, 0, 0, b"12345678")
        + frame(client.WINDOW_UPDATE, 0, 0, b"\0\0\1\0")
        + frame(client.WINDOW_UPDATE, 0, 1, b"\0\0\1\0")
        + frame(0x77, 0xFF, 0, b"of the future")
        + frame(client.PRIORITY, 0, 1, b"\0\0\0\0\x10")
        + frame(client.HEADERS, client.HAS_PRIORITY, 1, prioritised)
        + frame(client.CONTINUATION, client.END_HEADERS, 1, HEAD[10:])
        + frame(client.DATA, client.PADDED, 1, padded)
        + frame(client.DATA, 0, 1, BODY[4:])
        + frame(client.DATA, 0, 3, b"another stream's")
        + frame(client.GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0")
        + frame(client.HEADERS, ENDS, 1, TAIL)
    )
    assert answer_of(response) == b"hi"


def test_bytes_that_a_server_receives() -> None:
    server = Scripted(trailers(("grpc-status", "12")))
    connection = GrpcConnection(server.port, timeout_s=PATIENCE_S)
    with pytest.raises(GrpcRejected, match=r"gRPC status 12$"):
        connection.call(GET, b"hello")
    connection.close()
    server.end()
    heard = server.heard
    assert heard.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    types = []
    position = 24
    while position < len(heard):
        size, type = int.from_bytes(heard[position : position + 3], "big"), heard[position + 3]
        payload = heard[position + 9 : position + 9 + size]
        types.append(type)
        if type == client.HEADERS:
            headers = dict(hpack.HpackDecoder().decode(payload))
        position += 9 + size
    assert types[:4] == [client.SETTINGS, client.WINDOW_UPDATE, client.HEADERS, client.DATA]
    assert headers == {
        ":method": "POST",
        ":scheme": "http",
        ":path": GET,
        ":authority": f"localhost:{server.port}",
        "te": "trailers",
        "content-type": "application/grpc",
        "user-agent": "runvitals",
        "grpc-timeout": f"{PATIENCE_S * 1000:.0f}m",
    }


ANSWERS = {
    "HTTP/1": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "did not send HTTP/2"),
    "nothing": (b"", "closed the connection"),
    "half a frame": (SETTINGS[:5], "closed the connection"),
    "no settings": (frame(client.PING, 0, 0, b"12345678"), "did not send HTTP/2"),
    "a long frame": (SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1", "a frame of 16777215 bytes"),
    "a reset": (SETTINGS + frame(client.RST_STREAM, 0, 1, b"\0\0\0\x08"), "reset the stream with error 8"),
    "half a reset": (SETTINGS + frame(client.RST_STREAM, 0, 1, b"\0"), "incomplete frame"),
    "goes away": (
        SETTINGS + frame(client.GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x0b"),
        "closed the connection with error 11",
    ),
    "a push": (SETTINGS + frame(client.PUSH_PROMISE, 4, 1, b"\0\0\0\2"), "push promise"),
    "padding": (SETTINGS + frame(client.DATA, client.PADDED, 1, b"\x09abc"), "more padding"),
    "headers of rubbish": (
        SETTINGS + frame(client.HEADERS, ENDS, 1, b"\x80"),
        "sent invalid gRPC: invalid index 0",
    ),
    "headers without an end": (
        SETTINGS + frame(client.HEADERS, 0, 1, b"") + frame(client.PING, 0, 0, b"12345678"),
        "incomplete or too long header block",
    ),
    "another status": (
        SETTINGS + frame(client.HEADERS, ENDS, 1, hpack.encode([(":status", "404")])),
        "HTTP status '404'",
    ),
    "no status": (trailers(("content-type", "text/html")), "without a valid grpc-status"),
    "no message": (trailers(("grpc-status", "0")), "incomplete or compressed message"),
    "a packed message": (
        SETTINGS
        + frame(client.HEADERS, client.END_HEADERS, 1, HEAD)
        + frame(client.DATA, 0, 1, b"\1" + BODY[1:])
        + frame(client.HEADERS, ENDS, 1, TAIL),
        "incomplete or compressed message",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_invalid_responses(name: str) -> None:
    response, words = ANSWERS[name]
    with pytest.raises(GrpcError, match=words):
        answer_of(response)


def test_a_server_that_stops_responding() -> None:
    with pytest.raises(GrpcError, match=r"did not respond within 0\.2 s"):
        answer_of(SETTINGS, hold=True)


def test_a_badly_encoded_error_message() -> None:
    with pytest.raises(GrpcRejected, match="gRPC status 3: 100%zz é"):
        answer_of(trailers(("grpc-status", "3"), ("grpc-message", "100%zz %C3%A9")))


class Recorded(GrpcConnection):
    """A connection to a server whose bytes have all arrived."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(1)
        self._buffer = answer
        self._stream = 1

    def _exactly(self, size: int) -> bytes:
        if len(self._buffer) < size:
            raise GrpcError("closed the connection")
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def _send(self, data: bytes) -> None:
        assert data


@given(
    st.lists(
        st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 3), st.binary(max_size=40)),
        max_size=8,
    ),
    st.binary(max_size=20),
)
def test_any_frames_give_a_response_or_an_error(
    frames: list[tuple[int, int, int, bytes]], rest: bytes
) -> None:
    response = SETTINGS + b"".join(frame(*each) for each in frames) + rest
    try:
        result = Recorded(response)._read_response()
    except (GrpcError, GrpcRejected, hpack.HpackError):
        return
    assert isinstance(result, bytes)


def test_frames_are_encoded_as_in_the_rfc() -> None:
    assert (
        frame(client.PING, client.ACK, 0, b"12345678") == struct.pack(">HBBBI", 0, 8, 6, 1, 0) + b"12345678"
    )
