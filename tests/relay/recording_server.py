"""An HTTP server that records requests and sends the responses a test sets."""

from __future__ import annotations

import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Request(NamedTuple):
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


class RecordingServer:
    """Records requests.

    Attributes:
        responses: responses to the next requests, (status, headers, body); after these, 200.
        default_headers: headers of every 200.
        requests: the requests received.
    """

    def __init__(self) -> None:
        self.responses: deque[tuple[int, dict[str, str], bytes]] = deque()
        self.default_headers: dict[str, str] = {}
        self.requests: list[Request] = []
        recording = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                headers = {name.lower(): text for name, text in self.headers.items()}
                body = self.rfile.read(int(headers.get("content-length", 0)))
                recording.requests.append(Request(self.path, headers, body))
                queued = (
                    recording.responses.popleft()
                    if recording.responses
                    else (200, recording.default_headers, b"")
                )
                status, extra, answer = queued
                self.send_response(status)
                for name, text in {"Content-Length": str(len(answer)), **extra}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_PUT = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
