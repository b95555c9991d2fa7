"""Readers: all records of a run's folder, once (`read_run`) or as they come (`Tail`).

A reader takes nothing on trust: whatever a file holds, it yields the records that are whole, says in
`problems` what was not, and holds no more than one frame or block of a file in memory.
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

MAX_SCHEMA_KEYS = 1_000_000  # of all schemas that a reader remembers of a writer
MAX_PROBLEMS = 100  # kept per writer


class Problem:
    """Something in a file that could not be read. The rest of the file was."""

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
        next_seq: the number of the first record that is wanted. Of the segments before the one that holds it
            nothing but a header is read.
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
        self.missing = (
            0  # records that a later one shows to have been there: damaged, or in a file that was deleted
        )
        self.damaged = 0  # records that were there and could not be decoded
        self.problems: list[Problem] = []
        self.torn_bytes = (
            0  # of a last record that is not whole: it is being written, or its writer died in it
        )
        self._segment = 0
        self._offset = 0
        self._inode = 0
        self._schemas: dict[int, list[str]] = {}
        self._schema_keys = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found so far: no record, no damage, no beginning of a record."""
        return not self.next_seq and not self.torn_bytes and not self.problems

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
        try:
            fd = paths.open_file(path)
        except FileNotFoundError:
            return  # deleted since the folder was listed
        except OSError as error:
            self._report(path, f"cannot be read: {error.strerror}")
            return
        try:
            yield from self._read_file(path, fd)
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
        """The frame decoded; None where it was seen before, is damaged, or is of an unknown type."""
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
            self._declare(record)  # even if seen before: a file that is read again must know its schemas
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
        fd = paths.open_file(path)
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
    def damaged(self) -> int:
        """Records that could not be decoded so far, and were left out."""
        return sum(tail.damaged for tail in self.writers.values())

    @property
    def problems(self) -> list[Problem]:
        """Everything that could not be read so far."""
        return [problem for tail in self.writers.values() for problem in tail.problems]


def read_run(folder: str) -> Iterator[Record]:
    """All records of a run's folder as it is now."""
    yield from Tail(folder).poll()
