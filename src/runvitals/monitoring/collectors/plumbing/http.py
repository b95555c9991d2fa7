"""A minimal HTTP client for the monitor.

The packages ``socket`` and ``http`` would cost it 4 MB; ``_socket`` costs nothing.

It talks to exporters and vendors' services beside the training: one GET, one response, no proxies, no
redirects. It blocks: call it through `collectors.aside.BackgroundReader`.
"""

from __future__ import annotations

import _socket
import binascii
import time
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    class ByteStream(Protocol):
        """The common methods of `_socket.socket` and `ssl.SSLSocket`."""

        def settimeout(self, seconds: float | None, /) -> None:
            """Limit how long a call may wait."""

        def recv(self, size: int, /) -> bytes:
            """Receive at most `size` bytes."""

        def sendall(self, data: bytes, /) -> None:
            """Send all data."""

        def close(self) -> None:
            """Release what is open."""


MIB = 1 << 20
_PIECE = 1 << 16
_HEAD_LIMIT = 64 * 1024
_MAX_DIGITS = 18


class HttpError(Exception):
    """No usable response. The message has the URL, without secrets, and the error."""


class HttpAddress:
    """A parsed URL.

    ``http://[user:password@]host[:port]/path``, ``https://…``, or
    ``http+unix://%2Frun%2Fexporter.sock/path``, whose host is the path of a socket.

    Raises:
        ValueError: another scheme, no host, or an invalid port.

    Example:
        >>> address = HttpAddress("http://me:abc@[::1]:9400/metrics?x=1")
        >>> address.host, address.port, address.target, str(address)
        ('::1', 9400, '/metrics?x=1', 'http://[::1]:9400/metrics')
    """

    __slots__ = ("host", "host_header", "port", "scheme", "target", "user")

    def __init__(self, url: str) -> None:
        scheme, sign, rest = url.strip().partition("://")
        self.scheme = scheme.lower()
        if not sign or self.scheme not in ("http", "https", "http+unix"):
            raise ValueError(
                f"invalid URL {_without_secrets(url)!r}: expected http://, https:// or http+unix://"
            )
        end = min((at for at in (rest.find(sign) for sign in "/?#") if at >= 0), default=len(rest))
        authority, target = rest[:end], rest[end:].partition("#")[0]
        self.target = target if target.startswith("/") else f"/{target}"
        user, _, self.host_header = authority.rpartition("@")
        self.user = unquote(user)
        self.host, self.port = self._host_and_port(url)
        if any(ord(letter) <= 32 or ord(letter) > 126 for letter in self.host_header + self.target):
            raise ValueError(
                f"invalid URL {_without_secrets(url)!r}: it has whitespace or characters other than ASCII"
            )

    def __str__(self) -> str:
        """The URL without user, password and query, which may be secret."""
        return f"{self.scheme}://{self.host_header}{self.target.partition('?')[0]}"

    def _host_and_port(self, url: str) -> tuple[str, int]:
        default = 443 if self.scheme == "https" else 80
        host, colon, port = self.host_header, "", ""
        if self.scheme == "http+unix":
            host = unquote(host)
        elif host.startswith("["):
            host, _, port = host[1:].partition("]")
            colon, port = port[:1], port[1:]
        else:
            host, colon, port = host.partition(":")
        if not host:
            raise ValueError(f"invalid URL {_without_secrets(url)!r}: it has no host")
        if not colon:
            return host, default
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(
                f"invalid port in the URL {_without_secrets(url)!r}: expected a number from 1 to 65535"
            )
        return host, int(port)


