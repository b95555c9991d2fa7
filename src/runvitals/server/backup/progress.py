"""Lines that say how far a long copy is, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from runvitals.base.progress import duration_text

_REPORTED_S: Final = 10.0


class Progress:
    """Writes a line for each stage of a copy, and every ten seconds one of how far the stage is.

    Args:
        write: writes a line.
        clock: monotonic seconds.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._begun_s = self._reported_s = clock()
        self._before = self._done = 0.0

    def stage(self, text: str) -> None:
        """Write a line now."""
        self._begun_s = self._reported_s = self._clock()
        self._before = self._done
        self._write(text)

    def far(self, text: str, done: float = 0, total: float = 0) -> None:
        """Write a line if the last one was ten seconds ago.

        Args:
            text: how far the stage is.
            done, total: the same in numbers, where the total is known: the line then says when it ends.
        """
        now_s, self._done = self._clock(), done
        if now_s - self._reported_s < _REPORTED_S:
            return
        self._reported_s = now_s
        here = done - self._before  # in this stage
        left_s = max(total - done, 0) * (now_s - self._begun_s) / here if here > 0 and total else 0.0
        self._write(f"{text}, {duration_text(left_s)} left" if left_s else text)
