"""Another user of this host: a child process with another user id. Requires root."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

STRANGER = 65534  # nobody


@contextmanager
def as_stranger(do: Callable[[], bytes]) -> Iterator[int]:
    """Call `do` as another user. Yields a descriptor of its result; the process is killed afterwards."""
    if os.geteuid() != 0:
        pytest.skip("OTHER USERS ARE NOT TESTED: requires root")
    output, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(output)
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            os.write(write_end, do())
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        yield output
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(output)


@contextmanager
def stranger_on(name: str, queue: str = "listens") -> Iterator[Callable[[], bytes]]:
    """Another user binds a socket name. Yields a function that ends the process and returns what it received.

    Args:
        queue: "listens" (and accepts), "does not listen", or "has a full queue" (and does not accept).
    """
    ready, ready_end = os.pipe()
    stop_end, stop = os.pipe()

    def hold() -> bytes:
        os.close(stop)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        clients = []
        if queue != "does not listen":
            listener.listen(0 if queue == "has a full queue" else 64)
        if queue == "has a full queue":
            client = socket.socket(socket.AF_UNIX)
            client.connect(name)
            clients.append(client)
        os.write(ready_end, b"!")
        os.read(stop_end, 1)
        data = b""
        if queue == "listens":
            listener.setblocking(False)
            try:
                while True:
                    connection, _ = listener.accept()
                    connection.setblocking(False)
                    try:
                        data += connection.recv(65536)
                    except BlockingIOError:
                        continue
            except BlockingIOError:
                pass
        return data or b"-"

    with as_stranger(hold) as output:
        assert os.read(ready, 1) == b"!"

        def received() -> bytes:
            os.write(stop, b"!")
            return os.read(output, 65536).replace(b"-", b"")

        try:
            yield received
        finally:
            for fd in (ready, ready_end, stop_end, stop):
                os.close(fd)
