"""The files of a monitor's run: brings them to the disk, seals those that are full, and keeps room for the
ending."""

from __future__ import annotations

import os
from _stat import S_ISREG

from runvitals.journal.paths import SUFFIX
from runvitals.monitor.reserve import Reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.journal.sealing import Sealer
    from runvitals.journal.writer import JournalWriter

SYNC_EVERY_S = 10.0


class Disk:
    """A run's files. Nothing here raises: a folder that is deleted under a live run is no reason to end.

    Args:
        journal: the monitor's own.
        warn: called with (event's name, text).
        now_s: monotonic clock.

    Attributes:
        reserve: room for the run's ending.
        tend_at_s: when to `tend` again.
    """

    __slots__ = ("_journal", "_problem", "_sealer", "_sync_at_s", "_warn", "reserve", "tend_at_s")

    def __init__(self, journal: JournalWriter, warn: Callable[[str, str], object], now_s: float) -> None:
        self._journal = journal
        self._warn = warn
        self._sync_at_s = now_s + SYNC_EVERY_S
        self.tend_at_s = now_s
        self._problem = ""
        self._sealer: Sealer | None = None
        self.reserve = Reserve(journal)

    def tend(self, now_s: float) -> None:
        """What is due at a tick."""
        self.reserve.take()
        if now_s >= self._sync_at_s:
            self._sync_at_s = now_s + SYNC_EVERY_S
            self.sync()
        if self._sealer is not None or self._journal.rotated:
            self._seal_a_little()
        # A file is sealed a step at each tick. One that has just become full waits until the next sync.
        self.tend_at_s = self._sync_at_s if self._sealer is None else now_s

    def sync(self) -> None:
        """Bring the run's files to the disk itself: ours and those of the processes, which must not wait for
        a disk. What goes wrong again and again is told once.
        """
        problem = self._sync_all()
        if problem and problem != self._problem:
            self._warn("sync_failed", problem)
        self._problem = problem

    def _sync_all(self) -> str:
        """The last thing that went wrong; "" when nothing did."""
        folder = self._journal.folder
        problem = ""
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return ""  # the run was deleted while it went on
        except OSError as error:
            return f"{folder}: {error.strerror}"
        for name in names:
            if name.endswith(SUFFIX):
                problem = _sync_file(os.path.join(folder, name)) or problem
        return problem

    def _seal_a_little(self) -> None:
        from runvitals.journal.sealing import Sealer  # most runs never fill a file

        try:
            sealer = self._sealer = self._sealer or Sealer(self._journal.rotated.pop(0))
            if not sealer.step():
                self._sealer = None
        except (OSError, ValueError) as error:
            self.abandon()
            self._warn("not_sealed", str(error))

    def abandon(self) -> None:
        """Leave what is being sealed as it was."""
        if self._sealer is not None:
            self._sealer.abandon()
            self._sealer = None


def _sync_file(path: str) -> str:
    """What went wrong; "" when nothing did."""
    try:
        # Without waiting: it may be a pipe that nobody writes to.
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