class HttpResponse:
    """Status, headers with names in lower case, and the uncompressed body; empty if `take` received it."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def get(
    url: str | HttpAddress,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 5.0,
    connect_s: float = 2.0,
    limit_bytes: int = 16 * MIB,
    take: Callable[[bytes], None] | None = None,
) -> HttpResponse:
    """Send a GET request and read the whole response, whose status must be 200.

    Args:
        url: where to send it.
        headers: sent as they are; they override ours (Host, User-Agent, Accept, Accept-Encoding).
        timeout_s: limit for the whole call, except for DNS, which takes as long as the system's resolver.
        connect_s: limit for connecting to one of the host's addresses.
        limit_bytes: limit for the body, compressed or not.
        take: called with each uncompressed piece of the body as it arrives, so that a long one is never held
            in memory as a whole. Its time does not count towards `timeout_s`. A later piece may still fail.

    Raises:
        HttpError: no response, too late, too long, another status, or not HTTP.
        ValueError: the URL or a header is invalid.

    Example:
        >>> get("http://localhost:9400/metrics").body[:6]
        b'# HELP'
    """
    address = HttpAddress(url) if isinstance(url, str) else url
    request = _request(address, headers or {})
    until_s = time.monotonic() + timeout_s
    try:
        stream = _connect(address, min(until_s, time.monotonic() + connect_s))
        try:
            _give_time(stream, until_s)
            stream.sendall(request)
            return _ResponseReader(stream, until_s, limit_bytes).response(take)
        finally:
            stream.close()
    except TimeoutError:
        raise HttpError(f"{address} did not respond within {timeout_s:g} s") from None
    except HttpError as error:
        raise HttpError(f"{address} {error}") from None
    except (OSError, zlib.error) as error:
        raise HttpError(f"{address} cannot be read: {_reason(error)}") from None


def unquote(text: str) -> str:
    """Decode percent-encoding (``%2F``).

    Raises:
        ValueError: a percent sign without two hexadecimal digits.
    """
    first, *others = text.split("%")
    data = first.encode()
    for part in others:
        if len(part) < 2:
            raise ValueError(f"{text!r} has a % without two hexadecimal digits")
        data += bytes((int(part[:2], 16),)) + part[2:].encode()
    return data.decode("utf-8", "replace")


def _without_secrets(url: str) -> str:
    scheme, sign, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{sign}{authority.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return getattr(error, "strerror", None) or str(error)


def _request(address: HttpAddress, headers: Mapping[str, str]) -> bytes:
    fields = {
        "Host": "localhost" if address.scheme == "http+unix" else address.host_header,
        "User-Agent": "runvitals",
        "Accept": "*/*",
        "Accept-Encoding": "gzip",
        "Connection": "close",
    }
    if address.user:
        fields["Authorization"] = (
            "Basic " + binascii.b2a_base64(address.user.encode(), newline=False).decode()
        )
    ours = {name.lower(): name for name in fields}
    for name, value in headers.items():
        if any(letter in f"{name}{value}" for letter in "\r\n\0") or not name or ":" in name:
            # Without the value, which may be secret.
            raise ValueError(f"invalid header {name!r}: invalid name, or a line break in the value")
        fields.pop(ours.get(name.lower(), ""), None)
        fields[name] = value
    lines = [f"GET {address.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("utf-8")


def _give_time(stream: ByteStream, until_s: float) -> None:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    stream.settimeout(left_s)


def _connect(address: HttpAddress, until_s: float) -> ByteStream:
    if address.scheme == "http+unix":
        return _try(_socket.AF_UNIX, address.host, until_s)
    problem: Exception = HttpError("has no address")
    # As bytes: a str would load the IDNA codec, and `re` with it.
    host = address.host.encode("ascii")
    for family, _, _, _, where in _socket.getaddrinfo(host, address.port, 0, _socket.SOCK_STREAM):
        try:
            sock = _try(family, where, until_s)
        except TimeoutError:
            raise HttpError("did not accept the connection in time") from None
        except OSError as error:
            problem = error
            continue
        return _encrypt(sock, address.host, until_s) if address.scheme == "https" else sock
    raise problem


def _try(family: int, where: object, until_s: float) -> _socket.socket:
    sock = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        _give_time(sock, until_s)
        sock.connect(where)  # type: ignore[arg-type]
    except BaseException:
        sock.close()
        raise
    return sock


def _encrypt(sock: _socket.socket, host: str, until_s: float) -> ByteStream:
    import socket  # 5 MB together with `ssl`, only for https
    import ssl

    connection = socket.socket(fileno=sock.detach())
    try:
        _give_time(connection, until_s)
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


class _ResponseReader:
    """Reads one response from a stream, within a deadline and a size limit."""

    __slots__ = ("_buffer", "_limit_bytes", "_stream", "_until_s")

    def __init__(self, stream: ByteStream, until_s: float, limit_bytes: int) -> None:
        self._stream = stream
        self._until_s = until_s
        self._limit_bytes = limit_bytes
        self._buffer = b""

    def response(self, take: Callable[[bytes], None] | None) -> HttpResponse:
        status, headers = self._head()
        while 100 <= status < 200:
            status, headers = self._head()
        if status != 200:
            where = f" (to {headers['location']}, which is not followed)" if "location" in headers else ""
            raise HttpError(f"responded with status {status}{where}")
        pieces = self._limit(self._body(headers))
        encoding = headers.get("content-encoding", "identity").lower()
        if encoding == "gzip":
            pieces = self._limit(_decompress(pieces))
        elif encoding != "identity":
            raise HttpError(f"used the content encoding {encoding!r}; expected gzip or none")
        if take is None:
            return HttpResponse(status, headers, b"".join(pieces))
        for piece in pieces:
            began_s = time.monotonic()
            take(piece)
            self._until_s += time.monotonic() - began_s
        return HttpResponse(status, headers, b"")

    def _head(self) -> tuple[int, dict[str, str]]:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise HttpError("sent headers of more than 64 KiB")
            if not self._more():
                raise HttpError(
                    "closed the connection without a response"
                    if not self._buffer
                    else "sent a response that is not HTTP"
                )
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1][:_MAX_DIGITS].isdecimal():
            raise HttpError(f"sent a response that is not HTTP: {lines[0][:60]!r}")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(words[1][:_MAX_DIGITS]), headers

    def _body(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the pieces of the body as they arrive."""
        length = headers.get("content-length", "")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while size := self._chunk_size():
                self._check(size)
                yield from self._exactly(size)
                if self._line():
                    raise HttpError("sent a chunk that is longer than its declared size")
        elif length.isdecimal():
            size = int(length[:_MAX_DIGITS])
            self._check(size)
            yield from self._exactly(size)
        else:
            piece, self._buffer = self._buffer, b""
            while piece or (piece := self._receive()):
                yield piece
                piece = b""

    def _chunk_size(self) -> int:
        text = self._line().partition(b";")[0].strip()
        try:
            size = int(text, 16)
        except ValueError:
            size = -1
        if size < 0:
            raise HttpError(f"sent a chunk with the invalid size {text[:20]!r}")
        return size

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT or not self._more():
                raise HttpError("sent a truncated response")
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _exactly(self, size: int) -> Iterator[bytes]:
        have = 0
        while have < size:
            piece = self._buffer or self._receive()
            if not piece:
                raise HttpError(f"sent a truncated response: {have} of {size} bytes")
            piece, self._buffer = piece[: size - have], piece[size - have :]
            have += len(piece)
            yield piece

    def _more(self) -> bool:
        data = self._receive()
        self._buffer += data
        return bool(data)

    def _receive(self) -> bytes:
        _give_time(self._stream, self._until_s)
        return self._stream.recv(_PIECE)

    def _check(self, size: int) -> None:
        if size > self._limit_bytes:
            raise HttpError(f"sent more than {self._limit_bytes} bytes")

    def _limit(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            self._check(total)
            yield piece


def _decompress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip, of one or several members, into pieces of limited size."""
    unpacker = zlib.decompressobj(wbits=31)
    for piece in pieces:
        while piece:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            yield unpacker.decompress(piece, _PIECE)
            piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise HttpError("sent truncated gzip data")
