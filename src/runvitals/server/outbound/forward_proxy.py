"""`ForwardProxy`: lets a library reach other servers, at checked addresses only.

A library that makes its own requests, such as Apprise in a child process, or the one for buckets, has this
proxy on loopback as its only way out. It connects to what the `Fetcher` allows, also after a redirect. What
is encrypted is passed on: the library checks the certificate.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import selectors
import socket
import threading
import time
from typing import Final, NamedTuple

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked

MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_HEAD: Final = 8 * 1024
_MAX_CONNECTIONS: Final = 8
_PIECE: Final = 256 * 1024
_CONNECT_S: Final = 20.0
_HTTP: Final = b"http://"
_END: Final = b"\r\n\r\n"


class _PlainRequests:
    """Turns requests to a proxy into requests to the server, all of which must be for the same one."""

    def __init__(self, authority: bytes) -> None:
        self._start = _HTTP + authority + b"/"
        self._head = b""
        self._body_left = 0

    def next_bytes(self, received: bytes) -> bytes:
        """Return what the server gets of the next bytes; raise OSError for requests to others."""
        out = []
        while received:
            body, received = received[: self._body_left], received[self._body_left :]
            self._body_left -= len(body)
            out.append(body)
            head, end, rest = (self._head + received).partition(_END)
            if not end:
                self._head = head
                if len(head) > _MAX_HEAD:
                    raise OSError("the head of a request is too long")
                break
            self._head, received = b"", rest
            out.append(self._own(head))
        return b"".join(out)

    def _own(self, head: bytes) -> bytes:
        """Return a head without what is meant for the proxy."""
        first, headers = _parsed(head)
        method, _, target = first.partition(b" ")
        length = headers.get(b"content-length", b"0")
        if not target.startswith(self._start) or not length.isdigit() or b"transfer-encoding" in headers:
            raise OSError("the request is for another server, or does not say how long it is")
        self._body_left = int(length)
        own = (b"proxy-authorization", b"proxy-connection")
        kept = [
            line for line in head.split(b"\r\n")[1:] if line.partition(b":")[0].strip().lower() not in own
        ]
        return b"\r\n".join([method + b" /" + target.removeprefix(self._start), *kept]) + _END


class _Way(NamedTuple):
    """Where a connection goes. `requests`: without TLS, and what was `received` begins with the first."""

    host: str
    port: int
    requests: _PlainRequests | None
    received: bytes


def _parsed(head: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the first line of a head, and its headers by lower-case name."""
    first, *lines = head.split(b"\r\n")
    pairs = (line.partition(b":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _host_and_port(authority: bytes, default_port: int | None) -> tuple[str, int | None]:
    text = authority.decode("ascii", "replace")
    host, colon, port = text.rpartition(":")
    if default_port is not None and (not colon or "]" in port):
        return text.strip("[]"), default_port
    return host.strip("[]"), int(port) if port.isascii() and port.isdigit() else None


class ForwardProxy:
    """Runs while `with` lasts.

    Args:
        fetcher: makes the connections.
        total_s: how long it runs at most; then its connections end.
        max_bytes: of one connection, in both directions.
        max_connections: at the same time; more are closed at once.
        has_http: whether it also passes on requests without TLS, to hosts where the policy allows that.

    Attributes:
        url: of the proxy, with a password that only the library knows.
        port: of the proxy.
        problem: why a connection was refused last; None: none was.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        total_s: float = threading.TIMEOUT_MAX,
        *,
        max_bytes: float = MAX_BYTES,
        max_connections: int = _MAX_CONNECTIONS,
        has_http: bool = False,
    ) -> None:
        self._fetcher = fetcher
        self._until_s = time.monotonic() + total_s
        self._max_bytes = max_bytes
        self._has_http = has_http
        password = secrets.token_urlsafe(24)
        self._expected = b"Basic " + base64.b64encode(f"runvitals:{password}".encode())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._room = threading.BoundedSemaphore(max_connections)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://runvitals:{password}@127.0.0.1:{self.port}"
        self.problem: str | None = None

    def __enter__(self) -> ForwardProxy:
        threading.Thread(target=self._accept, name="runvitals-forward-proxy", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listener.close()

    def _left_s(self) -> float:
        return self._until_s - time.monotonic()

    def _accept(self) -> None:
        self._listener.settimeout(0.5)
        while not self._closing.is_set() and self._left_s() > 0:
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return  # closed
            if not self._room.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(
                target=self._serve, args=(client,), name="runvitals-forwarded", daemon=True
            ).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                client.settimeout(max(0.1, self._left_s()))
                way = self._way(client)
                if way is None:
                    return
                connect_s = min(_CONNECT_S, max(0.1, self._left_s()))
                is_https = way.requests is None
                try:
                    server = self._fetcher.connect(way.host, way.port, connect_s, is_https=is_https)
                except (Blocked, FetchFailed) as error:
                    self._refuse(client, "403 Forbidden", f"{way.host}: {error}")
                    return
                with server:
                    server.settimeout(client.gettimeout())
                    if way.requests is None:
                        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    else:
                        server.sendall(way.requests.next_bytes(way.received))
                    self._pass_on(client, server, way.requests)
        except OSError:
            return  # one of both ended the connection
        finally:
            self._room.release()

    def _way(self, client: socket.socket) -> _Way | None:
        """Where the client wants to be connected to; None if it was refused."""
        received = b""
        while _END not in received:
            piece = client.recv(_MAX_HEAD - len(received)) if len(received) < _MAX_HEAD else b""
            if not piece:
                return None
            received += piece
        first, headers = _parsed(received.partition(_END)[0])
        if not hmac.compare_digest(headers.get(b"proxy-authorization", b""), self._expected):
            self._refuse(client, "407 Proxy Authentication Required", "a connection without the password")
            return None
        method, _, rest = first.partition(b" ")
        target = rest.partition(b" ")[0]
        requests = None
        if method != b"CONNECT":
            if not self._has_http or not target.startswith(_HTTP):
                self._refuse(client, "403 Forbidden", "the request is not encrypted; expected https")
                return None
            target = target.removeprefix(_HTTP).partition(b"/")[0]
            requests = _PlainRequests(target)
        host, port = _host_and_port(target, None if requests is None else 80)
        if not host or port is None:
            self._refuse(client, "403 Forbidden", "the request names no host with its port")
            return None
        return _Way(host, port, requests, received)

    def _refuse(self, client: socket.socket, status: str, problem: str) -> None:
        self.problem = problem
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def _pass_on(self, client: socket.socket, server: socket.socket, requests: _PlainRequests | None) -> None:
        remaining_bytes = self._max_bytes
        with selectors.DefaultSelector() as waiting:
            waiting.register(client, selectors.EVENT_READ, server)
            waiting.register(server, selectors.EVENT_READ, client)
            while remaining_bytes > 0 and self._left_s() > 0 and not self._closing.is_set():
                for key, _ in waiting.select(0.5):
                    assert isinstance(key.fileobj, socket.socket)
                    piece = key.fileobj.recv(int(min(_PIECE, remaining_bytes)))
                    if not piece:
                        return
                    remaining_bytes -= len(piece)
                    if requests is not None and key.fileobj is client:
                        piece = requests.next_bytes(piece)
                    key.data.sendall(piece)
