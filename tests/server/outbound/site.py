"""A web server on 127.0.0.1, and a resolver and connector that lead made-up public names to it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outbound.policy import OutboundPolicy
from tests.certificates import self_signed
from tests.patience import PATIENCE_S

PUBLIC = "93.184.215.14"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Site:
    """Answers by path, by https on one port. `names`: addresses of hosts, a list for each look-up in turn;
    `reached`: the addresses that were connected to."""

    port: int
    tls: ssl.SSLContext
    answers: dict[str, Answer | Callable[[BaseHTTPRequestHandler], Answer]] = field(default_factory=dict)
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    reached: list[tuple[str, int]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> list[str]:
        addresses = self.names.get(host)
        if addresses is None:
            return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)]
        return addresses.pop(0) if len(addresses) > 1 else addresses[0]

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        self.reached.append((address, port))
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def fetcher(self, policy: OutboundPolicy | None = None) -> Fetcher:
        return Fetcher(lambda: policy or OutboundPolicy(), self.resolve, self.connect, self.tls)


class serving:
    """A site while `with` lasts."""

    def __init__(self, folder: Path, *names: str) -> None:
        server_tls, trusted = self_signed(folder, *names)
        site = Site(0, ssl.create_default_context(cafile=str(trusted)))
        site.names = {name: [[PUBLIC]] for name in names}

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                site.requests.append((self.path, dict(self.headers)))
                site.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                planned = site.answers.get(self.path.partition("?")[0], (404, {}, b""))
                status, headers, body = planned(self) if callable(planned) else planned
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _answer

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None
        self._server.socket = server_tls.wrap_socket(self._server.socket, server_side=True)
        site.port = self._server.server_address[1]
        self.site = site
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Site:
        self._thread.start()
        return self.site

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_S)
