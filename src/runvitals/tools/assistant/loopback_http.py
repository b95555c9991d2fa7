"""Serves assistants over HTTP on this machine's loopback."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final

import anyio.to_thread
import uvicorn
from mcp.server.mcpserver import MCPServer

from runvitals.server.http.connection import ConnectionConfig, check_timeouts
from runvitals.server.http.connection_limits import ConnectionLimits
from runvitals.server.http.own_user import user_of_connection
from runvitals.server.http.same_origin import LoopbackNames, SameOrigin
from runvitals.server.http.serve import until_interrupted
from runvitals.tools.assistant.requests import ApiOfKey, bearer

PATH: Final = "/mcp"
_SHUTDOWN_S: Final = 3
_CONNECTIONS: Final = 100


class OwnUserOrKey:
    """Middleware that answers the user who started it, and with a server those who send a key.

    Other users of the machine reach its loopback too. Linux says whose a connection is; where that is not
    known, a request needs a key.

    Args:
        takes_keys: whether there is a server that checks keys.
    """

    def __init__(self, app: Callable[..., Any], takes_keys: bool) -> None:
        self._app, self._takes_keys = app, takes_keys

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse a request of another user without a key, and methods that only sessions need."""
        if scope["type"] == "http" and scope["method"] != "POST":
            await _refuse(send, f"{PATH} takes POST only: there are no sessions", 405, (b"allow", b"POST"))
            return
        if scope["type"] == "http" and not await self._is_allowed(scope):
            error = "only the user who started `runvitals mcp` has access"
            error += (
                " without a key: send yours as `Authorization: Bearer KEY`"
                if self._takes_keys
                else ": use stdio"
            )
            await _refuse(send, error, 401, (b"www-authenticate", b"Bearer"))
            return
        await self._app(scope, receive, send)

    async def _is_allowed(self, scope: Any) -> bool:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if self._takes_keys and bearer(headers):
            return True
        uid = await anyio.to_thread.run_sync(user_of_connection, scope["client"], scope["server"])
        return uid in (0, os.getuid())


async def _refuse(send: Any, error: str, status: int, header: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", b"application/json"), header]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})


class _BoundedServer(uvicorn.Server):
    """Closes connections that take too long: other users of the machine reach the port, too."""

    async def on_tick(self, counter: int) -> bool:
        """Check the time limits once a second."""
        if counter % 10 == 0:
            check_timeouts(self.server_state.connections, asyncio.get_running_loop().time())
        return await super().on_tick(counter)


def serve(server: MCPServer[ApiOfKey], listener: socket.socket, takes_keys: bool) -> None:
    """Serve until SIGINT or SIGTERM. Each request is on its own: its key decides what it may do."""
    app = server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, json_response=True)
    config = ConnectionConfig(
        LoopbackNames(SameOrigin(OwnUserOrKey(app, takes_keys))),
        ConnectionLimits(connections=_CONNECTIONS),
        lambda client, status, reason: None,
        None,
        access_log=False,
        log_level="warning",
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    with until_interrupted(), listener:
        _BoundedServer(config).run(sockets=[listener])
