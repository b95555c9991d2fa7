"""Shows how far a transfer of files is: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TextIO

_BAR: Final = 24
_FIRST_S: Final = 1.0
"""Nothing is shown of what takes no longer."""
_BAR_S: Final = 0.2
_LINE_S: Final = 10.0
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class TransferProgress:
    """How far a transfer is. Thread-safe.

    Args:
        verb: what is done, such as `downloading`.
        bytes, files: how much there is to do.
        stream: where it is shown; default: standard error.
        clock: monotonic seconds.

    Example:
        >>> with TransferProgress("downloading", 2_000_000, 2) as progress:
        ...     progress.add(1_000_000, files=1)
    """

    def __init__(
        self,
        verb: str,
        bytes: int,
        files: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verb = verb
        self._total, self._total_files = bytes, files
        self._done = self._done_files = 0
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._clock = clock
        self._start_s = clock()
        self._next_s = self._start_s + (_FIRST_S if self._is_terminal else _LINE_S)
        self._shown = False
        self._lock = threading.Lock()

    def __enter__(self) -> TransferProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def expect(self, bytes: int, files: int) -> None:
        """Note how much there is to do, if that was not known at first."""
        with self._lock:
            self._total, self._total_files = bytes, files

    def add(self, bytes: int, files: int = 0) -> None:
        """Note that some bytes and files are done."""
        with self._lock:
            self._done += bytes
            self._done_files += files
            self._show_in_time()

    def set(self, bytes: int, files: int = 0) -> None:
        """Note how many bytes and files are done, all together."""
        with self._lock:
            self._done, self._done_files = bytes, files
            self._show_in_time()

    def end(self) -> None:
        """Show the last state, if any was shown."""
        with self._lock:
            if self._shown:
                self._show("\n")

    def text(self) -> str:
        """Return the state in one line.

        Example:
            >>> TransferProgress("downloading", 0, 2).text()
            'downloading: 0 of 2 files, 0 B of 0 B'
        """
        files = f"{self._done_files:,} of {self._total_files:,} files, " if self._total_files else ""
        text = f"{self._verb}: {files}{size_text(self._done)} of {size_text(self._total)}"
        seconds = self._clock() - self._start_s
        if not self._done or seconds <= 0:
            return text
        rate = self._done / seconds
        left_s = max(self._total - self._done, 0) / rate
        return f"{text}, {size_text(rate)}/s, {_duration(left_s)} left"

    def _show_in_time(self) -> None:
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + (_BAR_S if self._is_terminal else _LINE_S)
            self._shown = True
            self._show("" if self._is_terminal else "\n")

    def _show(self, end: str) -> None:
        line = self.text()
        if self._is_terminal:
            filled = _BAR if not self._total else min(_BAR, _BAR * self._done // self._total)
            line = f"\r\x1b[K{'█' * filled}{'░' * (_BAR - filled)} {line}"
        self._stream.write(line + end)
        self._stream.flush()


def size_text(count: float) -> str:
    """Return a number of bytes with its unit, in powers of 1000.

    Example:
        >>> size_text(999), size_text(1_500_000)
        ('999 B', '1.5 MB')
    """
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} B"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(min(seconds, 360_000)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
