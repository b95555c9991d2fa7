"""The destination `prometheus:127.0.0.1:9401`: runs of this host at `http://127.0.0.1:9401/metrics`.

Another site could point its host name at this address and let a browser read the page (DNS rebinding). So the
server only answers requests for IP addresses, for names of this host, and for configured names.
"""

from __future__ import annotations

import gzip
import ipaddress
import socket
import threading
import time
from collections.abc import Collection, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from runvitals.base.terminal_text import inert
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination
from runvitals.relay.destinations.prometheus.exposition import Sample, content_type, render
from runvitals.relay.destinations.prometheus.latest_values import LatestRunValues
from runvitals.version import __version__

HOST, PORT = "127.0.0.1", 9401
PATH = "/metrics"
# Connections that send nothing are closed after this long.
TIMEOUT_S = 10.0
_MIN_COMPRESSED = 1024


def read_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT`, `PORT`, or ""; `#hosts=…` may follow, see `read_names`.

    Raises:
        ValueError: invalid address.

    Example:
        >>> read_address("//127.0.0.1:9401"), read_address("9402"), read_address("[::1]:9401")
        (('127.0.0.1', 9401), ('127.0.0.1', 9402), ('::1', 9401))
    """
    listen = text.partition("#")[0].removeprefix("//").rstrip("/")
    try:
        parts = urlsplit(f"//:{listen}" if listen.isdigit() else f"//{listen}")
        host, port = parts.hostname or HOST, parts.port
    except ValueError:
        parts = None
    if parts is None or "@" in listen or parts.netloc != parts.geturl().removeprefix("//"):
        raise ValueError(f"invalid listen address {text!r}; expected HOST:PORT, PORT or HOST")
    return host, PORT if port is None else port


def read_names(text: str) -> frozenset[str]:
    """Return the host names whose requests the server accepts besides this host's own.

    Raises:
        ValueError: unknown option.

    Example:
        >>> sorted(read_names("0.0.0.0:9401#hosts=node1.example.org,metrics.example.org"))
        ['metrics.example.org', 'node1.example.org']
    """
    listen, _, options = text.partition("#")
    values = dict(parse_qsl(options, keep_blank_values=True))
    unknown = sorted(values.keys() - {"hosts"})
    if unknown:
        raise ValueError(f"prometheus: unknown option {unknown[0]!r}; expected hosts")
    names = {name.strip().lower() for name in values.get("hosts", "").split(",") if name.strip()}
    return frozenset({*names, read_address(listen)[0].lower()})


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Exporter:
    """A small HTTP server that exposes several runs.

    Args:
        address: where to listen; port 0: any free port.

    Raises:
        OSError: it could not listen there.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._latest: dict[str, LatestRunValues] = {}
        self._names = {"localhost", socket.gethostname().lower(), address[0].lower()}
        self._lock = threading.Lock()
        self._server = _server(address, self)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    def latest(self, run_id: str) -> LatestRunValues:
        """Return the values of a run, to be filled in."""
        with self._lock:
            return self._latest.setdefault(run_id, LatestRunValues())

    def add_names(self, names: Collection[str]) -> None:
        """Accept requests for more host names."""
        with self._lock:
            self._names.update(names)

    def accepts_host(self, host: str) -> bool:
        """Return whether to answer requests with this Host header."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        except ValueError:
            return False
        return name in self._names or _is_address(name)

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """Yield all values to show now; runs that are over are removed."""
        with self._lock:
            runs = list(self._latest.items())
        for run_id, latest in runs:
            yield from latest.samples(now_ms)
            if latest.is_over(now_ms):
                self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """Serve the values of a run no longer."""
        with self._lock:
            self._latest.pop(run_id, None)

    def close(self) -> None:
        """Stop serving, and close the socket."""
        self._server.shutdown()
        self._server.server_close()


def _server(address: tuple[str, int], exporter: Exporter) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Report nothing: a scraper that disconnected early will scrape again."""

    class Handler(_Handler):
        runs = exporter

    return Server(address, Handler)


class _Handler(BaseHTTPRequestHandler):
    runs: Exporter
    protocol_version = "HTTP/1.1"
    server_version = f"runvitals/{__version__}"
    sys_version = ""
    timeout = TIMEOUT_S

    def do_GET(self) -> None:
        host = self.headers.get("Host")
        if host is not None and not self.runs.accepts_host(host):
            text = f"{inert(host[:300])} is not a name of this host; allow it with prometheus:…#hosts=NAME\n"
            self._respond(403, "text/plain; charset=utf-8", text.encode())
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._respond(200, "text/plain; charset=utf-8", f"runvitals: see {PATH}\n".encode())
        elif path == PATH:
            kind = content_type(self.headers.get("Accept", ""))
            self._respond(200, kind, render(self.runs.samples(time.time_ns() // 1_000_000), kind))
        else:
            self._respond(404, "text/plain; charset=utf-8", f"not found; the only page is {PATH}\n".encode())

    do_HEAD = do_GET

    def _respond(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if len(body) >= _MIN_COMPRESSED and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing about a scrape."""


# All runs of a process that are exposed at one address share its server.
_lock = threading.Lock()
_exporters: dict[tuple[str, int], tuple[Exporter, int]] = {}


def acquire(address: tuple[str, int]) -> Exporter:
    """Return the server of an address, started if there is none, or raise OSError; `release` it when done."""
    with _lock:
        exporter, users = _exporters.get(address) or (Exporter(address), 0)
        _exporters[address] = (exporter, users + 1)
        return exporter


def release(address: tuple[str, int]) -> None:
    """Stop using the server of an address; the last user stops it."""
    with _lock:
        exporter, users = _exporters.pop(address)
        if users > 1:
            _exporters[address] = (exporter, users - 1)
        else:
            exporter.close()


class PrometheusDestination(Destination):
    """Exposes the newest values of a run for scraping. History is not kept.

    Args:
        address: `HOST:PORT` or `PORT`; default 127.0.0.1:9401. `#hosts=NAME,NAME` allows requests with host
            names other than this host's own.

    Raises:
        ValueError: invalid address.
        OSError: another process listens there; the relay retries.
    """

    name = "prometheus"
    interval_s = 2.0

    def __init__(self, address: str, context: Context) -> None:
        self._address = read_address(address)
        self._run = context.run_id
        names = read_names(address)
        self._exporter: Exporter | None = acquire(self._address)
        self._exporter.add_names(names)

    def deliver(self, batch: Batch) -> None:
        """Serve the latest values of a batch."""
        if self._exporter is not None:
            self._exporter.latest(self._run).add(batch, time.time_ns() // 1_000_000)

    def close(self) -> None:
        """Release the exporter, which other runs may use."""
        if self._exporter is not None:
            self._exporter = None
            release(self._address)
