"""Run a server until it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Protocol

import anyio
import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from runvitals.server.http.connection import ConnectionConfig, ConnectionLimits, check_timeouts
from runvitals.server.http.logs import AccessLog, LogFormat, configure

HOST = "127.0.0.1"
_BACKLOG = 1024
_MOST_CONNECTIONS = 10_000
"""Each takes a file descriptor, and some 10 kB."""
_SPARE_FILES = 256
_SWITCH_S = 0.001
"""After so long a thread that computes lets another one. With Python's 5 ms a fifth fewer requests are
answered, because they wait for the threads that commit and seal samples.
"""
_GC_THRESHOLD = 20_000
"""Allocated objects between two runs of the garbage collector. With Python's default of 700, and with the
imported modules among the objects that each full run visits, it takes a quarter of the CPU of a small
request.
"""


class Application(Protocol):
    """An ASGI application whose event streams end when `closing` is set."""

    closing: anyio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


def listen(port: int, host: str = HOST) -> socket.socket:
    """A listening socket. Port 0 is any free one.

    Raises:
        OSError: no such address here; the port is taken, or not ours to take.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def is_loopback_address(listener: socket.socket) -> bool:
    """Whether only this machine can reach a listening socket."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


class Server(uvicorn.Server):
    """A uvicorn server that ends its event streams at shutdown, instead of waiting for their clients.

    Args:
        bounds: of connections.
        refused: called for each rejected connection: the client's address, the status, the reason.
    """

    def __init__(
        self,
        app: FastAPI | Application,
        bounds: ConnectionLimits | None = None,
        refused: Callable[[str, int, str], None] = lambda client, status, reason: None,
    ) -> None:
        # One connection a page stays open for its events; nothing is logged of each request.
        config = ConnectionConfig(
            app,
            bounds or ConnectionLimits(),
            refused,
            getattr(app, "fast_path", None),
            access_log=False,
            log_config=None,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=3,
            server_header=False,
            proxy_headers=False,  # on the way of every sample; who needs them asks for them
        )
        super().__init__(config)
        self._closing = app.state.closing if isinstance(app, FastAPI) else app.closing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._closing.set()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            check_timeouts(self.server_state.connections, asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def serve(app: FastAPI | Application, listener: socket.socket, log_format: LogFormat = "text") -> None:
    """Answer requests until SIGINT or SIGTERM, and return once those that had come are answered.

    Requests that fail, are refused or take long are logged to stderr.
    """
    configure(log_format)
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()  # modules stay for as long as the process does: the collector need not visit them again
    gc.set_threshold(_GC_THRESHOLD)
    # When uvicorn has ended in good order it sends itself the signal again, to the handlers it found.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listener, suppress(KeyboardInterrupt):
        log = AccessLog(app)
        Server(log, ConnectionLimits(connections=_room_for_connections()), log.refused).run(
            sockets=[listener]
        )


def _room_for_connections() -> int:
    """Let this process open as many files as it may; how many connections that leaves room for."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where sockets are no files
        return _MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return (
        _MOST_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else max(16, min(_MOST_CONNECTIONS, soft - _SPARE_FILES))
    )
