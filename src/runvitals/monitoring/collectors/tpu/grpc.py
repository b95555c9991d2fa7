"""A minimal gRPC client: one call at a time over unencrypted HTTP/2, for services on this host.

`grpcio` would cost the monitor 20 MB. A call blocks: make it in the thread of a `BackgroundReader`.
"""

from __future__ import annotations

import _socket
import struct
import time

from runvitals.monitoring.collectors.tpu.hpack import HpackDecoder, HpackError, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Frame types: RFC 9113, section 6.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
# Their flags; the first one means ACK for SETTINGS and PING.
END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x4, 0x8, 0x20
ACK = 0x1

_HOSTS = ("127.0.0.1", "::1")  # of this machine, in this order
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_ENABLE_PUSH, _INITIAL_WINDOW = 2, 4
_MAX_FRAME_LENGTH = 16384
_WINDOW = 65535
_MAX_MESSAGE = 4 << 20
# Above the largest message: a larger one is an error instead of a wait.
_STREAM_WINDOW = 2 * _MAX_MESSAGE
_MAX_BLOCK_LENGTH = 64 << 10
# Stream ids are odd 31-bit numbers. A connection that has used them up is replaced.
_LAST_STREAM = (1 << 31) - 1

# The gRPC statuses that are distinguished here.
OK, DEADLINE_EXCEEDED, NOT_FOUND, UNIMPLEMENTED = 0, 4, 5, 12


class GrpcError(Exception):
    """There is no valid response; the connection is closed."""


class NotListening(GrpcError):
    """The port is closed: the call failed without waiting."""


class GrpcRejected(Exception):
    """The server responded with an error status; the connection stays open.

    Args:
        status: the gRPC status code, such as `NOT_FOUND`.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"gRPC status {status}: {text}" if text else f"gRPC status {status}")
        self.status = status


class GrpcConnection:
    """A connection to a port of this host, opened by the first call and again after a failure.

    Args:
        port: the port of the service.
        timeout_s: for each call, including the connection.

    Example:
        >>> connection = GrpcConnection(8431)
        >>> connection.call("/tpu.monitoring.runtime.RuntimeMetricService/ListSupportedMetrics", b"")
        b'…'
    """

    def __init__(self, port: int, timeout_s: float = 2.0) -> None:
        self.port = port
        self.timeout_s = timeout_s
        self._socket: _socket.socket | None = None
        self._until_s = 0.0
        self._begin()

    def call(self, method: str, message: bytes) -> bytes:
        """Send a message and return the response.

        Raises:
            GrpcRejected: the service responded with an error status.
            NotListening: the port is closed.
            GrpcError: a timeout, or a response that is not gRPC.
        """
        self._until_s = time.monotonic() + self.timeout_s
        try:
            if self._socket is None or self._leaving or self._send_window < len(message) + 5:
                self.close()
                self._connect()
            return self._send_request(method, message)
        except TimeoutError:
            raise self._time_out() from None
        except GrpcRejected as error:
            if error.status == DEADLINE_EXCEEDED:  # the server knows our deadline, and its clock was ahead
                raise self._time_out() from None
            raise
        except ConnectionRefusedError:
            self.close()
            raise NotListening(f"port {self.port} is closed") from None
        except OSError as error:
            self.close()
            raise GrpcError(f"port {self.port} failed: {error.strerror or error}") from None
        except HpackError as error:
            self.close()
            raise GrpcError(f"port {self.port} sent invalid gRPC: {error}") from None
        except GrpcError as error:
            self.close()
            raise GrpcError(f"port {self.port} {error}") from None

    def _time_out(self) -> GrpcError:
        self.close()
        return GrpcError(f"port {self.port} did not respond within {self.timeout_s:g} s")

    def close(self) -> None:
        """Release what is open."""
        if self._socket is not None:
            self._socket.close()
        self._begin()

    # -- the connection

    def _begin(self) -> None:
        self._socket = None
        self._buffer = b""
        self._stream = -1
        self._greeted = False
        self._leaving = False
        self._send_window = _WINDOW
        self._headers = HpackDecoder()

    def _connect(self) -> None:
        failure: OSError = ConnectionRefusedError()
        for host in _HOSTS:
            family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
            try:
                stream = _socket.socket(family, _socket.SOCK_STREAM)
            except OSError as error:  # a host without IPv6
                failure = error
                continue
            try:
                stream.settimeout(self._left_s())
                stream.connect((host, self.port))
                stream.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            except OSError as error:
                stream.close()
                if isinstance(error, TimeoutError):
                    raise
                # If both addresses fail, the error of the first one is reported.
                failure = error if host == _HOSTS[0] else failure
                continue
            self._socket = stream
            settings = struct.pack(">HIHI", _ENABLE_PUSH, 0, _INITIAL_WINDOW, _STREAM_WINDOW)
            self._send(_PREFACE + frame(SETTINGS, 0, 0, settings) + _more(0, _STREAM_WINDOW))
            return
        raise failure

    def _left_s(self) -> float:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.settimeout(self._left_s())
        self._socket.sendall(data)

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        while len(self._buffer) < size:
            self._socket.settimeout(self._left_s())
            data = self._socket.recv(65536)
            if not data:
                raise GrpcError("closed the connection")
            self._buffer += data
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    # -- a call

    def _send_request(self, method: str, message: bytes) -> bytes:
        self._stream += 2
        self._leaving = self._stream >= _LAST_STREAM
        headers = encode(
            (
                (":method", "POST"),
                (":scheme", "http"),
                (":path", method),
                (":authority", f"localhost:{self.port}"),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "runvitals"),
                ("grpc-timeout", f"{int(self.timeout_s * 1000)}m"),
            )
        )
        data = b"\0" + len(message).to_bytes(4, "big") + message
        self._send_window -= len(data)
        self._send(
            frame(HEADERS, END_HEADERS, self._stream, headers) + frame(DATA, END_STREAM, self._stream, data)
        )
        return self._read_response()

    def _read_response(self) -> bytes:
        """Read frames until the end of our stream."""
        body = bytearray()
        headers: dict[str, str] = {}
        while True:
            type, flags, stream, payload = self._frame()
            if type == HEADERS:
                block = self._block(flags, payload)
                if stream == self._stream:
                    headers.update(block)
            elif type == DATA:
                self._take(stream, flags, payload, body)
            elif type == RST_STREAM and stream == self._stream:
                raise GrpcError(f"reset the stream with error {_number(payload, 4)}")
            elif type == GOAWAY:
                if _number(payload, 4) < self._stream:
                    raise GrpcError(f"closed the connection with error {_number(payload[4:], 4)}")
                self._leaving = True
            elif type in (SETTINGS, PING):
                self._acknowledge(type, flags, payload)
            elif type == WINDOW_UPDATE and stream == 0:
                self._send_window += _number(payload, 4)
            elif type == PUSH_PROMISE:
                raise GrpcError("sent a push promise, which is disabled")
            if stream == self._stream and type in (HEADERS, DATA) and flags & END_STREAM:
                return _message(headers, bytes(body))

    def _frame(self) -> tuple[int, int, int, bytes]:
        """(type, flags, stream, payload) of the next frame."""
        head = self._exactly(9)
        size, type, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
        if not self._greeted:
            if type != SETTINGS or flags & ACK or size > _MAX_FRAME_LENGTH:
                raise GrpcError(f"did not send HTTP/2 but {head!r}")
            self._greeted = True
        if size > _MAX_FRAME_LENGTH:
            raise GrpcError(f"sent a frame of {size} bytes; at most {_MAX_FRAME_LENGTH} are allowed")
        return type, flags, stream, self._exactly(size)

    def _block(self, flags: int, payload: bytes) -> list[tuple[str, str]]:
        """Decode a complete header block. Blocks of other streams too, since later blocks refer to them."""
        block = _remove_padding(flags, payload)
        if flags & HAS_PRIORITY:
            block = block[5:]
        while not flags & END_HEADERS:
            type, flags, _, more = self._frame()
            block += more
            if type != CONTINUATION or len(block) > _MAX_BLOCK_LENGTH:
                raise GrpcError("sent an incomplete or too long header block")
        return self._headers.decode(block)

    def _take(self, stream: int, flags: int, payload: bytes, body: bytearray) -> None:
        if payload:
            # Grant the window again right away: a response is small, and read completely.
            self._send(_more(0, len(payload)))
        if stream == self._stream:
            body += _remove_padding(flags, payload)
        if len(body) > _MAX_MESSAGE:
            raise GrpcError(f"sent a response of more than {_MAX_MESSAGE} bytes")

    def _acknowledge(self, type: int, flags: int, payload: bytes) -> None:
        if not flags & ACK:
            self._send(frame(type, ACK, 0, payload if type == PING else b""))


def frame(type: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Encode an HTTP/2 frame."""
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", type, flags, stream) + payload


