"""Exactly-once delivery for destinations that write files.

It takes state that changes as a whole, and files that are truncated to their known length before each write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any


@contextmanager
def all_or_nothing(state: dict[str, Any]) -> Iterator[None]:
    """Restore a destination's state if the block raises.

    The same batch will be delivered again and must have the same effect.

    Example:
        >>> with all_or_nothing(context.state):
        ...     write(batch)
    """
    before = deepcopy(state)
    try:
        yield
    except BaseException:
        state.clear()
        state.update(before)
        raise


def append(path: str, length: int, data: bytes | bytearray) -> int:
    """Append to a file whose first `length` bytes are known to be good.

    Anything after them, left by a crash, is truncated. The data are synced to disk before this returns.

    Returns:
        the new length.

    Raises:
        OSError: the write failed.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    with os.fdopen(fd, "wb", buffering=0) as file:
        file.truncate(length)
        file.seek(length)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(fd)
    return length + len(data)
