"""Shows how far a long work is, and when it ends: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TextIO

from runvitals.base.terminal_text import fitting, raw

_BAR: Final = 24
_FIRST_S: Final = 1.0
"""Nothing is shown of what takes no longer."""
_BAR_S: Final = 0.2
_LINE_S: Final = 10.0
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_CLEAR: Final = "\r\x1b[K"


class WorkProgress:
    """How far a work is. Thread-safe.

    Args:
        verb: what is done, such as `importing`.
        total: how much there is to do; 0 if that is not known.
        noun: what is counted.
        stream: where it is shown; default: standard error.
        clock: monotonic seconds.

    Attributes:
        detail: what else to say, such as ", 500 rows".

    Example:
        >>> with WorkProgress("importing", 12, "runs") as progress:
        ...     progress.add()
    """

    def __init__(
        self,
        verb: str,
        total: int,
        noun: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verb, self._noun = verb, noun
        self._total, self._done = total, 0
        self._stream = raw(sys.stderr if stream is None else stream)  # a bar moves the cursor
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._clock = clock
        self._start_s = clock()
        self._next_s = self._start_s + (_FIRST_S if self._is_terminal else _LINE_S)
        self._is_shown = False
        self._last_line = self.detail = ""
        self._lock = threading.Lock()

    def __enter__(self) -> WorkProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def expect(self, total: int) -> None:
        """Note how much there is to do, if that was not known at first."""
        with self._lock:
            self._total = total

    def add(self, count: int = 1) -> None:
        """Note that so much more is done."""
        with self._lock:
            self._done += count
            self._show_in_time()

    def print(self, text: str) -> None:
        """Print a line to standard output, without a bar in it."""
        with self._lock:
            if self._is_shown and self._is_terminal:
                self._stream.write(_CLEAR)
                self._stream.flush()
            print(text, flush=True)

    def end(self) -> None:
        """Show the last state, if any was shown."""
        with self._lock:
            if self._is_shown and (self._is_terminal or self.text() != self._last_line):
                self._show("\n")

    def text(self) -> str:
        """Return the state in one line.

        Example:
            >>> WorkProgress("importing", 12, "runs").text()
            'importing: 0 of 12 runs'
        """
        total = f" of {self._total:,}" if self._total else ""
        return f"{self._verb}: {self._done:,}{total} {self._noun}{self.detail}{self._time_left()}"

    def _time_left(self) -> str:
        """Return how long the rest takes; "" if that is not known."""
        seconds = self._clock() - self._start_s
        if not self._total or not self._done or seconds <= 0:
            return ""
        return f", {duration_text(max(self._total - self._done, 0) * seconds / self._done)} left"

    def _show_in_time(self) -> None:
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + (_BAR_S if self._is_terminal else _LINE_S)
            self._is_shown = True
            self._show("" if self._is_terminal else "\n")

    def _show(self, end: str) -> None:
        line = self.text()
        if self._is_terminal:
            filled = _BAR if not self._total else min(_BAR, _BAR * self._done // self._total)
            bar = fitting("█" * filled + "░" * (_BAR - filled), self._stream)
            line = _CLEAR + _in_one_line(bar, line, self._columns())
        self._last_line = line
        self._stream.write(line + end)
        self._stream.flush()

    def _columns(self) -> int:
        """Return the width of the terminal, which may change; 0 if it does not say so."""
        try:
            return os.get_terminal_size(self._stream.fileno()).columns
        except OSError:
            return 0


def _in_one_line(bar: str, text: str, columns: int) -> str:
    """Return a bar and a text as far as one line has room: what goes on in the next one cannot be cleared.

    Example:
        >>> _in_one_line("##--", "importing: 5 of 12", 40), _in_one_line("##--", "importing: 5 of 12", 20)
        ('##-- importing: 5 of 12', 'importing: 5 of 12')
    """
    whole = f"{bar} {text}"
    return whole if not columns or len(whole) < columns else text[: columns - 1]


class TransferProgress(WorkProgress):
    """How far a transfer of files is, in bytes.

    Args:
        verb: what is done, such as `downloading`.
        bytes, files: how much there is to do.
        noun: what the files are, if something else.

    Example:
        >>> with TransferProgress("downloading", 2_000_000, 2) as progress:
        ...     progress.add(1_000_000, files=1)
    """

    def __init__(
        self,
        verb: str,
        bytes: int,
        files: int,
        noun: str = "files",
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(verb, bytes, noun, stream, clock)
        self._total_files, self._done_files = files, 0

    def __enter__(self) -> TransferProgress:
        return self

    def expect(self, total: int, files: int = 0) -> None:
        """Note how many bytes and files there are, if that was not known at first."""
        with self._lock:
            self._total, self._total_files = total, files

    def add(self, count: int = 1, files: int = 0) -> None:
        """Note that some bytes and files are done."""
        with self._lock:
            self._done += count
            self._done_files += files
            self._show_in_time()

    def set(self, bytes: int, files: int = 0) -> None:
        """Note how many bytes and files are done, all together."""
        with self._lock:
            self._done, self._done_files = bytes, files
            self._show_in_time()

    def text(self) -> str:
        """Return the state in one line.

        Example:
            >>> TransferProgress("downloading", 0, 2).text()
            'downloading: 0 of 2 files, 0 B of 0 B'
        """
        files = f"{self._done_files:,} of {self._total_files:,} {self._noun}, " if self._total_files else ""
        text = f"{self._verb}: {files}{size_text(self._done)} of {size_text(self._total)}"
        seconds = self._clock() - self._start_s
        rate = f", {size_text(self._done / seconds)}/s" if self._done and seconds > 0 else ""
        return f"{text}{rate}{self._time_left()}"


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


def duration_text(seconds: float) -> str:
    """Return minutes and seconds, with hours if there are some.

    Example:
        >>> duration_text(61), duration_text(3661)
        ('1:01', '1:01:01')
    """
    minutes, rest = divmod(round(min(seconds, 360_000)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
