"""Disk space set aside for a run's ending. Without it, a run that ends on a full disk would be lost."""

from __future__ import annotations

import os

from runvitals.journal import frames
from runvitals.journal.json_codec import dumps
from runvitals.journal.paths import OPEN_FLAGS, segment_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.journal.writer import JournalWriter

# A file's first record, the report of lost records and the ending take 1 KB; file systems allocate 4 KiB.
RESERVE_BYTES = 4096


class Reserve:
    """A small file beside the journal that becomes its last file if there is no space for the ending.

    Its blocks are allocated already, so writing to it needs no free space. File systems that never write in
    place, such as Btrfs and ZFS, do not give that guarantee.

    Args:
        journal: the monitor's own.
    """

    __slots__ = ("_fd", "_journal")

    def __init__(self, journal: JournalWriter) -> None:
        self._journal = journal
        self._fd = -1

    @property
    def path(self) -> str:
        return os.path.join(self._journal.folder, f"{self._journal.writer}.reserve")

    def take(self) -> None:
        """Set the space aside, if that is not done yet and the disk allows it."""
        if self._fd >= 0 or not self._journal.size:
            return  # there is no space for the journal itself
        try:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPEN_FLAGS, 0o600)
            is_taken = os.write(self._fd, bytes(RESERVE_BYTES)) == RESERVE_BYTES
        except OSError:
            is_taken = False
        if not is_taken:
            self.release()

    def write(self, type: int, value: Mapping[str, object]) -> bool:
        """Write the journal's last record, which the disk has just rejected; whether that succeeded."""
        if self._fd < 0:
            return False
        journal = self._journal
        journal.lost -= 1  # this record, which is not lost if it can be written here
        records = [(frames.START, journal.start_record(journal.segment + 1))]
        if journal.lost:
            records.append((frames.EVENT, journal.loss_record()))
        records.append((type, dumps(value)))
        data = b"".join(
            frames.frame(one, journal.seq + at, payload) for at, (one, payload) in enumerate(records)
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
        """Free the space. A reserve that became the journal's last file stays."""
        if self._fd < 0:
            return
        os.close(self._fd)
        self._fd = -1
        try:
            os.unlink(self.path)
        except OSError:
            return  # renamed, or deleted with the run
