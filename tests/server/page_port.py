"""The port of servers that show the page to the browser of the tests.

The browser keeps compiled code by its address. Where the servers of a process listen on one port, one after
the other, a page is loaded with three quarters of the CPU.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from runvitals.server.http.serve import listen

_FIRST, _COUNT = 20_000, 10_000  # systems choose ports of connections above these


def listen_for_page() -> socket.socket:
    """A listening socket on the port of this process; while that is in use, on any free one."""
    with suppress(OSError):
        return listen(_FIRST + os.getpid() % _COUNT)
    return listen(0)
