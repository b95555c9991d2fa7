"""How much freed memory the C library keeps instead of returning it to the system.

glibc gives each thread a part of the memory of its own (an arena), and keeps what is freed in it. A server
with 24 threads that read samples then holds several times what it uses: a third of the memory of a run of 10
million values. Other C libraries are left as they are.
"""

from __future__ import annotations

import ctypes
import sys

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 512 * 1024
"""What is at least so large is returned when it is freed, such as the body of a request with files. By itself
glibc learns from the first to keep the next ones, and then has holes of their size."""
_M_ARENA_MAX = -8
_ARENAS = 2
"""Threads wait for each other while one of them allocates, which is seldom: one at a time runs Python."""


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


def keep_little() -> None:
    """Let the threads that start from now on share a few arenas, and return large blocks at once."""
    library = _glibc()
    if library is not None:
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def return_freed_memory() -> None:
    """Return to the system what is free: it takes about 5 ms."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)