def _more(stream: int, size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big"))


def _number(payload: bytes, size: int) -> int:
    if len(payload) < size:
        raise GrpcError("sent an incomplete frame")
    return int.from_bytes(payload[:size], "big") & 0x7FFFFFFF


def _remove_padding(flags: int, payload: bytes) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise GrpcError("sent a frame with more padding than payload")
    return payload[1 : len(payload) - payload[0]]


def _message(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return the single message in a response body.

    Raises:
        GrpcRejected: the trailers contain an error status.
        GrpcError: it is not a gRPC response.
    """
    if headers.get(":status") != "200":
        raise GrpcError(f"responded with HTTP status {headers.get(':status', 'none')!r}")
    status = headers.get("grpc-status", "")
    if not status.isdecimal():
        raise GrpcError(f"responded without a valid grpc-status: {status!r}")
    if int(status) != OK:
        raise GrpcRejected(int(status), _unquote(headers.get("grpc-message", ""))[:200])
    if len(body) < 5 or body[0] != 0 or int.from_bytes(body[1:5], "big") != len(body) - 5:
        raise GrpcError("sent an incomplete or compressed message")
    return body[5:]


def _unquote(text: str) -> str:
    """Decode a gRPC message text, in which non-ASCII bytes are percent-encoded."""
    first, *others = text.split("%")
    data = first.encode("latin-1", "replace")
    for part in others:
        try:
            data += bytes((int(part[:2], 16),)) + part[2:].encode("latin-1", "replace")
        except ValueError:
            data += b"%" + part.encode("latin-1", "replace")
    return data.decode("utf-8", "replace")
