"""Reads only the start and end of a writer's files, which is enough to list a run of any length.

Reads at most `EDGE_BYTES` from the start of the first file, and from the start and the end of the newest one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from runvitals.journal import frames, paths
from runvitals.journal.records import Record, decode, decode_schema
from runvitals.journal.sealing import whole_records

EDGE_BYTES = 64 * 1024
_LOGGED_SUMMARY = b'"logged":'
_NAME = b'name"'  # `name`, or `default_name`
# Read up to this much if the newest sample's schema is before the tail. Files never get this large.
_MAX_BYTES = 64 * 1024 * 1024

EMPTY = "empty; was the disk full?"  # a writer begins each file with a record
Signature = tuple[int, int, int, int]  # segment, size, mtime in ns, inode


class WriterFileEnds:
    """The first and last records of one writer, read again only if its files change.

    Example:
        >>> ends = WriterFileEnds("/data/runs/abc", "monitor.node1.19f3a")
        >>> [record.type for record in ends.records([0])][0] == frames.START
        True
    """

    def __init__(self, folder: str, writer: str) -> None:
        self.folder = folder
        self.writer = writer
        self._records: list[Record] = []
        self._schemas: dict[int, list[str]] = {}  # schema ids are unique across a writer's files
        self._signature: Signature | None = None
        self.damaged = 0  # records at the ends that could not be decoded

    @property
    def is_empty(self) -> bool:
        """Whether the newest file was empty when it was last read."""
        return self._signature is not None and self._signature[1] == 0

    def has_changed(self, segments: Sequence[int]) -> bool:
        """Return whether the newest file's number, size or modification time differs from the last read."""
        return self._signature_of(segments[-1]) != self._signature

    def _signature_of(self, segment: int) -> Signature | None:
        try:
            status = os.stat(self._path(segment))
        except OSError:
            return None
        return segment, status.st_size, status.st_mtime_ns, status.st_ino

    def _path(self, segment: int) -> str:
        return paths.segment_path(self.folder, self.writer, segment)

    def records(self, segments: Sequence[int]) -> list[Record]:
        """Return the records at the ends of the files, in order, including the newest sample.

        Raises:
            OSError: a file cannot be read.
        """
        signature = self._signature_of(segments[-1])
        if signature is None or signature != self._signature:
            self.damaged = 0
            self._records = self._read(segments)
            self._signature = signature
        return self._records

    def _read(self, segments: Sequence[int]) -> list[Record]:
        if paths.is_edit(self.writer):  # few, and all of them count
            parts = (_frames_in(self._path(segment), 0, _MAX_BYTES) for segment in segments)
            return list(self._decode([frame for part in parts for frame in part]))
        newest = self._path(segments[-1])
        size = os.path.getsize(newest)
        read = list(_frames_in(newest, 0, 2 * EDGE_BYTES))
        self._learn_schemas(read)
        if size > 2 * EDGE_BYTES:
            head = [frame for frame in read if frame.offset < EDGE_BYTES]
            tail = list(_frames_in(newest, size - EDGE_BYTES, EDGE_BYTES))
            self._learn_schemas(tail)
            if not self._readable(tail):
                tail = list(_frames_in(newest, 0, min(size, _MAX_BYTES)))
                self._learn_schemas(tail)
            read = head + tail
        if segments[0] != segments[-1]:
            read = [*_frames_in(self._path(segments[0]), 0, EDGE_BYTES), *read]
        return list(self._decode(read))

    def _learn_schemas(self, read: Iterable[frames.Frame]) -> None:
        for frame in read:
            if frame.type == frames.SCHEMA:
                try:
                    schema_id, keys = decode_schema(frame)
                except ValueError:
                    self.damaged += 1
                    continue
                self._schemas[schema_id] = keys

    def _readable(self, tail: Sequence[frames.Frame]) -> bool:
        """Return whether the newest sample can be unpacked.

        It cannot if its schema, or the start of a long record, is before the tail.
        """
        newest = next((frame for frame in reversed(tail) if frame.type == frames.SAMPLE), None)
        if newest is None:
            return bool(tail)
        return int.from_bytes(newest.payload[:4], "little") in self._schemas

    def _decode(self, read: Sequence[frames.Frame]) -> Iterator[Record]:
        """Decode the records that describe the run, without duplicates.

        Only the newest sample, and only the `log()` rows since the summary was last written.
        """
        last_summary = max((frame.seq for frame in read if _has_summary(frame)), default=-1)
        newest: Record | None = None
        last_seq = -1
        for frame in read:
            if frame.seq <= last_seq:
                continue
            last_seq = frame.seq
            if frame.type == frames.HISTORY and frame.seq < last_summary:
                continue
            record = self._record(frame)
            if record is None:
                continue
            if frame.type == frames.SAMPLE:
                newest = record
            else:
                yield record
        if newest is not None:
            yield newest

    def _record(self, frame: frames.Frame) -> Record | None:
        if frame.type in (frames.CONSOLE, frames.SCHEMA):
            return None
        try:
            return decode(self.writer, frame, self._schemas)
        except ValueError:
            self.damaged += 1  # the full reader reports the details
            return None


def naming_records(folder: str, writer: str, segments: Sequence[int]) -> Iterator[Record]:
    """Yield the records at the ends of a writer's files that may name the run.

    Samples and rows are not decoded.

    Raises:
        OSError: a file cannot be read.
    """
    newest = paths.segment_path(folder, writer, segments[-1])
    size = os.path.getsize(newest)
    parts = [(newest, 0, 2 * EDGE_BYTES)]
    if paths.is_edit(writer):
        parts = [(paths.segment_path(folder, writer, segment), 0, _MAX_BYTES) for segment in segments]
    elif size > 2 * EDGE_BYTES:
        parts = [(newest, 0, EDGE_BYTES), (newest, size - EDGE_BYTES, EDGE_BYTES)]
    if segments[0] != segments[-1] and not paths.is_edit(writer):
        parts.insert(0, (paths.segment_path(folder, writer, segments[0]), 0, EDGE_BYTES))
    for part in parts:
        for frame in _frames_in(*part):
            if frame.type == frames.INFO and _NAME in frame.payload:
                with suppress(ValueError):  # damaged
                    record = decode(writer, frame, {})
                    if record is not None:
                        yield record


def _has_summary(frame: frames.Frame) -> bool:
    return frame.type == frames.INFO and _LOGGED_SUMMARY in frame.payload


def _frames_in(path: str, start: int, length: int) -> Iterator[frames.Frame]:
    """Yield the complete frames in part of a file, also from sealed blocks, and skip damage."""
    yield from whole_records(paths.read_range(path, start, length))
