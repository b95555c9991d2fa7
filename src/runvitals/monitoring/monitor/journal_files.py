"""Maintenance of the journal files of the monitor's run.

Syncs them to disk, seals full ones, and reserves space for the record of the run's ending.
"""

from __future__ import annotations

import os
from _stat import S_ISREG

from runvitals.base.json_codec import dumps
from runvitals.journal import frames
from runvitals.journal.paths import OPEN_FLAGS, SUFFIX, segment_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runvitals.journal.sealing import SegmentSealer
    from runvitals.journal.writer import JournalWriter

SYNC_EVERY_S = 10.0
# A START record, the report of lost records and the ending take 1 KB; file systems allocate 4 KiB.
RESERVE_BYTES = 4096


class JournalFiles:
    """The files of a run. No method raises: the monitor continues even if the run's folder is deleted.

    Args:
        journal: the monitor's own.
        warn: called with (name of an event, text).
        now_s: monotonic clock.

    Attributes:
        reserve: space for the run's ending.
        maintain_at_s: when to call `maintain` again.
    """

    __slots__ = (
        "_journal", "_problem", "_sealer", "_sync_at_s", "_synced", "_warn", "maintain_at_s", "reserve",
    )  # fmt: skip

    def __init__(self, journal: JournalWriter, warn: Callable[[str, str], object], now_s: float) -> None:
        self._journal = journal
        self._warn = warn
        self._sync_at_s = now_s + SYNC_EVERY_S
        self.maintain_at_s = now_s
        self._problem = ""
        self._synced: dict[str, int] = {}  # name → size when it was last flushed
        self._sealer: SegmentSealer | None = None
        self.reserve = Reserve(journal)

    def maintain(self, now_s: float) -> None:
        """Do what is due at a tick: reserve space, sync, seal one step."""
        self.reserve.allocate()
        if now_s >= self._sync_at_s:
            self._sync_at_s = now_s + SYNC_EVERY_S
            self.sync()
        if self._sealer is not None or self._journal.rotated:
            self._seal_step()
        # A file is sealed in one step per tick. A file that has just become full waits until the next sync.
        self.maintain_at_s = self._sync_at_s if self._sealer is None else now_s

    def sync(self) -> None:
        """Flush the run's files to disk.

        Also those of the training processes, which must not wait for a disk. A repeated error is reported
        once.
        """
        problem = self._sync_all()
        if problem and problem != self._problem:
            self._warn("sync_failed", f"could not flush to disk: {problem}")
        self._problem = problem

    def _sync_all(self) -> str:
        """Returns the last error, or ""."""
        folder = self._journal.folder
        problem = ""
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return ""  # the run was deleted while it was running
        except OSError as error:
            return f"{folder}: {error.strerror}"
        synced: dict[str, int] = {}
        for name in names:
            if not name.endswith(SUFFIX):
                continue
            path = os.path.join(folder, name)
            size = _size(path)
            # Records are only appended. Flushing a file costs 0.2 ms of CPU even if nothing is new in it.
            failure = _sync_file(path) if self._synced.get(name) != size else ""
            if not failure:
                synced[name] = size
            problem = failure or problem
        self._synced = synced
        return problem

    def _seal_step(self) -> None:
        from runvitals.journal.sealing import SegmentSealer  # most runs never fill a file

        try:
            sealer = self._sealer = self._sealer or SegmentSealer(self._journal.rotated.pop(0))
            if not sealer.step():
                self._sealer = None
        except (OSError, ValueError) as error:
            self.abandon_sealing()
            self._warn("not_sealed", str(error))

    def abandon_sealing(self) -> None:
        """Leave the file that is being sealed as it was."""
        if self._sealer is not None:
            self._sealer.abandon()
            self._sealer = None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1  # sealed and renamed since the listing


def _sync_file(path: str) -> str:
    """Returns the error, or ""."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for a process that writes to it.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""  # sealed and renamed since the listing
    try:
        if S_ISREG(os.fstat(fd).st_mode):
            os.fsync(fd)
    except OSError as error:
        return f"{path}: {error.strerror}"
    finally:
        os.close(fd)
    return ""


class Reserve:
    """A small file beside the journal that becomes its last segment if there is no space for the ending.

    Without it, a run that ends on a full disk would be lost.

    Its blocks are already allocated, so writing to it needs no free space. File systems that never write in
    place, such as Btrfs and ZFS, do not guarantee that.

    Args:
        journal: the monitor's own.
    """

    __slots__ = ("_fd", "_journal")

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._fd = -1

    @property
    def path(self) -> str:
        """The file that is kept in reserve."""
        return os.path.join(self._journal.folder, f"{self._journal.writer}.reserve")

    def allocate(self) -> None:
        """Reserve the space, unless that is done already or the disk is full."""
        if self._fd >= 0 or not self._journal.size:
            return  # without a first record there was no space for the journal itself
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, 0o600)
            is_allocated = os.write(self._fd, bytes(RESERVE_BYTES)) == RESERVE_BYTES
        except OSError:
            is_allocated = False
        if not is_allocated:
            self.release()

    def write(self, type: int, value: Mapping[str, object]) -> bool:
        """Write the journal's last record, after the disk has rejected it. Returns whether that succeeded."""
        if self._fd < 0:
            return False
        journal = self._journal
        journal.lost -= 1  # this record, which is not lost if it can be written here
        records = [(frames.START, journal.start_record(journal.segment + 1))]
        if journal.lost:
            records.append((frames.EVENT, journal.loss_record()))
        records.append((type, dumps(value)))
        data = b"".join(
            frames.frame(record_type, journal.seq + i, payload)
            for i, (record_type, payload) in enumerate(records)
        )
        if len(data) > RESERVE_BYTES or not self._publish(data):
            journal.lost += 1
            return False
        journal.forget()
        journal.segment += 1
        journal.seq += len(records)
        journal.lost = 0
        return True

    def _publish(self, data: bytes) -> bool:
        try:
            os.lseek(self._fd, 0, os.SEEK_SET)
            if os.write(self._fd, data) < len(data):
                return False
            os.ftruncate(self._fd, len(data))
            os.fsync(self._fd)
            journal = self._journal
            os.rename(self.path, segment_path(journal.folder, journal.writer, journal.segment + 1))
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Free the space. A reserve that became the journal's last segment stays."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        try:
            os.unlink(self.path)
        except OSError:
            return  # renamed, or deleted with the run
