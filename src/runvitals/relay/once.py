"""What destinations need that have everything exactly once: state that moves in one piece, and files whose
known length is all that counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any


@contextmanager
def all_or_nothing(state: dict[str, Any]) -> Iterator[None]:
    """Put a destination's state back to what it was if something fails: the batch comes again as it was, and
    the same has to become of it.

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
    """Append to a file of which so many bytes are known to be good; what a crash left behind them is cut off.
    The data are on the disk itself afterwards.

    Returns:
        its new length.

    Raises:
        OSError: the disk does not take it.
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
