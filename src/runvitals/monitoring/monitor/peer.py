"""The process and the user at the other end of a local socket.

The monitor imports this alone: the rest of `socket_address` would cost it 0.05 MB.
"""

from __future__ import annotations

import _socket
import os
import sys

_UCRED_SIZE = 12


def peer_credentials(sock: _socket.socket) -> tuple[int, int]:
    """(process id, user id) of the peer, as the kernel reports them.

    For a listening peer, of the process that called `listen`. Without SO_PEERCRED (macOS) the folder of the
    socket excludes other users, and the process id is 0.
    """
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return 0, os.geteuid()
    raw = sock.getsockopt(_socket.SOL_SOCKET, option, _UCRED_SIZE)
    return int.from_bytes(raw[0:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)


def is_same_user(sock: _socket.socket) -> bool:
    """Return whether the peer belongs to our own user."""
    return peer_credentials(sock)[1] == os.geteuid()
