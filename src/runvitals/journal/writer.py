"""The writer of a series of append-only journal files: one per process, with one `write()` per record."""

from __future__ import annotations

import errno
import os

from runvitals.base.json_codec import dumps, loads, with_valid_text
from runvitals.base.private_folders import make_private
from runvitals.journal import file_descriptor, frames
from runvitals.journal.clock import RunClock
from runvitals.journal.paths import OPEN_FLAGS, check_writer, segment_path
from runvitals.journal.samples import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
TEMPORARY_ERRORS = frozenset(
    (errno.ENOSPC, errno.EFBIG, errno.EMFILE, errno.ENFILE, getattr(errno, "EDQUOT", errno.ENOSPC))
)
"""Errors that may be temporary: no space on the disk, no free descriptor."""
SEGMENT_BYTES = 4 * 1024 * 1024


class JournalWriter:
    """Appends records to a run's folder.

    A record that cannot be written is counted and does not raise, because a full disk must not stop a
    training. If the disk is full from the start, the first file is created with the first record for which
    there is space.

    Args:
        folder: the run's folder; created if missing.
        writer: the writer's name, unique in the run.
        about: fields of the START record of every file: run, host, role, pid …
        segment_bytes: a file that has reached this size is followed by a new one.
        guarded: this process runs user code, which may close our descriptor and open another file under the
            same number. The descriptor then has a high number and is checked before each write (0.8 µs). If
            the process may have only few descriptors, none is kept open.
        clock: source of the records' times; by default a new clock.

    Attributes:
        lost: number of records that could not be written and are not yet reported in the journal.
        error: the most recent error; None if there was none.
        rotated: files that were completed since the caller last emptied this list. They may be sealed.

    Raises:
        OSError: the folder or its first file could not be created; the error names the path.
        ValueError: the writer's name is invalid.

    Example:
        >>> journal = JournalWriter("/data/runs/abc", "train.node1.4711", {"run": "abc", "role": "train"})
        >>> journal.json(frames.HISTORY, {"t": 1700000000000, "step": 1, "data": {"loss": 0.5}})
        True
    """

    __slots__ = (
        "_close_after_write",
        "_fd",
        "_guarded",
        "_identity",
        "_lost_since_ms",
        "about",
        "clock",
        "error",
        "folder",
        "lost",
        "packer",
        "rotated",
        "segment",
        "segment_bytes",
        "seq",
        "size",
        "writer",
    )

    def __init__(
        self,
        folder: str,
        writer: str,
        about: Mapping[str, object],
        segment_bytes: int = SEGMENT_BYTES,
        guarded: bool = False,
        clock: RunClock | None = None,
    ) -> None:
        self.folder = folder
        self.writer = check_writer(writer)
        self.about = dict(about)
        self.segment_bytes = segment_bytes
        self.clock = clock or RunClock()
        self.segment = 0
        self.seq = 0
        self.size = 0  # of the current file; 0 until its first record is written
        self.lost = 0
        self.error: OSError | None = None
        self.packer = Packer()
        self.rotated: list[str] = []
        self._lost_since_ms = 0
        self._fd = -1
        self._guarded = guarded
        self._close_after_write = guarded and file_descriptor.is_limit_low()
        self._identity: file_descriptor.Identity | None = None  # of a guarded file
        try:
            self._begin_file()
        except OSError as error:
            self.error = error
            if error.errno in TEMPORARY_ERRORS:
                return
            if self._fd >= 0:
                os.close(self._fd)
                os.unlink(self.path)
            raise
        self._release_descriptor()

    @property
    def path(self) -> str:
        """The current file."""
        return segment_path(self.folder, self.writer, self.segment)

    def sample(self, time_ms: int, values: Mapping[str, float]) -> bool:
        """Append the values read at one time.

        Returns True if the kernel has accepted them: killing this process does not lose them.
        """
        schema, payload = self.packer.pack(time_ms, values)
        if schema is not None:
            self.record(frames.SCHEMA, schema)
        return self.record(frames.SAMPLE, payload)

    def json(self, type: int, value: Mapping[str, object]) -> bool:
        """Append a record with a JSON object as its payload. Returns whether it was written.

        Raises:
            ValueError, TypeError: not representable in JSON; see `json_codec.dumps`.
        """
        payload = dumps(value)
        if (
            b"\\ud" in payload
        ):  # a surrogate: half of a pair, as in a path that is not UTF-8, is not valid text
            payload = dumps(with_valid_text(loads(payload)))
        return self.record(type, payload)

    def record(self, type: int, payload: bytes) -> bool:
        """Append a record, to a new file if the current one is full. Returns whether it was written.

        Raises:
            ValueError: the payload is larger than 16 MiB.
        """
        if self.size >= self.segment_bytes and self._can_open():
            self._rotate()
        try:
            if self._identity is not None:
                self._check_descriptor()
            if self.lost:
                self._report_loss()
            if not self.size:
                self._begin_file()
            data = frames.frame(type, self.seq, payload)
            self._write(data)
        except OSError as error:
            if not self.lost:
                self._lost_since_ms = self.clock.now_ms()
            self.lost += 1
            self.error = error
            return False
        self.seq += 1
        self.size += len(data)
        if self._close_after_write:
            self._release_descriptor()
        return True

    def close(self) -> None:
        """Report lost records that are not reported yet, and close the file."""
        if self.lost:
            try:
                if self._identity is not None:
                    self._check_descriptor()
                self._report_loss()
            except OSError as error:
                self.error = error
        self.error = self._close_file() or self.error

    def forget(self) -> None:
        """Close the descriptor without writing anything, in a forked child that shares it with its parent."""
        self._close_file()

    def _begin_file(self) -> None:
        """Open the file if necessary, and write its START record and every schema in use."""
        if self._fd < 0:
            if not self.seq:
                make_private(self.folder)
            try:
                self._open(os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                if not self.seq:
                    raise
                # A signal handler, such as that of Ctrl-C, raised just after the file was created.
                self._skip_to_next_file()
                self._open(os.O_CREAT | os.O_EXCL)
        self._write_all([(frames.START, self.start_record(self.segment)), *self._schemas()])

    def start_record(self, segment: int) -> bytes:
        """Return the payload of a file's START record."""
        about: dict[str, object] = {"format": FORMAT, "writer": self.writer, "segment": segment}
        if "t" not in self.about:  # imports and simulations set the time themselves
            since_boot_ms = self.clock.since_boot_ms()  # read once: both times are of one moment
            about |= {"t": self.clock.anchor_ms + since_boot_ms, "since_boot_ms": since_boot_ms}
        return dumps({**about, **self.about})

    def _open(self, how: int) -> None:
        flags = os.O_WRONLY | os.O_APPEND | OPEN_FLAGS | how
        if not self._guarded:
            self._fd = os.open(self.path, flags, 0o600)
            return
        with file_descriptor.HigherLimit():
            fd = file_descriptor.move_to_high_number(os.open(self.path, flags, 0o600))
        identity = file_descriptor.identity(fd)
        if how or identity == self._identity:
            self._fd, self._identity = fd, identity
            return
        os.close(fd)
        self._skip_to_next_file()

    def _check_descriptor(self) -> None:
        """Reopen the file if the program has closed our descriptor.

        Its number may belong to another file now.

        Raises:
            OSError: the file could not be opened.
        """
        if (
            self._fd >= 0
            and self._identity is not None
            and file_descriptor.is_still(self._fd, self._identity)
        ):
            return
        self._fd = -1
        if not self.size:
            self._skip_to_next_file()
            return
        try:
            self._open(0)
        except FileNotFoundError:
            self._skip_to_next_file()

    def _skip_to_next_file(self) -> None:
        """Continue in the next file, because the current one was deleted or replaced."""
        self._identity = None
        self.segment += 1
        self.size = 0

    def _release_descriptor(self) -> None:
        """Close the file until the next record if descriptors are scarce."""
        if self._close_after_write and self._identity is not None:
            identity = self._identity
            self.error = self._close_file() or self.error
            self._identity = identity

    def _schemas(self) -> list[tuple[int, bytes]]:
        return [(frames.SCHEMA, self.packer.schema(schema_id)) for schema_id in self.packer.declared]

    def _write_all(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Append all of these records, or none."""
        data = b"".join(
            frames.frame(type, self.seq + i, payload) for i, (type, payload) in enumerate(records)
        )
        self._write(data)
        self.seq += len(records)
        self.size += len(data)

    def _write(self, data: bytes) -> None:
        written = 0
        try:
            written = os.write(self._fd, data)
            while written < len(data):  # a disk that fills up writes a part; the next write reports the error
                written += os.write(self._fd, data[written:])
        except OSError as error:
            error.filename = self.path
            if written:
                self._truncate_partial_record()
            raise

    def _truncate_partial_record(self) -> None:
        """Remove an incomplete record from the end of the file. If that fails, continue in the next file."""
        try:
            os.ftruncate(self._fd, self.size)
        except OSError:
            self._close_file()
            self.segment += 1
            self.size = 0

    def _rotate(self) -> None:
        failure = self._sync_file()
        failure = self._close_file() or failure
        self.rotated.append(self.path)
        self.segment += 1
        self.size = 0
        if failure is not None:
            self._report_failed_sync(failure)

    def _can_open(self) -> bool:
        """Return whether a descriptor is free. Without one, the writer continues in the file that is open."""
        try:
            with file_descriptor.HigherLimit():
                os.close(os.open(self.folder, os.O_RDONLY | OPEN_FLAGS))
        except OSError as error:
            return error.errno not in (errno.EMFILE, errno.ENFILE)
        return True

    def _sync_file(self) -> OSError | None:
        if self._fd < 0:
            return None
        try:
            (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(self._fd)
        except OSError as error:
            error.filename = self.path
            return error
        return None

    def _close_file(self) -> OSError | None:
        if self._fd < 0:
            return None
        fd, self._fd = self._fd, -1
        identity, self._identity = self._identity, None
        if identity is not None and not file_descriptor.is_still(fd, identity):
            return None  # this number belongs to another file now
        try:
            os.close(fd)
        except OSError as error:  # network file systems may report only now that there is no space
            error.filename = self.path
            return error
        return None

    def _report_failed_sync(self, failure: OSError) -> None:
        """Record that the disk did not store records that the kernel had accepted.

        Which ones is not known.
        """
        self.error = failure
        text = f"the disk could not store the most recent records: {failure}"
        now_ms = self.clock.now_ms()
        self.json(frames.EVENT, {"t": now_ms, "name": "sync_failed", "level": "error", "text": text})

    def _report_loss(self) -> None:
        """Record in the journal how many records were lost.

        Then repeat all schemas, one of which may be lost.
        """
        if not self.size:
            self._begin_file()
        self._write_all([(frames.EVENT, self.loss_record()), *self._schemas()])
        self.lost = 0

    def loss_record(self) -> bytes:
        """Return the payload of the `records_lost` event for the records lost so far."""
        event = {
            "t": self.clock.now_ms(),
            "name": "records_lost",
            "level": "error",
            "count": self.lost,
            "since": self._lost_since_ms,
            "text": f"{self.lost} records could not be written: {self.error}",
        }
        return dumps(event)
