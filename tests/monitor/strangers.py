"""Another user of this host, played by a child with another user id. Only root can become somebody else."""

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
    """Something done by another user; a descriptor of what it returns. The other user is gone afterwards."""
    if os.geteuid() != 0:
        pytest.skip("OTHER USERS ARE NOT TESTED: only root can become another user")
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
    """Another user who holds a socket's name; what is yielded ends them and tells what they were told.

    Args:
        queue: "listens" and accepts, "does not listen", or "has a full queue" and does not accept.
    """
    ready, ready_end = os.pipe()
    stop_end, stop = os.pipe()

    def hold() -> bytes:
        os.close(stop)
        door = socket.socket(socket.AF_UNIX)
        door.bind(name)
        callers = []
        if queue != "does not listen":
            door.listen(0 if queue == "has a full queue" else 64)
        if queue == "has a full queue":
            caller = socket.socket(socket.AF_UNIX)
            caller.connect(name)
            callers.append(caller)
        os.write(ready_end, b"!")
        os.read(stop_end, 1)
        heard = b""
        if queue == "listens":
            door.setblocking(False)
            try:
                while True:
                    line, _ = door.accept()
                    line.setblocking(False)
                    try:
                        heard += line.recv(65536)
                    except BlockingIOError:
                        continue
            except BlockingIOError:
                pass
        return heard or b"-"

    with as_stranger(hold) as output:
        assert os.read(ready, 1) == b"!"

        def heard() -> bytes:
            os.write(stop, b"!")
            return os.read(output, 65536).replace(b"-", b"")

        try:
            yield heard
        finally:
            for fd in (ready, ready_end, stop_end, stop):
                os.close(fd)
