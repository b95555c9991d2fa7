"""Serves assistants over HTTP on this machine's loopback."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final

import anyio.to_thread
import uvicorn
from mcp.server.mcpserver import MCPServer

from runvitals.server.http.own_user import user_of_connection
from runvitals.server.http.same_origin import LoopbackNames, SameOrigin
from runvitals.server.http.serve import until_interrupted
from runvitals.tools.assistant.requests import ApiOfKey, bearer

PATH: Final = "/mcp"
_SHUTDOWN_S: Final = 3


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
        """Refuse a request of another user without a key."""
        if scope["type"] == "http" and not await self._is_allowed(scope):
            error = "only the user who started `runvitals mcp` has access"
            error += (
                " without a key: send yours as `Authorization: Bearer KEY`"
                if self._takes_keys
                else ": use stdio"
            )
            await _refuse(send, error)
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


async def _refuse(send: Any, error: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": error}).encode()})


def serve(server: MCPServer[ApiOfKey], listener: socket.socket, takes_keys: bool) -> None:
    """Serve until SIGINT or SIGTERM. Each request is on its own: its key decides what it may do."""
    app = server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, json_response=True)
    config = uvicorn.Config(
        LoopbackNames(SameOrigin(OwnUserOrKey(app, takes_keys))),
        access_log=False,
        log_level="warning",
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_S,
    )
    with until_interrupted(), listener:
        uvicorn.Server(config).run(sockets=[listener])
