"""Readers of a run's folder: all its records (`read_run`), or new ones as they are written (`Tail`).

Files are untrusted input. A reader yields every valid record, reports the rest in `problems`, and keeps at
most one frame or block of a file in memory.
"""

from __future__ import annotations

import os

from runvitals.journal import frames, paths
from runvitals.journal.frames import SCHEMA
from runvitals.journal.records import Record, decode
from runvitals.journal.sealing import BLOCK, unpack_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_SCHEMA_KEYS = 1_000_000  # limit for all schemas of a writer that a reader remembers
MAX_PROBLEMS = 100  # reported per writer


class ReadProblem:
    """Part of a file that could not be read. The rest of the file is."""

    __slots__ = ("path", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class WriterTail:
    """Follows one writer through its segments.

    Args:
        folder: the run's folder.
        writer: the writer's name.
        next_seq: the number of the first record to yield. Of the segments before the one that contains it
            only a header is read.

    Attributes:
        missing: gaps in the numbering so far: records that were damaged, or in deleted files.
        damaged: records that could not be decoded.
        problems: what could not be read, at most `MAX_PROBLEMS`.
        torn_bytes: size of an incomplete record at the end: it is being written, or its writer died during
            the write.
    """

    __slots__ = (
        "_inode",
        "_offset",
        "_schema_keys",
        "_schemas",
        "_segment",
        "damaged",
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
        self.missing = 0
        self.damaged = 0
        self.problems: list[ReadProblem] = []
        self.torn_bytes = 0
        self._segment = 0
        self._offset = 0
        self._inode = 0
        self._schemas: dict[int, list[str]] = {}
        self._schema_keys = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read so far: no record, no damage, no incomplete record."""
        return not self.next_seq and not self.torn_bytes and not self.problems

    def poll(self, segments: Sequence[int]) -> Iterator[Record]:
        """Yield the records written since the last poll.

        The caller may stop at any record; the next poll continues with the one after it.

        Args:
            segments: the segments that exist now, in order.
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
        """The newest segment that begins with this record or an earlier one; if there is none, the oldest."""
        for segment in reversed(segments):
            first = _first_seq(paths.segment_path(self.folder, self.writer, segment))
            if first is not None and first <= seq:
                return segment
        return segments[0] if segments else 0

    def _path(self) -> str:
        return paths.segment_path(self.folder, self.writer, self._segment)

    def _begin(self, segment: int) -> None:
        if self.torn_bytes:
            self._report(self._path(), f"its last {self.torn_bytes} bytes are an incomplete record")
        self._segment, self._offset, self._inode, self.torn_bytes = segment, 0, 0, 0

    def _read_segment(self, path: str) -> Iterator[Record]:
        try:
            fd = paths.open_file(path)
        except FileNotFoundError:
            return  # deleted since the folder was listed
        except OSError as error:
            self._report(path, f"could not be read: {error.strerror}")
            return
        try:
            yield from self._read_file(path, fd)
        except OSError as error:
            self._report(path, f"could not be read from byte {self._offset} on: {error.strerror}")
        finally:
            os.close(fd)

    def _read_file(self, path: str, fd: int) -> Iterator[Record]:
        status = os.fstat(fd)
        if status.st_ino != self._inode or status.st_size < self._offset:
            # The first poll, or a sealed file has replaced this one: start over, and skip known numbers.
            self._inode, self._offset = status.st_ino, 0
        self.torn_bytes = 0
        for item in frames.scan_file(fd, self._offset):
            if isinstance(item, frames.Damage):
                if item.torn:
                    self.torn_bytes = item.end - item.start
                    break
                self._report(path, f"bytes {item.start} to {item.end} are damaged and were skipped")
                self._offset = item.end
                continue
            if item.type == BLOCK:
                # Advance only afterwards: a caller that stops inside the block gets the rest at the next
                # poll.
                yield from self._block(path, item)
                self._offset = item.end
                continue
            self._offset = item.end
            record = self._record(path, item)
            if record is not None:
                yield record

    def _block(self, path: str, block: frames.Frame) -> Iterator[Record]:
        try:
            for frame in unpack_block(block.payload):
                record = self._record(path, frame)
                if record is not None:
                    yield record
        except ValueError as error:
            self._report(path, f"at byte {block.offset}: {error}")

    def _record(self, path: str, frame: frames.Frame) -> Record | None:
        """Decode a frame. Returns None if it was yielded before, is damaged, or has an unknown type."""
        seq, type = frame.seq, frame.type
        if seq < self.next_seq and type != SCHEMA:
            return None
        try:
            record = decode(self.writer, frame, self._schemas)
        except ValueError as error:
            record = None
            if seq >= self.next_seq:
                self.damaged += 1
            self._report(path, f"record {seq} of type {type} is damaged: {error}")
        if record is not None and type == SCHEMA:
            self._declare(record)  # even if known: a file that is read again needs its schemas
        if seq < self.next_seq:
            return None
        self.missing += seq - self.next_seq
        self.next_seq = seq + 1
        if record is not None and record.faults:
            for fault in record.faults:
                self._report(path, f"record {seq} has {fault}")
        return record

    def _declare(self, record: Record) -> None:
        schema_id, keys = record.value["id"], record.value["keys"]
        self._schema_keys += len(keys) - len(self._schemas.pop(schema_id, ()))
        self._schemas[schema_id] = keys
        while self._schema_keys > MAX_SCHEMA_KEYS:
            # The first has not been declared for the longest time; writers repeat those in use in every file.
            self._schema_keys -= len(self._schemas.pop(next(iter(self._schemas))))

    def _report(self, path: str, text: str) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            return
        if len(self.problems) == MAX_PROBLEMS - 1:
            text = "further problems are not listed"
        if not any(problem.text == text and problem.path == path for problem in self.problems):
            self.problems.append(ReadProblem(path, text))


def _first_seq(path: str) -> int | None:
    """Return the number of a file's first record, from its first header; None if that could not be read."""
    try:
        fd = paths.open_file(path)
    except OSError:
        return None  # reading the file reports why
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


class Tail:
    """Follows all writers of a run, including those that start later.

    Example:
        >>> tail = Tail("/data/runs/abc")
        >>> for record in tail.poll():      # now, and again later
        ...     print(record.writer, record.seq)
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.writers: dict[str, WriterTail] = {}

    def poll(self) -> Iterator[Record]:
        """Yield the records written since the last poll, writer by writer, in order.

        Raises:
            FileNotFoundError: the run does not exist.
        """
        for writer, segments in paths.segments(self.folder).items():
            tail = self.writers.get(writer)
            if tail is None:
                tail = self.writers[writer] = WriterTail(self.folder, writer)
            yield from tail.poll(segments)

    @property
    def damaged(self) -> int:
        """Number of records so far that could not be decoded and were skipped."""
        return sum(tail.damaged for tail in self.writers.values())

    @property
    def problems(self) -> list[ReadProblem]:
        """The problems so far, at most `MAX_PROBLEMS` per writer."""
        return [problem for tail in self.writers.values() for problem in tail.problems]


def read_run(folder: str) -> Iterator[Record]:
    """Yield all records of a run's folder as it is now."""
    yield from Tail(folder).poll()
