"""Loads what a command needs with little CPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def for_imports() -> Iterator[None]:
    """Import and create what stays for as long as the process runs.

    Looking for garbage among it takes a fifth of that time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
