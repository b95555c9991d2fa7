"""A proxy in front of ClickHouse that answers one request with 500 after ClickHouse has executed it."""

from __future__ import annotations

import http.client
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AnswersWith500:
    """The proxy, from entering to leaving it.

    Attributes:
        reached: whether the request has come that is answered with 500.
    """

    def __init__(self, clickhouse_port: int) -> None:
        self._clickhouse_port = clickhouse_port
        self._numbers = itertools.count()
        self._failing: int | None = None
        self.reached = False
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, content = proxy._answer(self.path, body)
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def fail(self, number: int | None) -> None:
        """Answer the request of this number from now, counted from 0, with 500; None: none."""
        self._numbers, self._failing, self.reached = itertools.count(), number, False

    def _answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._clickhouse_port)
        try:
            connection.request("POST", path, body)
            response = connection.getresponse()
            status, content = response.status, response.read()
        finally:
            connection.close()
        if next(self._numbers) == self._failing:
            self.reached = True
            return 500, b"Code: 210, e.displayText() = DB::NetException: Connection reset by peer"
        return status, content

    def __enter__(self) -> AnswersWith500:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
