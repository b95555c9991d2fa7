"""Other programs as sources. `Tool` runs a command that prints and exits, `StreamingTool` one that keeps on.

A tick never waits for one. What it prints goes into pipes that are read, as far as they are filled, at each
tick; so an answer tells of the tick at which it was asked for, and arrives with a later one. A command that
overstays its time is killed with everything it has started.
"""

from __future__ import annotations

from runvitals.backoff import Backoff
from runvitals.collectors.base import Every
from runvitals.collectors.plumbing.child import Child, ToolFailed
from runvitals.collectors.plumbing.excerpt import MOST_LINES, first_lines
from runvitals.collectors.plumbing.executables import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["StillFailing", "StreamingTool", "Tool", "ToolFailed", "find"]

MIB = 1 << 20
# A vendor's tool takes a conversation with the driver each time; none is asked more often than this.
SHORTEST_EVERY_S = 1.0
FIRST_RESTART_S, LONGEST_RESTART_S = 1.0, 60.0
# A stream that lived longer than this did not fail at its start: the next one is started 1 s after its end.
LONG_LIFE_S = 60.0
# A killed program is gone within milliseconds, unless a driver holds it.
DYING_S = 5.0


class StillFailing(ToolFailed):
    """A stream that has failed before has printed nothing since; the text is that of the failure."""


class Tool:
    """A command that prints and ends, run again and again.

    Args:
        argv: program (an absolute path) and arguments.
        every_s: seconds from start to start, at least 1.
        timeout_s: a run that takes longer is killed with all its children, at the next tick.
        limit_bytes: a run that prints more is killed.
        environ: variables to set beside the monitor's own; LC_ALL is C.

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
        # The tick at which the run was started whose output was handed out last.
        self.moment_s = float("-inf")
        self._every = Every(max(every_s, SHORTEST_EVERY_S))
        self._child: Child | None = None
        self._killed: Child | None = None
        self._output = bytearray()

    @property
    def running(self) -> bool:
        """Whether an answer is under way."""
        return self._child is not None

    def output(self, mono_s: float) -> bytes | None:
        """What a run that has ended since the last call printed, else None; starts the next run when it is
        due. 10 µs while a child runs, 0.5 ms when one is started.

        Raises:
            ToolFailed: it could not be started, ran too long, printed too much, or its exit code is not 0
                (the text then holds the first line of its complaint); or one that was killed does not go.
        """
        if not _gone(self._killed, mono_s, self.argv[0]):
            return None
        self._killed = None
        answer = self._collect(self._child, mono_s) if self._child is not None else None
        if self._child is None and self._every.due(mono_s):
            self._output = bytearray()
            self._child = Child(self.argv, self.environ, mono_s)
        return answer

    def close(self) -> None:
        """Kill what runs."""
        for child in (self._child, self._killed):
            if child is not None:
                child.bury()
        self._child = self._killed = None

    def _collect(self, child: Child, mono_s: float) -> bytes | None:
        # In this order: what it prints between the two questions is read as well.
        ended = child.ended()
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
    """A command that goes on printing lines, started again when it ends.

    Args:
        argv: program (an absolute path) and arguments.
        limit_bytes: a child that prints a longer line is killed; also about the most that one call reads.
        environ: variables to set beside the monitor's own; LC_ALL is C.

    Example:
        >>> stream = StreamingTool(["/usr/bin/tegrastats", "--interval", "1000"])
        >>> stream.lines(100.0), stream.lines(101.5)
        ([], [b'RAM 4300/30698MB GR3D_FREQ 45% …'])
    """

    def __init__(
        self, argv: Sequence[str], limit_bytes: int = 4 * MIB, environ: Mapping[str, str] | None = None
    ) -> None:
        self.argv = list(argv)
        self.limit_bytes = limit_bytes
        self.environ = dict(environ or {})
        self._child: Child | None = None
        self._killed: Child | None = None
        self._rest = b""
        self._backoff = Backoff(FIRST_RESTART_S, LONGEST_RESTART_S)
        # The last line of a child that has printed few: perhaps its reason to end.
        self._remark = b""
        self._printed = 0
        self._failure = ""

    def lines(self, mono_s: float) -> list[bytes]:
        """The complete lines since the last call, without their line ends. Starts the child when there is
        none: 1, 2, 4 … 60 s after the last one's end.

        Raises:
            ToolFailed: it could not be started, has ended (after its last lines), or printed an endless line;
                or one that was killed does not go.
            StillFailing: at each call from then on, until lines come: no news is not good news.
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

    def refuse(self, lines: Sequence[bytes]) -> ToolFailed:
        """The error to raise where nothing is understood of some lines; it stands until others come."""
        said = first_lines(b"\n".join(lines))
        self._failure = f"{self.argv[0]}: nothing is understood of what it prints: {said}"
        return ToolFailed(self._failure)

    def close(self) -> None:
        """Kill what runs, and forget its failure."""
        for child in (self._child, self._killed):
            if child is not None:
                child.bury()
        self._child = self._killed = None
        self._failure = ""

    def _read(self, mono_s: float) -> list[bytes]:
        if self._child is None:
            if _gone(self._killed, mono_s, self.argv[0]) and self._backoff.due(mono_s):
                self._killed = None
                self._start(mono_s)
            return []
        child = self._child
        ended = child.ended()
        lines = self._complete(child.read(self.limit_bytes))
        if len(self._rest) > self.limit_bytes:
            child.kill(mono_s)
            self._killed = child
            self._pause(mono_s, child)
            raise ToolFailed(f"{self.argv[0]} printed a line of more than {self.limit_bytes} bytes")
        if ended and not lines:
            child.close()
            self._pause(mono_s, child)
            raise ToolFailed(f"{self.argv[0]} {child.fate(self._rest or self._remark)}")
        return lines

    def _complete(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._rest += data
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._printed += len(lines)
        self._remark = lines[-1] if self._printed <= MOST_LINES else b""
        return [line.rstrip(b"\r") for line in lines]

    def _start(self, mono_s: float) -> None:
        self._rest = self._remark = b""
        self._printed = 0
        try:
            self._child = Child(self.argv, self.environ, mono_s)
        except ToolFailed:
            self._pause(mono_s, None)
            raise

    def _pause(self, mono_s: float, child: Child | None) -> None:
        self._child = None
        if child is not None and mono_s - child.started_s > LONG_LIFE_S:
            self._backoff.worked()
        self._backoff.failed(mono_s)


def _gone(killed: Child | None, mono_s: float, program: str) -> bool:
    """Whether a child that was killed is no more. As long as its driver holds it, the driver would hold
    another as well.
    """
    if killed is None or killed.killed_s is None or killed.ended():
        return True
    waited_s = mono_s - killed.killed_s
    if waited_s > DYING_S:
        raise ToolFailed(f"{program} was killed {waited_s:.0f} s ago and does not end")
    return False
