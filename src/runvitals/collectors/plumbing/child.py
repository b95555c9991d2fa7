"""A program started beside us, which nobody ever waits for: pipes that do not block, a process group to kill.

`subprocess` would cost 3 MB of memory; `posix_spawn` does not copy the parent, and takes 0.5 ms.
"""

from __future__ import annotations

import _signal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHUNK = 1 << 16
_COMPLAINT_BYTES = 4096
# How long bury() waits for a killed child to be gone; one whose driver hangs is left to init.
_BURIAL_S = 0.2
# Linux's F_SETPIPE_SZ, and what every user may ask for. With the usual 64 KiB, a child that prints 450 KB a
# second would wait for us seven ticks.
_SET_PIPE_SIZE, _PIPE_BYTES = 1031, 1 << 20


class ToolFailed(Exception):
    """A program could not be started, failed, hung, or printed too much; the text names it and says which.

    Args:
        output: what it had printed by then: some tools print a good answer and crash on their way out.
        has_ended: whether it ended by itself, so that nothing would have followed.
    """

    def __init__(self, text: str, output: bytes = b"", has_ended: bool = False) -> None:
        super().__init__(text)
        self.output = output
        self.has_ended = has_ended


class Child:
    """A running program in a process group of its own. It sees LC_ALL=C and no input.

    Args:
        argv: program (an absolute path) and arguments.
        environ: variables to set beside our own.
        mono_s: the moment of its start.

    Raises:
        ToolFailed: it could not be started.
    """

    __slots__ = ("_complaint", "_err", "_out", "exit_code", "killed_s", "pid", "started_s")

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], mono_s: float) -> None:
        self.started_s = mono_s
        self.killed_s: float | None = None
        # As os.waitstatus_to_exitcode: -9 = killed by signal 9. None while it runs, or if nobody can know.
        self.exit_code: int | None = None
        self._complaint = b""
        try:
            self.pid, self._out, self._err = _spawn(argv, {**os.environ, "LC_ALL": "C", **environ})
        except OSError as error:
            raise ToolFailed(f"{argv[0]} cannot be started: {error.strerror}") from None

    def ended(self) -> bool:
        """Whether the program itself has ended; what it started may still hold the pipe."""
        if not self.pid:
            return True
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # whoever started us ignores SIGCHLD, and the kernel reaps by itself
            self.pid = 0
            return True
        if not pid:
            return False
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self._out >= 0 and _has_writer(self._out):
            self._kill_group()  # a grandchild of ours: the group, and so its number, is still in use
        self.pid = 0
        return True

    def read(self, most: int) -> bytes:
        """What lies in the pipe, at most about `most` bytes."""
        self._read_complaint()
        return _read(self._out, most)

    def fate(self, output: bytes) -> str:
        """How it ended, and the first line of what it said about it."""
        code = self.exit_code
        how = "ended" if code is None else f"exited with {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}"
        words = _telling_line(self._complaint) or _telling_line(output[:_COMPLAINT_BYTES])
        return f"{how}: {words}" if words else how

    def kill(self, mono_s: float) -> None:
        """Kill it and all it has started, and let go of its pipes. `ended()` says when it is gone."""
        self.killed_s = mono_s
        if self.pid:
            self._kill_group()
        self.close()

    def close(self) -> None:
        """Let go of the pipes."""
        if self._out >= 0:
            os.close(self._out)
            os.close(self._err)
            self._out = self._err = -1

    def bury(self) -> None:
        """Kill it, and wait a moment for its end, so that no zombie is left."""
        self.kill(self.started_s)
        until_s = time.monotonic() + _BURIAL_S
        while not self.ended() and time.monotonic() < until_s:
            time.sleep(0.001)

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # nobody is left in it; or it has become another user's

    def _read_complaint(self) -> None:
        # What is more than we keep is read all the same, or the child would wait for us for ever.
        data = _read(self._err, _PIPE_BYTES)
        self._complaint += data[: _COMPLAINT_BYTES - len(self._complaint)]


def _spawn(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int, int]:
    """(pid, what to read its output from, what to read its complaints from)."""
    if not hasattr(os, "posix_spawn"):
        raise ToolFailed(f"{argv[0]} cannot be started: {sys.platform} has no posix_spawn")
    out, to_out = os.pipe()
    err, to_err = os.pipe()
    _widen(out)
    try:
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, to_out, 1),
                (os.POSIX_SPAWN_DUP2, to_err, 2),
            ],
            setpgroup=0,
            setsigmask=(),
            # We ignore these, and a child would inherit it: one that prints for ever ends by SIGPIPE with us.
            setsigdef=(_signal.SIGPIPE, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGHUP),
        )
    except OSError:
        os.close(out)
        os.close(err)
        raise
    finally:
        os.close(to_out)
        os.close(to_err)
    os.set_blocking(out, False)
    os.set_blocking(err, False)
    return pid, out, err


def _widen(pipe: int) -> None:
    if sys.platform != "linux":
        return
    import fcntl  # on Linux alone: a module of its own elsewhere

    try:
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
    except OSError:
        return  # this user has many pipes already: the child waits for us now and then


def _read(fd: int, most: int) -> bytes:
    chunks, size = [], 0
    while size < most:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            break
        if not data:
            break
        chunks.append(data)
        size += len(data)
    return b"".join(chunks)


def _has_writer(pipe: int) -> bool:
    """Whether somebody could still write into a pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLHUP)  # Linux tells it unasked, macOS does not
    return not any(event & select.POLLHUP for _, event in poll.poll(0))


def _telling_line(text: bytes) -> str:
    """The line that says most: the first, or the last of a Python traceback."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1 if lines[0].startswith("Traceback") else 0][:200]
