"""The HTTP client: one persistent connection, proxies from the environment, verified TLS, timeouts.

Uses the standard library only. Destinations with a client library of their own use that instead.
"""

from __future__ import annotations

import http.client
import io
import os
import time
import urllib.request
from collections.abc import Iterator, Mapping
from email.message import Message
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from runvitals.base.numbers import parse_number
from runvitals.base.terminal_text import inert
from runvitals.version import __version__

if TYPE_CHECKING:
    import socket
    from ssl import SSLContext

TIMEOUT_S = 30.0
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
_MAX_RETRY_AFTER_S = 1e9
_WHOLE_RESPONSE = 10
"""A whole response may take this many times the timeout. A server that sends a byte at a time would otherwise
occupy the thread of its destination for ever."""
_TEMPORARY = frozenset({408, 425, 429})
_FIRST_FINAL = 200
_BLOCK_BYTES = 1 << 20


class ServerResponse:
    """The server's response."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed later: 408, 425, 429 and 5xx."""
        return self.status in _TEMPORARY or self.status >= 500

    @property
    def retry_after_s(self) -> float | None:
        """The delay in `Retry-After`, in seconds; None if absent or invalid."""
        text = self.headers.get("Retry-After", "").strip()
        if not text:
            return None
        seconds = parse_number(text, 0.0, _MAX_RETRY_AFTER_S)
        if seconds is not None:
            return seconds
        from time import time

        at_s = _date_s(text)  # `Retry-After` may also be a date
        return None if at_s is None else max(at_s - time(), 0.0)

    @property
    def date_ms(self) -> int | None:
        """The server's `Date`, ms UTC with a resolution of one second; None if absent or invalid."""
        at_s = _date_s(self.headers.get("Date", ""))
        return None if at_s is None else int(at_s * 1000)

    def text(self) -> str:
        """Return the first 500 bytes of the body, on one line."""
        return inert(" ".join(self.body[:500].decode("utf-8", "replace").split()))


