"""Programs as sources. `Tool` runs a command that prints and exits, `StreamingTool` one that keeps running.

A tick never waits for a program. Its output goes into pipes, which each tick drains without blocking. So the
output describes the tick at which the program was started, and arrives at a later one. A command that exceeds
its timeout is killed together with everything it started.
"""

from __future__ import annotations

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.plumbing.child import Child, ToolFailed
from runvitals.monitoring.collectors.plumbing.executables import find
from runvitals.monitoring.collectors.plumbing.plain_text import MAX_LINES, first_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["StillFailing", "StreamingTool", "Tool", "ToolFailed", "find"]

MIB = 1 << 20
# Vendors' tools open the driver each time they run; none is run more often than this.
MIN_EVERY_S = 1.0
FIRST_RESTART_S, MAX_RESTART_S = 1.0, 60.0
# A streaming program that ran longer than this did not fail at start: it is restarted 1 s after its end.
LONG_LIFE_S = 60.0
# A killed program ends within milliseconds, unless it is stuck in a driver.
DYING_S = 5.0


class StillFailing(ToolFailed):
    """A streaming program has failed, and printed nothing since. The message is that of the failure."""


class Tool:
    """A command that prints and exits, run repeatedly.

    Args:
        argv: program (an absolute path) and arguments.
        every_s: seconds from one start to the next, at least 1.
        timeout_s: a command that takes longer is killed with all its children, at the next tick.
        limit_bytes: a command that prints more is killed.
        environ: variables to set in addition to the monitor's; LC_ALL is C.

    Example:
        >>> tool = Tool(["/usr/bin/hl-smi", "-L"], every_s=10.0)
        >>> tool.output(100.0)  # starts it
        >>> tool.output(101.0)
        b'…'
    """

    def __init__(
        self,
        argv: Sequence[str],
        every_s: float = 1.0,
        timeout_s: float = 5.0,
        limit_bytes: int = 16 * MIB,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.argv = list(argv)
        self.timeout_s = timeout_s
        self.limit_bytes = limit_bytes
        self.environ = dict(environ or {})
        # The tick at which the command was started whose output was returned last.
        self.moment_s = float("-inf")
        self._every = Every(max(every_s, MIN_EVERY_S))
        self._child: Child | None = None
        self._killed: Child | None = None
        self._output = bytearray()

    @property
    def running(self) -> bool:
        """Whether the command is running."""
        return self._child is not None

    def output(self, mono_s: float) -> bytes | None:
        """Return the output of a command that has exited since the last call, else None.

        Starts the next one when it is due. Costs 10 µs while a command runs, 0.5 ms when one is started.

        Raises:
            ToolFailed: it could not be started, ran too long, printed too much, or exited with a code other
                than 0 (the message then has the first line of its error output); or a killed one does not
                end.
        """
        if not _has_ended(self._killed, mono_s, self.argv[0]):
            return None
        self._killed = None
        output = self._collect(self._child, mono_s) if self._child is not None else None
        if self._child is None and self._every.due(mono_s):
            self._output = bytearray()
            self._child = Child(self.argv, self.environ, mono_s)
        return output

    def close(self) -> None:
        """Kill the command if it is running."""
        for child in (self._child, self._killed):
            if child is not None:
                child.reap()
        self._child = self._killed = None

    def _collect(self, child: Child, mono_s: float) -> bytes | None:
        # In this order, so that output printed between the two calls is read as well.
        ended = child.has_ended()
        self._output += child.read(self.limit_bytes + 1 - len(self._output))
        output = bytes(self._output)
        if len(output) > self.limit_bytes:
            self._kill(child, mono_s)
            raise ToolFailed(f"{self.argv[0]} printed more than {self.limit_bytes} bytes and was killed")
        if ended:
            self._child = None
            child.close()
            self.moment_s = child.started_s
            if child.exit_code:
                raise ToolFailed(f"{self.argv[0]} {child.fate(output)}", output, has_ended=True)
            return output
        if mono_s - child.started_s >= self.timeout_s:
            self._kill(child, mono_s)
            raise ToolFailed(f"{self.argv[0]} took longer than {self.timeout_s:g} s and was killed", output)
        return None

    def _kill(self, child: Child, mono_s: float) -> None:
        child.kill(mono_s)
        self._child, self._killed = None, child


class StreamingTool:
    """A command that keeps printing lines, restarted when it ends.

    Args:
        argv: program (an absolute path) and arguments.
        limit_bytes: a command that prints a longer line is killed; also roughly the most that a call reads.

    Example:
        >>> stream = StreamingTool(["/usr/bin/tegrastats", "--interval", "1000"])
        >>> stream.lines(100.0), stream.lines(101.5)
        ([], [b'RAM 4300/30698MB GR3D_FREQ 45% …'])
    """

    def __init__(self, argv: Sequence[str], limit_bytes: int = 4 * MIB) -> None:
        self.argv = list(argv)
        self.limit_bytes = limit_bytes
        self._child: Child | None = None
        self._killed: Child | None = None
        self._rest = b""
        self._backoff = Backoff(FIRST_RESTART_S, MAX_RESTART_S)
        # The last line of a program that has printed only a few: it may explain why the program ended.
        self._last_line = b""
        self._printed = 0
        self._failure = ""

    def lines(self, mono_s: float) -> list[bytes]:
        """Return the complete lines printed since the last call, without line endings.

        Starts the program if it is not running: 1, 2, 4 … 60 s after the last one ended.

        Raises:
            ToolFailed: it could not be started, has ended (after its last lines), or printed a line that is
                too long; or a killed one does not end.
            StillFailing: at each call after a failure, until lines arrive: silence is no sign of recovery.
        """
        try:
            lines = self._read(mono_s)
        except ToolFailed as failed:
            self._failure = str(failed)
            raise
        if lines:
            self._failure = ""
        elif self._failure:
            raise StillFailing(self._failure)
        return lines

    def reject(self, lines: Sequence[bytes]) -> ToolFailed:
        """Return the error to raise if none of the lines can be parsed, until other lines arrive."""
        excerpt = first_lines(b"\n".join(lines))
        self._failure = f"{self.argv[0]}: cannot parse the output: {excerpt}"
        return ToolFailed(self._failure)

    def close(self) -> None:
        """Kill the program if it is running, and forget its failure."""
        for child in (self._child, self._killed):
            if child is not None:
                child.reap()
        self._child = self._killed = None
        self._failure = ""

    def _read(self, mono_s: float) -> list[bytes]:
        if self._child is None:
            if _has_ended(self._killed, mono_s, self.argv[0]) and self._backoff.due(mono_s):
                self._killed = None
                self._start(mono_s)
            return []
        child = self._child
        ended = child.has_ended()
        lines = self._complete(child.read(self.limit_bytes))
        if len(self._rest) > self.limit_bytes:
            child.kill(mono_s)
            self._killed = child
            self._pause(mono_s, child)
            raise ToolFailed(f"{self.argv[0]} printed a line of more than {self.limit_bytes} bytes")
        if ended and not lines:
            child.close()
            self._pause(mono_s, child)
            raise ToolFailed(f"{self.argv[0]} {child.fate(self._rest or self._last_line)}")
        return lines

    def _complete(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._rest += data
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._printed += len(lines)
        self._last_line = lines[-1] if self._printed <= MAX_LINES else b""
        return [line.rstrip(b"\r") for line in lines]

    def _start(self, mono_s: float) -> None:
        self._rest = self._last_line = b""
        self._printed = 0
        try:
            self._child = Child(self.argv, {}, mono_s)
        except ToolFailed:
            self._pause(mono_s, None)
            raise

    def _pause(self, mono_s: float, child: Child | None) -> None:
        self._child = None
        if child is not None and mono_s - child.started_s > LONG_LIFE_S:
            self._backoff.note_success()
        self._backoff.note_failure(mono_s)


def _has_ended(killed: Child | None, mono_s: float, program: str) -> bool:
    """Return whether a killed child has ended.

    While one is stuck in a driver, another would get stuck too.
    """
    if killed is None or killed.killed_s is None or killed.has_ended():
        return True
    waited_s = mono_s - killed.killed_s
    if waited_s > DYING_S:
        raise ToolFailed(f"{program} was killed {waited_s:.0f} s ago and has not ended")
    return False
