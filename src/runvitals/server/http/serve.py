"""Serve an application until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Protocol

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from runvitals.server.http.connection import ConnectionConfig, check_timeouts
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.logs import AccessLog, LogFormat, configure
from runvitals.server.http.public_path import BelowPath
from runvitals.server.services import app_services

HOST = "127.0.0.1"
_BACKLOG = 1024
_MAX_CONNECTIONS = 10_000
"""Each takes a file descriptor and about 10 kB."""
_SPARE_FILES = 256
_RAISED_SIGNAL = 3
"""The signal that is raised as an error while a server ends, for whoever does not want to wait."""
LONGEST_END_S = 25.0
"""From the first signal to the end of a server. Orchestrators allow 30 s or more before they kill it."""
_SWITCH_S = 0.001
"""Thread switch interval. With Python's 5 ms the server answers a fifth fewer requests, because they wait for
the threads that commit and seal samples.
"""
_GC_THRESHOLD = 20_000
"""Allocated objects between two runs of the garbage collector; Python's default is 700. Together with
`gc.freeze()` it saves a fifth of the CPU time of an ingest request (220 µs instead of 270 µs) when 16 writers
send envelopes of 100 values at the same time. With a single writer it saves nothing.
"""


log = logging.getLogger("runvitals.server")


class Application(Protocol):
    """An ASGI application whose event streams end when `closing` is set."""

    closing: anyio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


class EndSignals:
    """The signals that ask this process to end, and the time that it has from the first one on.

    Args:
        longest_end_s: the process ends this long after the first signal, whatever its threads wait for: a
            bucket or database may never answer. As when it is killed, nothing that was acknowledged is lost.
            None: it ends when its threads have.

    Attributes:
        arrived: how many signals were noted.
    """

    def __init__(self, longest_end_s: float | None = None) -> None:
        self.arrived = 0
        self._longest_end_s = longest_end_s

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: only note it, but raise an error at the third."""
        self.arrived += 1
        self.limit_end()
        if self.arrived >= _RAISED_SIGNAL:
            raise KeyboardInterrupt

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal by an error, in programs without threads so far."""
        self.limit_end()
        raise KeyboardInterrupt

    def limit_end(self) -> None:
        """Let the time begin in which this process has to end."""
        if self._longest_end_s is not None:
            timer = threading.Timer(self._longest_end_s, _end_now, [self._longest_end_s])
            timer.daemon = True
            timer.start()
            self._longest_end_s = None


def _end_now(after_s: float) -> None:
    """End this process. The log said before what it waits for."""
    log.error("ends now, %.0f s after the signal, without waiting any longer", after_s)
    os._exit(0)


def listen(port: int, host: str = HOST) -> socket.socket:
    """A listening socket. Port 0 means any free port.

    Raises:
        OSError: this machine does not have the address; the port is in use, or reserved for root.
    """
    bound = bind(port, host)
    try:
        start_listening(bound)
    except OSError:
        bound.close()
        raise
    return bound


def bind(port: int, host: str = HOST) -> socket.socket:
    """A socket that has its port but refuses connections until `start_listening`. Port 0 means any free port.

    A server takes its port before it opens its stores, so that a port in use is reported at once. If it
    listened as well, a load balancer would send it requests that nobody answers yet.

    Raises:
        OSError: this machine does not have the address; the port is in use, or reserved for root.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def start_listening(bound: socket.socket) -> None:
    """Accept connections at a socket of `bind`, shared ones once; raise OSError if the port was taken."""
    bound.listen(_BACKLOG)


def is_loopback_address(listener: socket.socket) -> bool:
    """Return whether a socket listens on loopback, where only this machine can reach it."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


class Server(uvicorn.Server):
    """A uvicorn server that ends its event streams at shutdown instead of waiting for their clients.

    Args:
        limits: of connections.
        rejected: called for each rejected connection with the client's address, the status and the reason.
        signals: those that arrived before this server handled them itself.
    """

    def __init__(
        self,
        app: Starlette | Application,
        limits: ConnectionLimits | None = None,
        rejected: Callable[[str, int, str], None] = lambda client, status, reason: None,
        signals: EndSignals | None = None,
    ) -> None:
        config = ConnectionConfig(
            app,
            limits or ConnectionLimits(),
            rejected,
            getattr(app, "fast_path", None),
            access_log=False,
            log_config=None,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=3,
            server_header=False,
            proxy_headers=False,  # not needed for ingest; `SharedServer` adds them for the page
        )
        super().__init__(config)
        self._closing = app_services(app).closing if isinstance(app, Starlette) else app.closing
        self._signals = signals or EndSignals()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, unless a signal came before."""
        await super().startup(sockets)
        if self._signals.arrived:
            self._closing.set()
            self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End streams at the first signal, so that the shutdown does not wait for them."""
        self._signals.limit_end()
        self._closing.set()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Close connections that take too long, once a second."""
        if counter % 10 == 0:
            check_timeouts(self.server_state.connections, asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def serve(
    app: Starlette | Application,
    listener: socket.socket,
    log_format: LogFormat = "text",
    signals: EndSignals | None = None,
    path: str = "",
) -> None:
    """Serve until SIGINT or SIGTERM, and return when the requests in flight are answered.

    Failed, rejected and slow requests are logged to stderr.

    Args:
        signals: of the `signals_noted` block that this is called in; None if there is none.
        path: the path below which proxies pass requests on, if they keep it.
    """
    configure(log_format)
    with until_interrupted(), ExitStack() as stack, listener, _tuned_interpreter():
        log, limits = AccessLog(app), ConnectionLimits(connections=_max_connections())
        signals = signals or stack.enter_context(signals_noted())
        below = BelowPath(log, log.closing, path)
        Server(below, limits, log.rejected, signals).run(sockets=[listener])


@contextmanager
def signals_noted(signals: EndSignals | None = None) -> Iterator[EndSignals]:
    """Only note that SIGINT or SIGTERM has arrived. Yields what notes them.

    An error that is raised at an arbitrary place may leave a lock held, such as that of `logging`. Threads
    that need it would then never end. So a program with threads ends where it looks whether it should; only
    the third signal raises an error.

    While uvicorn serves, it handles both signals itself, and raises them again after a graceful shutdown.
    """
    signals = signals or EndSignals()
    before = {number: signal.signal(number, signals.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def until_interrupted(signals: EndSignals | None = None) -> Iterator[None]:
    """Leave the block, without an error, at SIGINT or SIGTERM.

    For programs without threads so far, which may take long to start: see `signals_noted`.
    """
    before = signal.signal(signal.SIGTERM, (signals or EndSignals()).interrupt)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _tuned_interpreter() -> Iterator[None]:
    """Set the thread switch interval and the garbage collector for a server; they are restored afterwards."""
    switch_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()  # a full collection then need not visit the imported modules, which are never freed
    gc.set_threshold(_GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        sys.setswitchinterval(switch_s)


def _max_connections() -> int:
    """Raise the limit of open files as far as allowed, and return how many connections it leaves room for."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where sockets are not files
        return _MAX_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _MAX_CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return (
        _MAX_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else max(16, min(_MAX_CONNECTIONS, soft - _SPARE_FILES))
    )
