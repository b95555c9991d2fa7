"""Running the server on loopback until it is told to stop."""

from __future__ import annotations

import socket
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A listening socket on loopback. Port 0 is any free one.

    Raises:
        OSError: the port is taken, or not ours to take.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


class Server(uvicorn.Server):
    """Ends its event streams when it is told to stop; it would wait for their clients to leave otherwise."""

    def __init__(self, app: FastAPI) -> None:
        # One connection a page stays open for its events; nothing is logged of each request.
        config = uvicorn.Config(
            app, access_log=False, log_level="warning", lifespan="off", timeout_graceful_shutdown=3
        )
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.closing.set()
        super().handle_exit(sig, frame)


def serve(app: FastAPI, listener: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM."""
    with listener, suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended in good order
        Server(app).run(sockets=[listener])
