"""Running a server until it is told to stop."""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

import anyio
import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from runvitals.server.logs import AccessLog, LogFormat, configure

HOST = "127.0.0.1"
_BACKLOG = 1024
_CONNECTIONS = 10_000
"""More at once are answered 503. Each takes a file descriptor, and some 10 kB."""
_HEADERS_S = 30.0
"""The longest that the head of a request may take to arrive; bodies have a limit of their own."""
_SPARE_FILES = 256
_KEEP_ALIVE_S = 75
"""Longer than clients that send every minute pause: a new connection costs both sides more than a request."""
_SWITCH_S = 0.001
"""After so long a thread that computes lets another one. With Python's 5 ms a fifth fewer requests are
answered, because they wait for the threads that commit and seal samples.
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
    """Ends its event streams when it is told to stop; it would wait for their clients to leave otherwise.

    Args:
        connections: as many may be open at once.
        headers_s: a connection on which no request begins for so long is closed.
    """

    def __init__(
        self, app: FastAPI | Application, connections: int = _CONNECTIONS, headers_s: float = _HEADERS_S
    ) -> None:
        # One connection a page stays open for its events; nothing is logged of each request.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            limit_concurrency=connections,
            http="httptools",  # what `_close_silent` knows
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=3,
            timeout_keep_alive=_KEEP_ALIVE_S,
            server_header=False,
            proxy_headers=False,  # on the way of every sample; who needs them asks for them
        )
        super().__init__(config)
        self._headers_s = headers_s
        self._silent: dict[Any, float] = {}
        self._closing = app.state.closing if isinstance(app, FastAPI) else app.closing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._closing.set()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._close_silent(time.monotonic())
        return await super().on_tick(counter)

    def _close_silent(self, now_s: float) -> None:
        """Close connections on which a request does not begin, or not go on, before its head is there.

        Uvicorn looks after those that pause between two requests. A timer for each head would cost every
        request something; looking at all connections once a second costs none.
        """
        connections: set[Any] = self.server_state.connections
        silent = {
            one
            for one in connections
            if one.timeout_keep_alive_task is None and (one.cycle is None or one.cycle.response_complete)
        }
        self._silent = {one: self._silent.get(one, now_s) for one in silent}
        for one, since_s in self._silent.items():
            if now_s - since_s > self._headers_s:
                one.transport.close()


def serve(app: FastAPI | Application, listener: socket.socket, log_format: LogFormat = "text") -> None:
    """Answer requests until SIGINT or SIGTERM, and return once those that had come are answered.

    Requests that fail, are refused or take long are logged to stderr.
    """
    configure(log_format)
    sys.setswitchinterval(_SWITCH_S)
    # When uvicorn has ended in good order it sends itself the signal again, to the handlers it found.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listener, suppress(KeyboardInterrupt):
        Server(AccessLog(app), _room_for_connections()).run(sockets=[listener])


def _room_for_connections() -> int:
    """Let this process open as many files as it may; how many connections that leaves room for."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where sockets are no files
        return _CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _CONNECTIONS if soft == resource.RLIM_INFINITY else max(16, min(_CONNECTIONS, soft - _SPARE_FILES))
