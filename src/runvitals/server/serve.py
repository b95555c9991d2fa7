"""Running a server until it is told to stop."""

from __future__ import annotations

import ipaddress
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import Protocol

import anyio
import uvicorn
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

HOST = "127.0.0.1"
_BACKLOG = 1024
_KEEP_ALIVE_S = 75
"""Longer than clients that send every minute pause: a new connection costs both sides more than a request."""


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
    """Ends its event streams when it is told to stop; it would wait for their clients to leave otherwise."""

    def __init__(self, app: FastAPI | Application) -> None:
        # One connection a page stays open for its events; nothing is logged of each request.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=3,
            timeout_keep_alive=_KEEP_ALIVE_S,
            server_header=False,
        )
        super().__init__(config)
        self._closing = app.state.closing if isinstance(app, FastAPI) else app.closing

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._closing.set()
        super().handle_exit(sig, frame)


def serve(app: FastAPI | Application, listener: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM, and return once those that had come are answered."""
    # When uvicorn has ended in good order it sends itself the signal again, to the handlers it found.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listener, suppress(KeyboardInterrupt):
        Server(app).run(sockets=[listener])
