"""The writer: one process, one series of append-only files, one `write()` a record."""

from __future__ import annotations

import os
import time

from runvitals.journal import frames
from runvitals.journal.jsontext import dumps
from runvitals.journal.paths import segment_path
from runvitals.journal.samples import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
SEGMENT_BYTES = 4 * 1024 * 1024


class Writer:
    """Appends records to a run's folder. A record that cannot be written is counted, never raised: a full disk does not stop a training.

    Args:
        folder: the run's folder; made if missing.
        writer: the writer's name, unique among all that ever wrote to this run.
        about: what every file of this writer says of itself in its first record (run, project, host, role, pid …).

    Raises:
        OSError: the folder or its first file cannot be made.

    Example:
        >>> journal = Writer("/data/runs/abc", "train.node1.4711", {"run": "abc", "role": "train"})
        >>> journal.json(frames.HISTORY, {"t": 1700000000000, "step": 1, "data": {"loss": 0.5}})
        True
    """

    __slots__ = (
        "_fd",
        "_lost_since_ms",
        "about",
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
        self, folder: str, writer: str, about: Mapping[str, object], segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self.folder = folder
        self.writer = writer
        self.about = dict(about)
        self.segment_bytes = segment_bytes
        self.segment = 0
        self.seq = 0
        self.size = 0
        self.lost = 0
        self.error: OSError | None = None
        self.packer = Packer()
        self.rotated: list[str] = []  # files closed for good since the caller last emptied this list
        self._lost_since_ms = 0
        self._fd = -1
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._open()
        if self.error is not None:
            raise self.error

    @property
    def path(self) -> str:
        """The file that is being written."""
        return segment_path(self.folder, self.writer, self.segment)

    def sample(self, time_ms: int, values: Mapping[str, float]) -> bool:
        """Append one moment's readings; True once they are with the kernel (a kill -9 of this process cannot lose them)."""
        schema, payload = self.packer.pack(time_ms, values)
        if schema is not None:
            self.record(frames.SCHEMA, schema)
        return self.record(frames.SAMPLE, payload)

    def json(self, type: int, value: object) -> bool:
        """Append a record whose payload is JSON."""
        return self.record(type, dumps(value))

    def record(self, type: int, payload: bytes) -> bool:
        """Append one record, after a new file was begun if this one is full."""
        if self.size >= self.segment_bytes:
            self._rotate()
        if self.lost and not self._report_loss():
            self.lost += 1
            return False
        return self._append(type, payload)

    def sync(self) -> None:
        """Wait until everything written is on the disk itself. Costs what the disk costs: 0.1 to 100 ms."""
        if self._fd >= 0:
            try:
                os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
            except OSError as error:
                self.error = error

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def forget(self) -> None:
        """Drop the file without a word, as a forked child must that shares its parent's descriptor."""
        self.close()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            self._fd = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            self.error = error
            return
        self.size = 0
        about = {"format": FORMAT, "writer": self.writer, "segment": self.segment, "t": time.time_ns() // 1_000_000}
        self._append(frames.START, dumps({**about, **self.about}))
        self._declare_again()

    def _declare_again(self) -> None:
        """Repeat every schema: at the start of a file, so that it can be read alone, and after a loss, which may have taken one."""
        for schema_id in range(len(self.packer.declared)):
            self._append(frames.SCHEMA, self.packer.schema(schema_id))

    def _rotate(self) -> None:
        self.sync()
        self.close()
        self.rotated.append(self.path)
        self.segment += 1
        self._open()

    def _append(self, type: int, payload: bytes) -> bool:
        data = frames.frame(type, self.seq, payload)
        try:
            if self._fd < 0:
                self._open()
                if self._fd < 0 and self.error is not None:
                    raise self.error
            written = os.write(self._fd, data)
            if written != len(data):
                # A disk that fills up takes part of a record. Cut it off again, so that the file ends with a whole one.
                os.ftruncate(self._fd, self.size)
                raise OSError(28, "No space left on device", self.path)
        except OSError as error:
            if not self.lost:
                self._lost_since_ms = time.time_ns() // 1_000_000
            self.lost += 1
            self.error = error
            return False
        self.seq += 1
        self.size += len(data)
        return True

    def _report_loss(self) -> bool:
        """Say in the journal itself what could not be written, as soon as it can be written again."""
        lost, since = self.lost, self._lost_since_ms
        event = {
            "t": time.time_ns() // 1_000_000,
            "name": "records_lost",
            "level": "error",
            "count": lost,
            "since": since,
            "text": f"{lost} records could not be written: {self.error}",
        }
        self.lost = 0
        if self._append(frames.EVENT, dumps(event)):
            self._declare_again()
            return True
        self.lost = lost  # `_append` counted its own failure, which is no record of the caller's
        self._lost_since_ms = since
        return False