def _date_s(text: str) -> float | None:
    """Return a date in a header, in seconds since 1970."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):  # OverflowError: a year outside the platform's range
        return None


class FilePart:
    """A part of an open file as a body: it is read while it is sent, so that it takes no memory.

    Args:
        fd: open for reading as long as the request takes.
    """

    def __init__(self, fd: int, offset: int, size: int) -> None:
        self._fd = fd
        self._offset = offset
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        sent = 0
        while sent < self._size:
            block = os.pread(self._fd, min(_BLOCK_BYTES, self._size - sent), self._offset + sent)
            if not block:
                raise OSError(f"the file was cut off at byte {self._offset + sent:,}")
            sent += len(block)
            yield block


Body: TypeAlias = "bytes | FilePart"


class HttpClient:
    """An HTTP client for one server.

    Args:
        url: the prefix of all paths, `http://host[:port][/path]` or https.
        timeout_s: for connecting and for each read. A whole response may take ten times as long.
        max_response_bytes: longer responses are truncated.
        tls: an `ssl.SSLContext`, if not the default one.

    Raises:
        ValueError: not a valid URL, or one with a password.

    Example:
        >>> client = HttpClient("https://runs.example.org")
        >>> client.post("/api/v1/ingest", b"{}", {"Content-Type": "application/json"}).status
        200
    """

    def __init__(
        self,
        url: str,
        timeout_s: float = TIMEOUT_S,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        tls: SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"invalid server URL {url!r}; expected http://host[:port] or https://…")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                f"the URL of {parts.hostname} contains a password; remove it: the URL is written to disk"
            )
        self.url = url.rstrip("/")
        self._path = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._secure else 80)
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_response_bytes
        self._tls = tls
        self._connection: http.client.HTTPConnection | None = None
        self._absolute = ""  # prefix of paths in requests to a proxy for plain HTTP

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> ServerResponse:
        """See `request`."""
        return self.request("POST", path, body, headers)

    def request(
        self, method: str, path: str, body: Body | None, headers: Mapping[str, str]
    ) -> ServerResponse:
        """Send a request and read the whole response. Redirects are not followed.

        If the server closed the persistent connection meanwhile, the request is sent again once on a new one;
        so it must be safe to repeat.

        Raises:
            ConnectionError: could not connect, the connection was lost, the request timed out, or the TLS
                certificate could not be verified; it names the server.
        """
        try:
            return self._send_again_if_closed(method, path, body, headers)
        except OSError as error:
            raise ConnectionError(f"could not reach {self.url}: {error.strerror or error}") from error

    def _send_again_if_closed(
        self, method: str, path: str, body: Body | None, headers: Mapping[str, str]
    ) -> ServerResponse:
        reused = self._connection is not None
        try:
            return self._send(method, path, body, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            if not reused:
                raise
        return self._send(method, path, body, headers)

    def _send(self, method: str, path: str, body: Body | None, headers: Mapping[str, str]) -> ServerResponse:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        elif connection.sock is not None:
            connection.sock.settimeout(self._timeout_s)  # less was left for the last response
        all_headers = {"User-Agent": f"runvitals/{__version__}", **headers}
        if isinstance(body, FilePart):
            all_headers["Content-Length"] = str(len(body))  # else it would be sent in chunks
        try:
            connection.request(method, f"{self._absolute}{self._path}{path}", body, all_headers)
            try:
                response = connection.getresponse()
                data = response.read(self._max_answer_bytes)
            except (ValueError, OverflowError) as error:  # the size of a chunk is negative, or too large
                raise http.client.HTTPException(str(error)) from error
            if response.length and len(data) < self._max_answer_bytes:
                raise http.client.IncompleteRead(data, response.length)
            if response.status < _FIRST_FINAL:
                raise http.client.HTTPException(f"unexpected {response.status} before the response")
            if not response.isclosed():
                self.close()  # the response exceeds the limit
            return ServerResponse(response.status, response.headers, data)
        except http.client.HTTPException as error:
            self.close()
            if isinstance(error, OSError):
                raise  # RemoteDisconnected
            raise ConnectionError(f"invalid HTTP response: {error!r}") from error
        except OSError:
            self.close()
            raise

    def _connect(self) -> http.client.HTTPConnection:
        proxy = self._proxy()
        host, port = (self._host, self._port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
        # Not a class, but http.client only calls it.
        response_class: Any = partial(_timed_response, self._timeout_s)
        if not self._secure:
            if proxy is not None:
                self._absolute = f"http://{_bracket(self._host)}:{self._port}"
            plain = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
            plain.response_class = response_class
            return plain
        import ssl  # 5 MB that plain HTTP does not need

        context = self._tls or ssl.create_default_context()
        secure = http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
        if proxy is not None:
            secure.set_tunnel(self._host, self._port, headers=_proxy_headers(proxy))
        secure.response_class = response_class
        return secure

    def _proxy(self) -> Any:
        """Return the proxy the environment sets for this host, or None."""
        if urllib.request.proxy_bypass(f"{self._host}:{self._port}") or urllib.request.proxy_bypass(
            self._host
        ):
            return None
        proxies = urllib.request.getproxies()
        proxy = proxies.get("https" if self._secure else "http") or proxies.get("all")
        if not proxy:
            return None
        return urlsplit(proxy if "://" in proxy else f"http://{proxy}")

    def close(self) -> None:
        """Close the connection, if there is one; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _timed_response(
    timeout_s: float, sock: socket.socket, *arguments: Any, **more: Any
) -> http.client.HTTPResponse:
    """Return a response that is read from now on, within its time limit."""
    response = http.client.HTTPResponse(sock, *arguments, **more)
    until_s = time.monotonic() + _WHOLE_RESPONSE * timeout_s
    response.fp = io.BufferedReader(_TimedReader(response.fp.detach(), sock, timeout_s, until_s))
    return response


class _TimedReader(io.RawIOBase):
    """Reads from a socket until a time.

    Args:
        raw: the socket's reader.
        timeout_s: for each read.
        until_s: on the monotonic clock.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, timeout_s: float, until_s: float) -> None:
        self._raw = raw
        self._sock = sock
        self._timeout_s = timeout_s
        self._until_s = until_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what there is.

        Raises:
            TimeoutError: nothing came in time, or the response takes too long as a whole.
        """
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"the response took longer than {_WHOLE_RESPONSE * self._timeout_s:g} s")
        self._sock.settimeout(min(left_s, self._timeout_s))
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        """Close the reader; the socket too if its connection is closed."""
        self._raw.close()
        super().close()


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _proxy_headers(proxy: Any) -> dict[str, str]:
    if proxy.username is None:
        return {}
    from base64 import b64encode
    from urllib.parse import unquote

    secret = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(secret.encode()).decode()}"}
