"""Readers: all records of a run's folder, once (`read_run`) or as they come (`Tail`).

A reader takes nothing on trust: whatever a file holds, it yields the records that are whole, says in
`problems` what was not, and holds no more than one frame or block of a file in memory.
"""

from __future__ import annotations

import os
from struct import Struct

from runvitals.journal import frames, paths
from runvitals.journal.frames import SAMPLE, SCHEMA
from runvitals.journal.jsontext import loads
from runvitals.journal.samples import parse_schema, split, unpack_row
from runvitals.journal.seal import BLOCK, unpack_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

CONSOLE_HEAD = Struct("<Bq")  # which stream (1 = stdout, 2 = stderr), time in ms; the bytes themselves follow
MAX_SCHEMA_KEYS = 1_000_000  # of all schemas that a reader remembers of a writer
MAX_PROBLEMS = 100  # kept per writer

_JSON_TYPES = frozenset(
    (frames.START, frames.SCHEMA, frames.HISTORY, frames.EVENT, frames.LIFECYCLE, frames.INFO),
)


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

    Attributes:
        writer: the writer's name.
        type: one of the constants of `frames`.
        seq: its number within the writer.
        time_ms: UTC; of a sample or an output its time, of a JSON object its `"t"`, or 0 where it has none.
        value: the JSON object of a JSON record, the whole payload of a CONSOLE record, None for a sample.
        keys: of a sample.
        packed: a sample's values as they lie in the file, little-endian float64. Whoever gathers columns
            takes them whole, which is faster than a number at a time.
        size: of the payload, bytes.
    """

    __slots__ = ("keys", "packed", "seq", "size", "time_ms", "type", "value", "writer")

    def __init__(
        self,
        writer: str,
        type: int,
        seq: int,
        time_ms: int,
        value: Any = None,
        keys: Sequence[str] = (),
        packed: bytes = b"",
        size: int = 0,
    ) -> None:
        self.writer = writer
        self.type = type
        self.seq = seq
        self.time_ms = time_ms
        self.value = value
        self.keys = keys
        self.packed = packed
        self.size = size

    @property
    def values(self) -> tuple[float, ...]:
        """A sample's values in the order of its keys, unpacked anew at every call."""
        return unpack_row(self.packed)


