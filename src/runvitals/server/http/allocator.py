"""How much freed memory the C library keeps instead of returning it to the system.

glibc gives each thread a part of the memory of its own (an arena), and keeps what is freed in it. A server
with 24 threads that read samples then holds several times what it uses: a third of the memory of a run of 10
million values. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8
_ARENAS = 2
"""Threads wait for each other while one of them allocates, which is seldom: one at a time runs Python."""


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


def share_arenas() -> None:
    """Let the threads that start from now on share a few arenas."""
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, _ARENAS)


def return_freed_memory() -> None:
    """Return to the system what is free: it takes about 5 ms."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)
