"""The writer: one process, one series of append-only files, one `write()` a record."""

from __future__ import annotations

import errno
import os

from runvitals.journal import file_descriptor, frames
from runvitals.journal.clock import Clock
from runvitals.journal.json_codec import dumps
from runvitals.journal.paths import OPEN_FLAGS, check_writer, make_private, segment_path
from runvitals.journal.samples import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = 1
NO_ROOM = frozenset(
    (errno.ENOSPC, errno.EFBIG, errno.EMFILE, errno.ENFILE, getattr(errno, "EDQUOT", errno.ENOSPC))
)
"""What may pass while the run goes on: no room on the disk, no descriptor left."""
SEGMENT_BYTES = 4 * 1024 * 1024


class Writer:
    """Appends records to a run's folder.

    A record that cannot be written is counted, never raised: a full disk does not stop a training. Neither
    does one that is full from the start: the first file is begun with the first record that finds room.

    Args:
        folder: the run's folder; made if missing.
        writer: the writer's name, unique among all that ever wrote to this run.
        about: what every file of this writer says of itself in its first record (run, host, role, pid …).
        segment_bytes: a file that has grown to this size is followed by a new one.
        guarded: this process runs other people's code, which may close our descriptor and open a file of its
            own under the same number. So the descriptor has a high number and is looked at before each write
            (0.8 µs); where the process may have few, none is kept.
        clock: what the times of all its records are to be taken from; by default one of its own.

    Attributes:
        lost: records that could not be written and are not yet reported in the journal itself.
        error: why the last thing that failed did; None while nothing has.
        rotated: files closed for good since the caller last emptied this list; they may be sealed.

    Raises:
        OSError: the folder or its first file cannot be made; the error names the path.
        ValueError: a writer's name that cannot be a file's.

    Example:
        >>> journal = Writer("/data/runs/abc", "train.node1.4711", {"run": "abc", "role": "train"})
        >>> journal.json(frames.HISTORY, {"t": 1700000000000, "step": 1, "data": {"loss": 0.5}})
        True
    """

    __slots__ = (
        "_fd",
        "_few",
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
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.writer = check_writer(writer)
        self.about = dict(about)
        self.segment_bytes = segment_bytes
        self.clock = clock or Clock()
        self.segment = 0
        self.seq = 0
        self.size = 0  # of the file being written; 0 while it has not been begun
        self.lost = 0
        self.error: OSError | None = None
        self.packer = Packer()
        self.rotated: list[str] = []
        self._lost_since_ms = 0
        self._fd = -1
        self._guarded = guarded
        self._few = guarded and file_descriptor.are_few()
        self._identity: file_descriptor.Identity | None = None  # of a guarded file
        try:
            self._begin_file()
        except OSError as error:
            self.error = error
            if error.errno in NO_ROOM:
                return
            if self._fd >= 0:
                os.close(self._fd)
                os.unlink(self.path)
            raise
        self._let_go()

    @property
    def path(self) -> str:
        """The file that is being written."""
        return segment_path(self.folder, self.writer, self.segment)

    def sample(self, time_ms: int, values: Mapping[str, float]) -> bool:
        """Append one moment's readings. True: the kernel has them, no kill of this process loses them."""
        schema, payload = self.packer.pack(time_ms, values)
        if schema is not None:
            self.record(frames.SCHEMA, schema)
        return self.record(frames.SAMPLE, payload)

    def json(self, type: int, value: Mapping[str, object]) -> bool:
        """Append a record whose payload is a JSON object.

        Raises:
            ValueError, TypeError: what JSON cannot hold; see `jsontext.dumps`.
        """
        return self.record(type, dumps(value))

    def record(self, type: int, payload: bytes) -> bool:
        """Append one record, after a new file was begun if this one is full.

        Raises:
            ValueError: a payload over 16 MiB.
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
        if self._few:
            self._let_go()
        return True

    def close(self) -> None:
        """Report what is still unreported, and let go of the file."""
        if self.lost:
            try:
                if self._identity is not None:
                    self._check_descriptor()
                self._report_loss()
            except OSError as error:
                self.error = error
        self.error = self._close_file() or self.error

    def forget(self) -> None:
        """Drop the file without a word, as a forked child must that shares its parent's descriptor."""
        self._close_file()

    def _begin_file(self) -> None:
        """Open the file, if it is not yet, and write its head: who writes, and every schema in use."""
        if self._fd < 0:
            if not self.seq:
                make_private(self.folder)
            try:
                self._open(os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                if not self.seq:
                    raise
                # It was made before, and an exception of a signal's handler came right then, as Ctrl-C does.
                self._begin_another()
                self._open(os.O_CREAT | os.O_EXCL)
        self._write_all([(frames.START, self.start_record(self.segment)), *self._schemas()])

    def start_record(self, segment: int) -> bytes:
        """The payload of a file's first record: who writes it."""
        about: dict[str, object] = {"format": FORMAT, "writer": self.writer, "segment": segment}
        if "t" not in self.about:  # an import or a simulation tells of other times than its own
            about |= {"t": self.clock.now_ms(), "since_boot_ms": self.clock.since_boot_ms()}
        return dumps({**about, **self.about})

    def _open(self, how: int) -> None:
        flags = os.O_WRONLY | os.O_APPEND | OPEN_FLAGS | how
        if not self._guarded:
            self._fd = os.open(self.path, flags, 0o600)
            return
        with file_descriptor.Room():
            fd = file_descriptor.raised(os.open(self.path, flags, 0o600))
        found = file_descriptor.identity(fd)
        if how or found == self._identity:
            self._fd, self._identity = fd, found
            return
        os.close(fd)
        self._begin_another()

    def _check_descriptor(self) -> None:
        """Have the file open again where the program has closed our descriptor, whatever has its number now.

        Raises:
            OSError: it cannot be opened.
        """
        if (
            self._fd >= 0
            and self._identity is not None
            and file_descriptor.is_still(self._fd, self._identity)
        ):
            return
        self._fd = -1
        if not self.size:
            self._begin_another()
            return
        try:
            self._open(0)
        except FileNotFoundError:
            self._begin_another()

    def _begin_another(self) -> None:
        """Go on in the next file: this one is not there any more, or was replaced."""
        self._identity = None
        self.segment += 1
        self.size = 0

    def _let_go(self) -> None:
        """Close the file until the next record, where the program needs every descriptor that there is."""
        if self._few and self._identity is not None:
            known = self._identity
            self.error = self._close_file() or self.error
            self._identity = known

    def _schemas(self) -> list[tuple[int, bytes]]:
        return [(frames.SCHEMA, self.packer.schema(schema_id)) for schema_id in self.packer.declared]

    def _write_all(self, records: Sequence[tuple[int, bytes]]) -> None:
        """Append some records, all or none of them."""
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
            while written < len(data):  # a disk that fills up takes a part, and says why at the next attempt
                written += os.write(self._fd, data[written:])
        except OSError as error:
            error.filename = self.path
            if written:
                self._cut_off()
            raise

    def _cut_off(self) -> None:
        """Remove half a record from the file's end. Where that fails, go on in another file."""
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
            self._report_not_kept(failure)

    def _can_open(self) -> bool:
        """Whether a descriptor is free. A program that has used up its own goes on in the file that is
        open.
        """
        try:
            with file_descriptor.Room():
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
        known, self._identity = self._identity, None
        if known is not None and not file_descriptor.is_still(fd, known):
            return None  # it is somebody else's by now
        try:
            os.close(fd)
        except OSError as error:  # network file systems say so late that they have no room
            error.filename = self.path
            return error
        return None

    def _report_not_kept(self, failure: OSError) -> None:
        """The kernel took records that the disk then did not. It does not say which; say that it happened."""
        self.error = failure
        text = f"the disk did not take what was written last: {failure}"
        now_ms = self.clock.now_ms()
        self.json(frames.EVENT, {"t": now_ms, "name": "sync_failed", "level": "error", "text": text})

    def _report_loss(self) -> None:
        """Say in the journal itself how much could not be written, and every schema, as one may be lost."""
        if not self.size:
            self._begin_file()
        self._write_all([(frames.EVENT, self.loss_record()), *self._schemas()])
        self.lost = 0

    def loss_record(self) -> bytes:
        """The payload of the event that reports the records lost so far."""
        event = {
            "t": self.clock.now_ms(),
            "name": "records_lost",
            "level": "error",
            "count": self.lost,
            "since": self._lost_since_ms,
            "text": f"{self.lost} records could not be written: {self.error}",
        }
        return dumps(event)
