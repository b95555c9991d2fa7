"""One HTTP request at a time, small enough for the monitor.

The packages ``socket`` and ``http`` would cost it 4 MB, ``_socket`` costs nothing.

What is asked are exporters and vendors' services beside the training: one GET, one answer, no proxies, no
redirects. Waits, so ask it through `collectors.aside.BackgroundReader`.
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
        """What `_socket.socket` and `ssl.SSLSocket` have in common."""

        def settimeout(self, seconds: float | None, /) -> None: ...
        def recv(self, size: int, /) -> bytes: ...
        def sendall(self, data: bytes, /) -> None: ...
        def close(self) -> None: ...


MIB = 1 << 20
_PIECE = 1 << 16
_HEAD_LIMIT = 64 * 1024
_MOST_DIGITS = 18


class HttpError(Exception):
    """No answer, or none that can be used; the text names the address, without a password, and the fault."""


class HttpAddress:
    """Where a URL leads: ``http://[user:password@]host[:port]/path``, ``https://…``, or
    ``http+unix://%2Frun%2Fexporter.sock/path``, whose host is the path of a socket.

    Raises:
        ValueError: another scheme, no host, or a port that is none.

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
                f"the URL {_without_secrets(url)!r} must begin with http://, https:// or http+unix://"
            )
        end = min((at for at in (rest.find(sign) for sign in "/?#") if at >= 0), default=len(rest))
        place, target = rest[:end], rest[end:].partition("#")[0]
        self.target = target if target.startswith("/") else f"/{target}"
        user, _, self.host_header = place.rpartition("@")
        self.user = unquoted(user)
        self.host, self.port = self._host_and_port(url)
        if any(ord(letter) <= 32 or ord(letter) > 126 for letter in self.host_header + self.target):
            raise ValueError(
                f"the URL {_without_secrets(url)!r} has blanks or letters that are not ASCII in it"
            )

    def __str__(self) -> str:
        """The URL without what may be secret: user, password and query."""
        return f"{self.scheme}://{self.host_header}{self.target.partition('?')[0]}"

    def _host_and_port(self, url: str) -> tuple[str, int]:
        default = 443 if self.scheme == "https" else 80
        host, colon, port = self.host_header, "", ""
        if self.scheme == "http+unix":
            host = unquoted(host)
        elif host.startswith("["):
            host, _, port = host[1:].partition("]")
            colon, port = port[:1], port[1:]
        else:
            host, colon, port = host.partition(":")
        if not host:
            raise ValueError(f"the URL {_without_secrets(url)!r} has no host")
        if not colon:
            return host, default
        if not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(
                f"the port in the URL {_without_secrets(url)!r} must be a number from 1 to 65535"
            )
        return host, int(port)


class HttpResponse:
    """Status, headers with names in small letters, and the whole body, unpacked; none where its pieces were
    taken one by one.
    """

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
    """Ask for a URL and read the whole answer, whose status must be 200.

    Args:
        headers: sent as they are; they win over ours (Host, User-Agent, Accept, Accept-Encoding).
        timeout_s: for everything together, but for the resolver: it asks as long as the system lets it.
        connect_s: for the connection to one of the host's addresses.
        limit_bytes: of the body, packed or not.
        take: called with each piece of the body, unpacked, as it comes, so that a long one never lies in
            memory as a whole. The time that it takes is not the server's. It may have been called when what
            follows turns out to be wrong.

    Raises:
        HttpError: nobody answers, too late, too long, with another status, or what is no HTTP.
        ValueError: the URL or a header is none.

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
            return _ResponseReader(stream, until_s, limit_bytes).answer(take)
        finally:
            stream.close()
    except TimeoutError:
        raise HttpError(f"{address} did not answer within {timeout_s:g} s") from None
    except HttpError as error:
        raise HttpError(f"{address} {error}") from None
    except (OSError, zlib.error) as error:
        raise HttpError(f"{address} cannot be read: {_reason(error)}") from None


def unquoted(text: str) -> str:
    """Text in which ``%2F`` and the like have become what they stand for.

    Raises:
        ValueError: a per cent sign without two hexadecimal digits.
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
    place, slash, path = rest.partition("/")
    return f"{scheme}{sign}{place.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
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
            # Not its value: it may be secret.
            raise ValueError(f"the header {name!r} has a line's end in it, or a name that is none")
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
    # As bytes: a text would load the codec of international names, and `re` with it.
    host = address.host.encode("ascii")
    for family, _, _, _, where in _socket.getaddrinfo(host, address.port, 0, _socket.SOCK_STREAM):
        try:
            sock = _try(family, where, until_s)
        except TimeoutError:
            raise HttpError("does not let us connect in time") from None
        except OSError as error:
            problem = error
            continue
        return _encrypted(sock, address.host, until_s) if address.scheme == "https" else sock
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


