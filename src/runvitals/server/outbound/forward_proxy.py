"""`ForwardProxy`: lets a child process reach other servers, at checked addresses only.

A library that makes its own requests, such as Apprise, runs in a child process whose only way out is this
proxy on loopback. It connects to what the `Fetcher` allows, and passes on what is encrypted: the library
checks the certificate. There is no way out without TLS.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import selectors
import socket
import threading
import time
from typing import Final

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one connection, in both directions."""
_MAX_HEAD: Final = 8 * 1024
_MAX_CONNECTIONS: Final = 8
_PIECE: Final = 64 * 1024


class ForwardProxy:
    """Runs while `with` lasts.

    Args:
        fetcher: makes the connections.
        total_s: how long it runs at most; then its connections end.

    Attributes:
        url: of the proxy, with a password that only the child process knows.
        port: of the proxy.
        problem: why a connection was refused last; None: none was.
    """

    def __init__(self, fetcher: Fetcher, total_s: float) -> None:
        self._fetcher = fetcher
        self._until_s = time.monotonic() + total_s
        password = secrets.token_urlsafe(24)
        self._expected = b"Basic " + base64.b64encode(f"runvitals:{password}".encode())
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)
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
                authority = self._authority(client)
                if authority is None:
                    return
                try:
                    server = self._fetcher.connect(*authority, max(0.1, self._left_s()))
                except (Blocked, FetchFailed) as error:
                    self._refuse(client, "403 Forbidden", f"{authority[0]}: {error}")
                    return
                with server:
                    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    self._pass_on(client, server)
        except OSError:
            return  # one of both ended the connection
        finally:
            self._room.release()

    def _authority(self, client: socket.socket) -> tuple[str, int] | None:
        """Where the client wants to be connected to; None if it was refused."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(_MAX_HEAD - len(head)) if len(head) < _MAX_HEAD else b""
            if not piece:
                return None
            head += piece
        first, *lines = head.partition(b"\r\n\r\n")[0].split(b"\r\n")
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (x.partition(b":") for x in lines)
        }
        if not hmac.compare_digest(headers.get(b"proxy-authorization", b""), self._expected):
            self._refuse(client, "407 Proxy Authentication Required", "a connection without the password")
            return None
        method, _, rest = first.partition(b" ")
        host, _, port = rest.partition(b" ")[0].decode("ascii", "replace").rpartition(":")
        if method != b"CONNECT" or not host or not (port.isascii() and port.isdigit()):
            self._refuse(client, "403 Forbidden", "the request is not encrypted; expected https")
            return None
        return host.strip("[]"), int(port)

    def _refuse(self, client: socket.socket, status: str, problem: str) -> None:
        self.problem = problem
        client.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        remaining_bytes = MAX_BYTES
        with selectors.DefaultSelector() as waiting:
            waiting.register(client, selectors.EVENT_READ, server)
            waiting.register(server, selectors.EVENT_READ, client)
            while remaining_bytes > 0 and self._left_s() > 0 and not self._closing.is_set():
                for key, _ in waiting.select(0.5):
                    assert isinstance(key.fileobj, socket.socket)
                    piece = key.fileobj.recv(min(_PIECE, remaining_bytes))
                    if not piece:
                        return
                    remaining_bytes -= len(piece)
                    key.data.sendall(piece)
