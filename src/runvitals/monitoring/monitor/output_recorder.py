"""Records what the processes of a run print, each in a journal of its own with its rank."""

from __future__ import annotations

import os
from _stat import S_ISREG

from runvitals.base.json_codec import dumps
from runvitals.journal import frames
from runvitals.journal.output_memory import STREAMS, OutputMemory
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.monitor.printed_lines import PrintedLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.monitoring.monitor.watched_processes import WatchedProcess

EVERY_S = 1.0
MAX_BYTES = 16 * 1024 * 1024
"""Of a process. Of what it prints beyond this, the end is recorded when it ends."""
_END_BYTES = 64 * 1024
_MOST_AT_ONCE = 128 * 1024  # of a file; the rest is in the file
_HEAD_LENGTH = 9


class ProcessOutput:
    """What one process prints.

    Args:
        memory: what it prints itself.
        files: the files that its streams are written to.
        open_journal: creates the journal for it.
    """

    __slots__ = ("_end", "_end_bytes", "_files", "_journal", "_lines", "_memory", "_open_journal", "_size")

    def __init__(
        self, memory: OutputMemory, files: dict[int, int], open_journal: Callable[[], JournalWriter]
    ) -> None:
        self._memory = memory
        self._files = files  # stream → descriptor
        self._open_journal = open_journal
        self._journal: JournalWriter | None = None
        self._lines = {stream: PrintedLines() for stream in STREAMS}
        self._size = 0
        self._end: list[tuple[int, bytes]] = []  # of what is too much, the newest
        self._end_bytes = 0

    def read(self, now_s: float) -> None:
        """Record what is new."""
        pieces = self._memory.read() + self._of_files()
        while pieces:
            stream = pieces[0][0]
            same = 1
            while same < len(pieces) and pieces[same][0] == stream:
                same += 1
            text = self._lines[stream].add(b"".join(data for _, data in pieces[:same]), now_s)
            del pieces[:same]
            if text:
                self._record(stream, text.encode("utf-8", "replace"))

    def finish(self, now_s: float) -> None:
        """Record the rest, and close everything."""
        self.read(now_s)
        for stream, lines in self._lines.items():
            if text := lines.rest():
                self._record(stream, text.encode("utf-8", "replace"))
        if self._end and self._journal is not None:
            self._write_end(self._journal)
        if self._journal is not None:
            self._journal.close()
        self._memory.close()
        for fd in self._files.values():
            os.close(fd)

    def _of_files(self) -> list[tuple[int, bytes]]:
        pieces = []
        for stream, fd in self._files.items():
            position, size = self._memory.file_position(stream), os.fstat(fd).st_size
            if size < position:  # it was emptied
                position = 0
            if size == position:
                continue
            position = max(position, size - _MOST_AT_ONCE)
            data = os.pread(fd, size - position, position)
            self._memory.set_file_position(stream, position + len(data))
            pieces.append((stream, data))
        return pieces

    def _record(self, stream: int, data: bytes) -> None:
        if self._journal is None:
            self._journal = self._open_journal()
        self._size += len(data)
        if self._size <= MAX_BYTES:
            self._write(self._journal, stream, data)
            return
        self._end.append((stream, data))
        self._end_bytes += len(data)
        while self._end_bytes > _END_BYTES and len(self._end) > 1:
            self._end_bytes -= len(self._end.pop(0)[1])

    def _write_end(self, journal: JournalWriter) -> None:
        text = f"more than {MAX_BYTES >> 20} MiB were printed; of the rest only the end is recorded"
        event = {"t": journal.clock.now_ms(), "name": "console_cut", "level": "warning", "text": text}
        journal.record(frames.EVENT, dumps(event))
        for stream, data in self._end:
            self._write(journal, stream, data)

    def _write(self, journal: JournalWriter, stream: int, data: bytes) -> None:
        head = stream.to_bytes(1, "little") + journal.clock.now_ms().to_bytes(8, "little", signed=True)
        journal.record(frames.CONSOLE, head + data)


class OutputRecorder:
    """What the processes of a run print. No method raises: the samples matter more.

    Args:
        journal: the monitor's own, beside which those for output are created.
        warn: called with (name of an event, text).
    """

    __slots__ = ("_files_read", "_journal", "_outputs", "_warn", "read_at_s")

    def __init__(self, journal: JournalWriter, warn: Callable[[str, str], object]) -> None:
        self._journal = journal
        self._warn = warn
        self._outputs: dict[WatchedProcess, ProcessOutput] = {}
        self._files_read: set[tuple[int, int]] = set()
        self.read_at_s = float("inf")

    def attach(self, process: WatchedProcess, now_s: float) -> None:
        """Begin to record the output of a process, if its attach message names any."""
        output = process.about.get("output")
        if not isinstance(output, dict):
            return
        try:
            holder = output.get("pid")
            memory = OutputMemory(_open(holder, output.get("fd"), os.O_RDWR))
            files = self._open_files(holder, output.get("files") or [])
        except (OSError, TypeError, ValueError) as error:
            self._warn_of(process, error)
            return
        self._outputs[process] = ProcessOutput(memory, files, lambda: self._new_journal(process))
        self.read_at_s = now_s

    def read(self, now_s: float) -> None:
        """Record what is new of all processes."""
        if self._outputs:
            self.read_at_s = now_s + EVERY_S * 0.995
        for process, output in list(self._outputs.items()):
            try:
                output.read(now_s)
            except OSError as error:
                del self._outputs[process]
                self._warn_of(process, error)

    def finish(self, process: WatchedProcess, now_s: float) -> None:
        """Record the rest of the output of a process that has ended or left the run."""
        output = self._outputs.pop(process, None)
        if output is None:
            return
        if not self._outputs:
            self.read_at_s = float("inf")
        try:
            output.finish(now_s)
        except OSError as error:
            self._warn_of(process, error)

    def _warn_of(self, process: WatchedProcess, error: Exception) -> None:
        text = f"what process {process.pid} prints is not recorded: {error}"
        self._warn("output_unreadable", text)

    def _open_files(self, holder: object, streams: list[int]) -> dict[int, int]:
        """Open the files of the streams. One that several streams or processes share is read once."""
        files = {}
        for stream in streams:
            if stream not in STREAMS:
                raise ValueError(f"no stream {stream!r:.20}")
            fd = _open(holder, stream, os.O_RDONLY)
            status = os.fstat(fd)
            identity = status.st_dev, status.st_ino
            if not S_ISREG(status.st_mode) or identity in self._files_read:
                os.close(fd)
            else:
                self._files_read.add(identity)
                files[stream] = fd
        return files

    def _new_journal(self, process: WatchedProcess) -> JournalWriter:
        ours, about = self._journal, process.about
        names = ("run", "project", "entity", "host", "boot_id", "labels")
        fields = {name: ours.about[name] for name in names if name in ours.about}
        ranks = {
            name: about[name] for name in ("rank", "local_rank", "world_size") if about.get(name) is not None
        }
        host = ours.writer.split(".", 1)[1].rpartition(".")[0]
        name = f"console.{host}.{process.pid}.{ours.clock.now_ms():x}"
        own = {**fields, **ranks, "role": "console", "pid": process.pid}
        return JournalWriter(ours.folder, name, own, clock=ours.clock)


def _open(pid: object, fd: object, flags: int) -> int:
    """Open what a descriptor of a process refers to."""
    if type(pid) is not int or type(fd) is not int:
        raise TypeError(f"{pid!r:.40} and {fd!r:.40} are not a process and a descriptor")
    return os.open(f"/proc/{pid}/fd/{fd}", flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