def _encrypted(sock: _socket.socket, host: str, until_s: float) -> ByteStream:
    import socket  # 5 MB, with `ssl`: only who names an https address pays for them
    import ssl

    whole = socket.socket(fileno=sock.detach())
    try:
        _give_time(whole, until_s)
        return ssl.create_default_context().wrap_socket(whole, server_hostname=host)
    except BaseException:
        whole.close()
        raise


class _ResponseReader:
    """Reads one answer from a stream, until a moment, up to a size."""

    __slots__ = ("_buffer", "_limit_bytes", "_stream", "_until_s")

    def __init__(self, stream: ByteStream, until_s: float, limit_bytes: int) -> None:
        self._stream = stream
        self._until_s = until_s
        self._limit_bytes = limit_bytes
        self._buffer = b""

    def answer(self, take: Callable[[bytes], None] | None) -> HttpResponse:
        status, headers = self._head()
        while 100 <= status < 200:
            status, headers = self._head()
        if status != 200:
            where = f" (to {headers['location']}, which is not followed)" if "location" in headers else ""
            raise HttpError(f"answered with status {status}{where}")
        pieces = self._limited(self._body(headers))
        packing = headers.get("content-encoding", "identity").lower()
        if packing == "gzip":
            pieces = self._limited(_unpacked(pieces))
        elif packing != "identity":
            raise HttpError(f"packed its answer as {packing!r}, which was not asked for")
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
                raise HttpError("sent a head of more than 64 KiB")
            if not self._more():
                raise HttpError(
                    "closed the connection before its answer" if not self._buffer else "sent no HTTP"
                )
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1][:_MOST_DIGITS].isdecimal():
            raise HttpError(f"sent no HTTP but {lines[0][:60]!r}")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(words[1][:_MOST_DIGITS]), headers

    def _body(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        """The pieces of the body as they are sent."""
        length = headers.get("content-length", "")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while size := self._chunk_size():
                self._check(size)
                yield from self._exactly(size)
                if self._line():
                    raise HttpError("sent a chunk that is longer than it said")
        elif length.isdecimal():
            size = int(length[:_MOST_DIGITS])
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
            raise HttpError(f"sent a chunk of the size {text[:20]!r}")
        return size

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT or not self._more():
                raise HttpError("broke off its answer")
        line, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
        return line

    def _exactly(self, size: int) -> Iterator[bytes]:
        have = 0
        while have < size:
            piece = self._buffer or self._receive()
            if not piece:
                raise HttpError(f"broke off its answer, after {have} of {size} bytes")
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

    def _limited(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            self._check(total)
            yield piece


def _unpacked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """What packed pieces hold, of all their members, in pieces that are not long either."""
    unpacker = zlib.decompressobj(wbits=31)
    for piece in pieces:
        while piece:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            yield unpacker.decompress(piece, _PIECE)
            piece = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
    yield unpacker.flush()
    if not unpacker.eof:
        raise HttpError("broke off its packed answer")
