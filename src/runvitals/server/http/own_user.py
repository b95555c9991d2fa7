"""Protection against other users of this machine, who reach its loopback addresses too."""

from __future__ import annotations

import os
from ipaddress import ip_address

import anyio.to_thread
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from runvitals.server.http.same_origin import SAFE_METHODS

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ROOT = 0


class OwnUserChanges:
    """Middleware that lets only the user who started the server, and root, change something.

    Linux says whose a connection within the machine is. Where that is not known, all its users may.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a change by another user."""
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS:
            uid = await anyio.to_thread.run_sync(user_of_connection, scope["client"], scope["server"])
            if uid is not None and uid not in (_ROOT, os.getuid()):
                error = (
                    f"{scope['method']} {scope['path'][:300]}: only the user who started this page may change"
                    f" runs, the uid {os.getuid()} and not {uid}: start `runvitals ui` for your own"
                )
                await JSONResponse({"error": error}, status_code=403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


Address = tuple[str, int | None]


def user_of_connection(client: Address | None, server: Address | None) -> int | None:
    """Return the uid of the process at the other end of a TCP connection; None if that is not known."""
    if client is None or server is None or client[1] is None or server[1] is None:
        return None
    ends = {(_hexadecimal(*_with_port(client)), _hexadecimal(*_with_port(server)))}
    return next((uid for table in _TABLES for uid in _uids(table, ends)), None)


def _with_port(address: Address) -> tuple[str, int]:
    return address[0], address[1] or 0


def _uids(table: str, ends: set[tuple[str, str]]) -> list[int]:
    try:
        with open(table) as file:
            rows = [line.split() for line in file][1:]
    except OSError:
        return []  # not Linux, or hidden
    return [int(row[7]) for row in rows if (_ipv4(row[1]), _ipv4(row[2])) in ends]


def _hexadecimal(host: str, port: int) -> str:
    """Return an address as the kernel's table has it: words of four bytes in the machine's byte order."""
    packed = ip_address(host.partition("%")[0]).packed
    words = [packed[at : at + 4][::-1] for at in range(0, len(packed), 4)]
    return f"{b''.join(words).hex().upper()}:{port:04X}"


def _ipv4(address: str) -> str:
    """Return an IPv4 address that a socket for IPv6 has as that of a socket for IPv4."""
    return address.removeprefix("0000000000000000FFFF0000")
