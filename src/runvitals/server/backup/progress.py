"""Lines that say how far a long copy is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_REPORTED_S: Final = 10.0


class Progress:
    """Writes a line for each stage of a copy, and every ten seconds one of how far the stage is.

    Args:
        write: writes a line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._reported_s = time.monotonic()

    def stage(self, text: str) -> None:
        """Write a line now."""
        self._reported_s = time.monotonic()
        self._write(text)

    def far(self, text: str) -> None:
        """Write a line if the last one was ten seconds ago."""
        if time.monotonic() - self._reported_s >= _REPORTED_S:
            self.stage(text)
