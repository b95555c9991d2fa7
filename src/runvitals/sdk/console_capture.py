"""Records a command's output while passing it through: `runvitals run --console`.

If our own output is a terminal, the command gets a pseudo-terminal, so that its colours and progress bars
work; otherwise it gets a pipe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time

from runvitals.journal import frames
from runvitals.journal.writer import JournalWriter

_CHUNK = 32 * 1024
# Output beyond this size is passed through but not recorded, and an event reports that.
MAX_BYTES = 64 * 1024 * 1024
# How long to wait, after the command has ended, for output of its children.
_DRAIN_S = 0.3
_HEAD = struct.Struct("<Bq")


class ConsoleCapture:
    """Copies and records the command's stdout and stderr, in a thread of the wrapper process.

    Args:
        journal: where to record the output.

    Example:
        >>> output = ConsoleCapture(journal)
        >>> pid = os.posix_spawn(program, command, os.environ, file_actions=output.actions)
        >>> output.start()
        >>> os.waitpid(pid, 0)
        >>> output.finish()
    """

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._kept_bytes = 0
        self._streams: dict[int, int] = {}  # our end → 1 (stdout) or 2 (stderr)
        self._theirs: dict[int, int] = {}  # the command's end → 1 or 2
        self._terminals: list[tuple[int, int]] = []  # (our real terminal, our end of the command's)
        for stream in (1, 2):
            ours, theirs = self._open(stream)
            self._streams[ours] = stream
            self._theirs[theirs] = stream
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._copy, name="runvitals-output", daemon=True)

    @property
    def actions(self) -> list[tuple[int, int, int]]:
        """File actions for `posix_spawn`."""
        return [(os.POSIX_SPAWN_DUP2, theirs, stream) for theirs, stream in self._theirs.items()]

    def start(self) -> None:
        """Close the command's ends, and start copying. Call it after the command was started."""
        for fd in self._theirs:
            os.close(fd)
        self._thread.start()

    def resize(self) -> None:
        """Copy our terminal's size to the command's."""
        for real, ours in self._terminals:
            fcntl.ioctl(ours, termios.TIOCSWINSZ, fcntl.ioctl(real, termios.TIOCGWINSZ, bytes(8)))

    def finish(self) -> None:
        """Read the rest of the output, and close. Call it after the command has ended."""
        os.close(self._stopped)
        self._thread.join()
        os.close(self._stop)
        for fd in self._streams:
            os.close(fd)
        self._journal.close()

    def _open(self, stream: int) -> tuple[int, int]:
        if not os.isatty(stream):
            return os.pipe()
        ours, theirs = os.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # the real terminal already translates \n to \r\n
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self._terminals.append((stream, ours))
        self.resize()
        return ours, theirs

    def _copy(self) -> None:
        poll = select.poll()
        for fd in (*self._streams, self._stop):
            poll.register(fd, select.POLLIN)
        still_open = set(self._streams)
        until_s: float | None = None
        while still_open:
            wait_ms = None if until_s is None else max(0.0, until_s - time.monotonic()) * 1000
            ready = poll.poll(wait_ms)
            if not ready:
                return  # a process that the command left behind holds the stream open
            for fd, _ in ready:
                if fd == self._stop:
                    poll.unregister(fd)
                    until_s = time.monotonic() + _DRAIN_S
                elif not self._pass(fd):
                    poll.unregister(fd)
                    still_open.discard(fd)

    def _pass(self, fd: int) -> bool:
        """Copy and record available output; False at the end of the stream."""
        try:
            data = os.read(fd, _CHUNK)
        except OSError:  # EIO: the last process has closed the terminal
            return False
        if not data:
            return False
        stream = self._streams[fd]
        self._keep(stream, data)
        with contextlib.suppress(OSError):  # our reader is gone; the output is still recorded
            while data:
                data = data[os.write(stream, data) :]
        return True

    def _keep(self, stream: int, data: bytes) -> None:
        before, self._kept_bytes = self._kept_bytes, self._kept_bytes + len(data)
        now_ms = self._journal.clock.now_ms()
        if self._kept_bytes <= MAX_BYTES:
            self._journal.record(frames.CONSOLE, _HEAD.pack(stream, now_ms) + data)
        elif before <= MAX_BYTES:
            text = f"the command printed more than {MAX_BYTES >> 20} MiB; the rest is not recorded"
            self._journal.json(
                frames.EVENT, {"t": now_ms, "name": "console_cut", "level": "warning", "text": text}
            )