class WriterTail:
    """Follows one writer through its segments.

    Args:
        folder: the run's folder.
        writer: the writer's name.
        next_seq: the number of the first record that is wanted. Of the segments before the one that holds it
            nothing but a header is read.
    """

    __slots__ = (
        "_inode",
        "_offset",
        "_schema_keys",
        "_schemas",
        "_segment",
        "folder",
        "missing",
        "next_seq",
        "problems",
        "torn_bytes",
        "writer",
    )

    def __init__(self, folder: str, writer: str, next_seq: int = 0) -> None:
        self.folder = folder
        self.writer = writer
        self.next_seq = next_seq
        self.missing = (
            0  # records that a later one shows to have been there: damaged, or in a file that was deleted
        )
        self.problems: list[Problem] = []
        self.torn_bytes = (
            0  # of a last record that is not whole: it is being written, or its writer died in it
        )
        self._segment = 0
        self._offset = 0
        self._inode = 0
        self._schemas: dict[int, list[str]] = {}
        self._schema_keys = 0

    def poll(self, segments: Sequence[int]) -> Iterator[Record]:
        """The records written since the last poll. `segments` are those that exist now, in order.

        A consumer may stop at any record; the next poll goes on with the one after it.
        """
        if self.next_seq and not self._inode and not self._segment:
            self._segment = self._segment_of(self.next_seq, segments)
        for segment in segments:
            if segment < self._segment:
                continue
            if segment > self._segment:
                self._begin(segment)
            yield from self._read_segment(self._path())

    def _segment_of(self, seq: int, segments: Sequence[int]) -> int:
        """The newest segment that begins with that record or an earlier one; the oldest there is, if none."""
        for segment in reversed(segments):
            first = _first_seq(paths.segment_path(self.folder, self.writer, segment))
            if first is not None and first <= seq:
                return segment
        return segments[0] if segments else 0

    def _path(self) -> str:
        return paths.segment_path(self.folder, self.writer, self._segment)

    def _begin(self, segment: int) -> None:
        if self.torn_bytes:
            self._report(
                self._path(), f"its last {self.torn_bytes} bytes are a record that was never finished"
            )
        self._segment, self._offset, self._inode, self.torn_bytes = segment, 0, 0, 0

    def _read_segment(self, path: str) -> Iterator[Record]:
        # O_NONBLOCK: opening a FIFO of that name must not wait for somebody to write to it.
        flags = os.O_RDONLY | paths.OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0)
        try:
            fd = os.open(path, flags)
        except FileNotFoundError:
            return  # deleted since the folder was listed
        except OSError as error:
            self._report(path, f"cannot be read: {error.strerror}")
            return
        try:
            if os.path.isfile(fd):
                yield from self._read_file(path, fd)
            else:
                self._report(path, "is not a file")
        except OSError as error:
            self._report(path, f"cannot be read from byte {self._offset} on: {error.strerror}")
        finally:
            os.close(fd)

    def _read_file(self, path: str, fd: int) -> Iterator[Record]:
        status = os.fstat(fd)
        if status.st_ino != self._inode or status.st_size < self._offset:
            # The first look, or a sealed file in the old one's place: begin again, pass over known numbers.
            self._inode, self._offset = status.st_ino, 0
        self.torn_bytes = 0
        for found in frames.scan_file(fd, self._offset):
            if isinstance(found, frames.Damage):
                if found.torn:
                    self.torn_bytes = found.end - found.start
                    break
                self._report(
                    path, f"bytes {found.start} to {found.end} hold no valid record and were passed over"
                )
                self._offset = found.end
                continue
            if found.type == BLOCK:
                # Move on after it: a consumer that stops inside finds the rest of it at the next poll.
                yield from self._block(path, found)
                self._offset = found.end
                continue
            self._offset = found.end
            record = self._record(path, found)
            if record is not None:
                yield record

    def _block(self, path: str, block: frames.Frame) -> Iterator[Record]:
        try:
            for found in unpack_block(block.payload):
                record = self._record(path, found)
                if record is not None:
                    yield record
        except ValueError as error:
            self._report(path, f"at byte {block.offset}: {error}")

    def _record(self, path: str, frame: frames.Frame) -> Record | None:
        """The frame decoded; None where it was seen before, cannot be decoded, or is of an unknown type."""
        seq, type = frame.seq, frame.type
        if type == SCHEMA:
            self._declare(path, frame)  # even if seen before: a file that is read again must know its schemas
        if seq != self.next_seq:
            if seq < self.next_seq:
                return None
            self.missing += seq - self.next_seq
        self.next_seq = seq + 1
        try:
            if type == SAMPLE:
                time_ms, keys, packed = split(frame.payload, self._schemas)
                return Record(self.writer, type, seq, time_ms, None, keys, packed, len(packed))
            if type == frames.CONSOLE:
                time_ms = _console_time(frame.payload)
                return Record(self.writer, type, seq, time_ms, frame.payload, size=len(frame.payload))
            if type in _JSON_TYPES:
                value, time_ms = _json_object(frame.payload)
                return Record(self.writer, type, seq, time_ms, value, size=len(frame.payload))
        except ValueError as error:
            self._report(path, f"record {seq} of type {type} is not readable: {error}")
        return None

    def _declare(self, path: str, frame: frames.Frame) -> None:
        try:
            schema_id, keys = parse_schema(_json_object(frame.payload)[0])
        except ValueError as error:
            self._report(path, f"the schema in record {frame.seq} is not usable: {error}")
            return
        self._schema_keys += len(keys) - len(self._schemas.pop(schema_id, ()))
        self._schemas[schema_id] = keys
        while self._schema_keys > MAX_SCHEMA_KEYS:
            # The first in line is the longest unused: a writer declares those in use anew in every file.
            self._schema_keys -= len(self._schemas.pop(next(iter(self._schemas))))

    def _report(self, path: str, text: str) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            return
        if len(self.problems) == MAX_PROBLEMS - 1:
            text = "more problems than are listed here"
        if not any(known.text == text and known.path == path for known in self.problems):
            self.problems.append(Problem(path, text))


def _first_seq(path: str) -> int | None:
    """The number of a file's first record, as its first frame says (a BLOCK has that of its first record)."""
    try:
        fd = os.open(path, os.O_RDONLY | paths.OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None  # the reading itself says why
    try:
        header = os.read(fd, frames.HEADER_SIZE)
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(header) < frames.HEADER_SIZE:
        return None
    magic, _, _, _, seq = frames.HEADER.unpack(header)
    return int(seq) if magic == frames.MAGIC else None


def _console_time(payload: bytes) -> int:
    if len(payload) < CONSOLE_HEAD.size:
        raise ValueError(f"output has at least {CONSOLE_HEAD.size} bytes; this has {len(payload)}")
    return int(CONSOLE_HEAD.unpack_from(payload)[1])


def _json_object(payload: bytes) -> tuple[dict[str, Any], int]:
    """(the object, its "t" in ms or 0)."""
    value = loads(payload)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is expected, not {type(value).__name__}")
    time_ms = value.get("t", 0)
    if not isinstance(time_ms, (int, float)) or not -(2**63) <= time_ms < 2**63:
        raise ValueError('"t" is not a time in milliseconds')
    return value, int(time_ms)


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
