"""Readers: all records of a run's folder, once (`read_run`) or as they come (`Tail`)."""

from __future__ import annotations

import os
from zlib import decompress
from zlib import error as ZlibError

from runvitals.journal import frames, paths, samples
from runvitals.journal.jsontext import loads
from runvitals.journal.seal import BLOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


class Problem:
    """Something in a file that could not be read. The rest of the file was."""

    __slots__ = ("path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class Record:
    """One decoded record of a writer.

    `value` is the JSON value of a JSON record, the raw payload of a CONSOLE record, and None for a sample, which has `time_ms`, `keys`
    and `values` instead. Of other records `time_ms` is the value's `"t"`, or 0.
    """

    __slots__ = ("keys", "seq", "time_ms", "type", "value", "values", "writer")

    def __init__(
        self,
        writer: str,
        type: int,
        seq: int,
        time_ms: int,
        value: Any = None,
        keys: Sequence[str] = (),
        values: Sequence[float] = (),
    ) -> None:
        self.writer = writer
        self.type = type
        self.seq = seq
        self.time_ms = time_ms
        self.value = value
        self.keys = keys
        self.values = values


class WriterTail:
    """Follows one writer through its segments, from its first record on.

    Args:
        folder: the run's folder.
        writer: the writer's name.
    """

    __slots__ = ("_inode", "_offset", "_schemas", "_segment", "folder", "next_seq", "problems", "torn_bytes", "writer")

    def __init__(self, folder: str, writer: str) -> None:
        self.folder = folder
        self.writer = writer
        self.next_seq = 0
        self.problems: list[Problem] = []
        self.torn_bytes = 0  # of a last record that is not whole: it is being written, or its writer died in it
        self._segment = 0
        self._offset = 0
        self._inode = 0
        self._schemas: dict[int, list[str]] = {}

    def poll(self, segments: Sequence[int]) -> Iterator[Record]:
        """The records written since the last poll. `segments` are those that exist now, in order."""
        for segment in segments:
            if segment < self._segment:
                continue
            if segment > self._segment:
                self._segment, self._offset, self._inode = segment, 0, 0
            yield from self._read_segment(paths.segment_path(self.folder, self.writer, segment))

    def _read_segment(self, path: str) -> Iterator[Record]:
        try:
            with open(path, "rb", buffering=0) as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    # The first look, or a sealed file in the old one's place: begin again, and pass over what is known by its number.
                    self._inode, self._offset = inode, 0
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            self.problems.append(Problem(path, f"cannot be read: {error.strerror}"))
            return
        yield from self._decode(path, data)

    def _decode(self, path: str, data: bytes) -> Iterator[Record]:
        self.torn_bytes = 0
        base = self._offset
        for found in frames.scan(data):
            if isinstance(found, frames.Damage):
                if found.torn:
                    self.torn_bytes = found.end - found.start
                    break
                self._report_damage(path, base + found.start, base + found.end)
                self._offset = base + found.end
                continue
            # Move on before the record is handed out, so that a consumer that stops early does not see it twice.
            self._offset = base + found.offset + frames.HEADER_SIZE + len(found.payload)
            yield from self._expand(path, found)

    def _report_damage(self, path: str, start: int, end: int) -> None:
        self.problems.append(Problem(path, f"bytes {start} to {end} hold no valid record and were passed over"))

    def _expand(self, path: str, frame: frames.Frame) -> Iterator[Record]:
        if frame.type != BLOCK:
            yield from self._record(path, frame)
            return
        try:
            inner = decompress(frame.payload)
        except ZlibError as error:
            self.problems.append(Problem(path, f"the block at byte {frame.offset} cannot be unpacked: {error}"))
            return
        for found in frames.scan(inner):
            if isinstance(found, frames.Damage):
                self._report_damage(path, frame.offset, frame.offset)
            else:
                yield from self._record(path, found)

    def _record(self, path: str, frame: frames.Frame) -> Iterator[Record]:
        try:
            record = self._parse(frame)
        except (ValueError, KeyError, TypeError) as error:
            self.problems.append(Problem(path, f"record {frame.seq} of type {frame.type} is not readable: {error}"))
            return
        if frame.seq >= self.next_seq:
            self.next_seq = frame.seq + 1
            yield record

    def _parse(self, frame: frames.Frame) -> Record:
        if frame.type == frames.SAMPLE:
            time_ms, keys, values = samples.unpack(frame.payload, self._schemas)
            return Record(self.writer, frame.type, frame.seq, time_ms, keys=keys, values=values)
        if frame.type == frames.CONSOLE:
            return Record(self.writer, frame.type, frame.seq, 0, value=frame.payload)
        value = loads(frame.payload)
        if frame.type == frames.SCHEMA:
            self._schemas[value["id"]] = value["keys"]
        time_ms = value.get("t", 0) if isinstance(value, dict) else 0
        return Record(self.writer, frame.type, frame.seq, int(time_ms), value=value)


class Tail:
    """Follows all writers of a run, whichever appear.

    Example:
        >>> tail = Tail("/data/runs/abc")
        >>> for record in tail.poll():      # now, and again later
        ...     print(record.writer, record.seq)
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.writers: dict[str, WriterTail] = {}

    def poll(self) -> Iterator[Record]:
        """The records that came since the last poll: in order within a writer, writers one after the other.

        Raises:
            FileNotFoundError: no such run.
        """
        for writer, segments in paths.segments(self.folder).items():
            tail = self.writers.get(writer)
            if tail is None:
                tail = self.writers[writer] = WriterTail(self.folder, writer)
            yield from tail.poll(segments)

    @property
    def problems(self) -> list[Problem]:
        """Everything that could not be read so far."""
        return [problem for tail in self.writers.values() for problem in tail.problems]


def read_run(folder: str) -> Iterator[Record]:
    """All records of a run's folder as it is now."""
    yield from Tail(folder).poll()
