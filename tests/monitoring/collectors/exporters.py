"""An HTTP server for tests, which responds with the given bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


def ok(body: bytes | str, *headers: str) -> bytes:
    """A complete response with a length."""
    data = body.encode() if isinstance(body, str) else body
    head = ["HTTP/1.1 200 OK", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(head).encode() + data


class Exporter:
    """Responds to every connection with `answer`, and records the requests in `requests`.

    An answer of None is none: the connection stays open and silent until the server is closed.

    Args:
        path: of a Unix socket; "" = a port of 127.0.0.1.

    Example:
        >>> with Exporter(ok("up 1\\n")) as exporter:
        ...     get(exporter.url).body
        b'up 1\\n'
    """

    def __init__(self, answer: bytes | None = b"", path: str = "") -> None:
        self.answer = answer
        self.requests: list[str] = []
        if path:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(path)
            self._listener.listen(16)
            self.url = f"http+unix://{path.replace('/', '%2F')}/metrics"
        else:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
            self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/metrics"
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        # Closing a listener does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self._open:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            request = b""
            while not _is_whole(request) and (data := connection.recv(65536)):
                request += data
            self.requests.append(request.decode("latin-1"))
            if self.answer is None:
                self._open.append(connection)
                continue
            with contextlib.suppress(OSError):  # the client may stop reading early
                connection.sendall(self.answer)
            connection.close()


def _is_whole(request: bytes) -> bool:
    """Whether a request is complete: it has a head, or is a TLS ClientHello, which this server cannot
    answer.
    """
    return b"\r\n\r\n" in request or request.startswith(b"\x16")
