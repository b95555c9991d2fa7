"""The terminal in full-screen mode: alternate screen, unbuffered keys, and restoring its state."""

from __future__ import annotations

import os
import select
import shutil
import signal
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # alternate screen, no cursor, cleared
_LEAVE = "\x1b[?25h\x1b[?1049l"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_OURS = (*_ENDING, signal.SIGWINCH, signal.SIGTSTP)


class Screen:
    """Puts a terminal into full-screen mode, and restores it at the end, on errors, on signals, and while
    suspended with Ctrl-Z.

    Args:
        input: file descriptor to read keys from.
        output: file descriptor to draw on.

    Attributes:
        resized: set when the terminal's size changes.

    Example:
        >>> with Screen(0, 1) as screen:
        ...     screen.draw(["hello"])
        ...     screen.keys(10.0)
        b'q'
    """

    def __init__(self, input: int, output: int) -> None:
        self._input = input
        self._output = output
        self._attributes: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._wake = self._woken = -1
        self.resized = False

    @property
    def size(self) -> os.terminal_size:
        """The current number of columns and lines."""
        try:
            found = os.get_terminal_size(self._output)
        except OSError:
            found = os.terminal_size((0, 0))
        # A serial line reports no size.
        return found if found.columns and found.lines else shutil.get_terminal_size()

    def __enter__(self) -> Screen:
        self._attributes = termios.tcgetattr(self._input)
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in _OURS:
            self._handlers[number] = signal.signal(number, self._signalled)
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._woken)

    def draw(self, lines: Sequence[str]) -> None:
        """Replace the screen's content with these lines."""
        self._write("\x1b[H" + "\x1b[K\r\n".join(lines) + "\x1b[K\x1b[J")

    def keys(self, timeout_s: float) -> bytes | None:
        """The keys pressed; b"" after the timeout or when the terminal was resized; None if it was closed."""
        ready, _, _ = select.select([self._input, self._woken], [], [], max(timeout_s, 0.0))
        if self._woken in ready:
            os.read(self._woken, 1024)
        if self._input not in ready:
            return b""
        try:
            return os.read(self._input, 1024) or None
        except OSError:  # the terminal was closed
            return None

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGWINCH:
            self.resized = True
        elif number == signal.SIGTSTP:
            self._suspend()
        else:
            raise SystemExit(128 + number)

    def _suspend(self) -> None:
        self._leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        # Execution continues here after SIGCONT.
        signal.signal(signal.SIGTSTP, self._signalled)
        self._enter()
        self.resized = True

    def _enter(self) -> None:
        tty.setcbreak(self._input, termios.TCSANOW)
        self._write(_ENTER)

    def _leave(self) -> None:
        try:
            self._write(_LEAVE)
            termios.tcsetattr(self._input, termios.TCSANOW, self._attributes)
        except (OSError, termios.error):
            return  # the terminal was closed: nothing to restore

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._output, data) :]
