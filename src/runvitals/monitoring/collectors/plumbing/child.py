"""A child process with non-blocking pipes and a process group that can be killed as a whole.

`subprocess` would cost 3 MB of memory. `posix_spawn` does not copy the parent, and takes 0.5 ms.
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
_ERROR_BYTES = 4096
# How long reap() waits for a killed child to end. One that is stuck in a driver is left to init.
_REAP_S = 0.2
# Linux's F_SETPIPE_SZ, and the most that any user may set. With the default of 64 KiB, a child that prints
# 450 KB a second would block for seven ticks.
_SET_PIPE_SIZE, _PIPE_BYTES = 1031, 1 << 20


class ToolFailed(Exception):
    """A program could not be started, failed, hung, or printed too much. The message names it and says which.

    Args:
        output: what it had printed until then: some tools print a valid result and crash on exit.
        has_ended: whether it exited without being killed, so that the output is complete.
    """

    def __init__(self, text: str, output: bytes = b"", has_ended: bool = False) -> None:
        super().__init__(text)
        self.output = output
        self.has_ended = has_ended


class Child:
    """A running program in its own process group, with LC_ALL=C and no input.

    Args:
        argv: program (an absolute path) and arguments.
        environ: variables to set in addition to this process's.
        mono_s: the time of its start.

    Raises:
        ToolFailed: it could not be started.
    """

    __slots__ = ("_err", "_errors", "_out", "exit_code", "killed_s", "pid", "started_s")

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], mono_s: float) -> None:
        self.started_s = mono_s
        self.killed_s: float | None = None
        # As os.waitstatus_to_exitcode: -9 = killed by signal 9. None while it runs, or if it is unknown.
        self.exit_code: int | None = None
        self._errors = b""
        try:
            self.pid, self._out, self._err = _spawn(argv, {**os.environ, "LC_ALL": "C", **environ})
        except OSError as error:
            raise ToolFailed(f"{argv[0]} could not be started: {error.strerror}") from None

    def has_ended(self) -> bool:
        """Return whether the program has ended. Processes that it started may still hold the pipe."""
        if not self.pid:
            return True
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # our parent ignores SIGCHLD, so the kernel reaps children
            self.pid = 0
            return True
        if not pid:
            return False
        self.exit_code = os.waitstatus_to_exitcode(status)
        if self._out >= 0 and _has_writer(self._out):
            self._kill_group()  # a grandchild is alive: the group's id is still in use
        self.pid = 0
        return True

    def read(self, most: int) -> bytes:
        """Read what the pipe contains, up to about `most` bytes."""
        self._read_errors()
        return _read(self._out, most)

    def fate(self, output: bytes) -> str:
        """Say how it ended, with the first line of its error output, or else of `output`."""
        code = self.exit_code
        how = "ended" if code is None else f"exited with {code}"
        if code is not None and code < 0:
            how = f"was killed by signal {-code}"
        words = _main_line(self._errors) or _main_line(output[:_ERROR_BYTES])
        return f"{how}: {words}" if words else how

    def kill(self, mono_s: float) -> None:
        """Kill it and everything it started, and close its pipes. `ended()` says when it has ended."""
        self.killed_s = mono_s
        if self.pid:
            self._kill_group()
        self.close()

    def close(self) -> None:
        """Close the pipes."""
        if self._out >= 0:
            os.close(self._out)
            os.close(self._err)
            self._out = self._err = -1

    def reap(self) -> None:
        """Kill it, and wait up to 0.2 s for its end, so that no zombie is left."""
        self.kill(self.started_s)
        until_s = time.monotonic() + _REAP_S
        while not self.has_ended() and time.monotonic() < until_s:
            time.sleep(0.001)

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return  # the group is empty, or its id belongs to another user now

    def _read_errors(self) -> None:
        # Read more than is kept, or the child would block forever on a full pipe.
        data = _read(self._err, _PIPE_BYTES)
        self._errors += data[: _ERROR_BYTES - len(self._errors)]


def _spawn(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[int, int, int]:
    """(pid, descriptor of its output, descriptor of its error output)."""
    if not hasattr(os, "posix_spawn"):
        raise ToolFailed(f"{argv[0]} could not be started: {sys.platform} has no posix_spawn")
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
            # The monitor ignores these. A child that prints forever must end by SIGPIPE when the monitor
            # ends.
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
    import fcntl  # a separate extension module on other systems

    try:
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
    except OSError:
        return  # the user's limit on pipe memory is reached: the child may block now and then


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
    """Return whether any process could still write into a pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLHUP)  # Linux reports it always, macOS only on request
    return not any(event & select.POLLHUP for _, event in poll.poll(0))


def _main_line(text: bytes) -> str:
    """Return the most informative line: the first one, or the last one of a Python traceback."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1 if lines[0].startswith("Traceback") else 0][:200]
