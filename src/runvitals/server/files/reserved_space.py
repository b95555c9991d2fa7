"""Space for files that are arriving: those that arrive together must not exceed a limit together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from runvitals.model.limits import FILE_BYTES
from runvitals.server.files.disk_space import DiskSpace, FileNotStored
from runvitals.server.files.storage.stored_files import StoredFileTable
from runvitals.server.http.request_errors import HttpRejection
from runvitals.store.files.uploads import Uploads

_RESERVED_AT_ONCE = 16 << 20
"""A file of unknown size reserves so much more space whenever it needs more."""


class FileRejected(HttpRejection):
    """413: a file exceeds a limit of this server, and is not accepted later either."""

    def __init__(self, text: str) -> None:
        super().__init__(413, text)


@dataclass(frozen=True, slots=True)
class FileLimits:
    """How much files may take.

    Args:
        file_bytes: one file of a run.
        run_bytes: all files of a run.
        artifact_file_bytes: one file of an artifact.
        total_bytes: all files of the server, each content counted once; None: no limit.
        free_bytes: what must stay free on the disk.
    """

    file_bytes: int = FILE_BYTES
    run_bytes: int = 100 << 30
    artifact_file_bytes: int = 100 << 30
    total_bytes: int | None = None
    free_bytes: int = 1 << 30


class Reservation(NamedTuple):
    """Space for a file that arrives whole.

    `run_id`: the run whose file it is; None: it is one of an artifact. `most`: bytes that it may have.
    """

    bytes: int
    run_id: int | None
    most: int


class ReservedSpace:
    """Reservations of requests. Thread-safe; what frees space waits for nothing, so an event loop may do it.

    Args:
        limits: returns the limits now.
        uploads: unfinished uploads, which count too.
        files: those that have arrived.
        disk: that of the uploads.
    """

    def __init__(
        self,
        limits: Callable[[], FileLimits],
        uploads: Uploads,
        files: StoredFileTable,
        disk: DiskSpace,
    ) -> None:
        self._limits = limits
        self._uploads = uploads
        self._files = files
        self._disk = disk
        # By request and path: several requests may send the same file.
        self._reserved: dict[tuple[object, str], Reservation] = {}
        self._lock = threading.Lock()

    @contextmanager
    def reserved(self, path: str, size: int, run_id: int, arrived: int = 0) -> Iterator[None]:
        """Reserve space while something of a run arrives, perhaps in several requests at once.

        Args:
            arrived: how many bytes of it are on the disk already.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        key = (object(), path)
        with self._lock:
            reservation = Reservation(size, run_id, size)
            self._check(path, reservation, max(0, size - arrived))
            self._reserved[key] = reservation
        try:
            yield
        finally:
            del self._reserved[key]

    def reserve(self, path: str, size: int, reservation: Reservation) -> None:
        """Reserve space for a file that arrives whole, until `release`.

        Args:
            reservation: as much as is reserved, if a file of the limit's size is not smaller.

        Raises:
            FileRejected, FileNotStored: as `reserved`.
        """
        if size > reservation.most:
            raise FileRejected(f"a file of {size:,} bytes; this server accepts at most {reservation.most:,}")
        reservation = reservation._replace(bytes=min(reservation.bytes, reservation.most))
        with self._lock:
            self._check(path, reservation, reservation.bytes)
            self._reserved[None, path] = reservation

    def reserve_more(self, path: str, size: int) -> None:
        """Reserve space for more of a file whose size was not known at first. Raises as `reserve`."""
        reserved = self._reserved[None, path]
        if size > reserved.bytes:
            steps = -(-size // _RESERVED_AT_ONCE)
            try:
                self.reserve(path, size, reserved._replace(bytes=steps * _RESERVED_AT_ONCE))
            except (FileRejected, FileNotStored):  # near a limit, only what is needed
                self.reserve(path, size, reserved._replace(bytes=size))

    def release(self, path: str) -> None:
        """Free the space of a file that arrived whole."""
        self._reserved.pop((None, path), None)

    def _check(self, path: str, reservation: Reservation, missing: int) -> None:
        """Raise unless there is space for a reservation beside all others.

        Args:
            missing: how many bytes have not arrived yet.
        """
        arriving = {path: reservation}
        for (_, other), each in dict(self._reserved).items():
            if other not in arriving or each.bytes > arriving[other].bytes:
                arriving[other] = each
        if reservation.run_id is not None:
            run_id, limit = reservation.run_id, self._limits().run_bytes
            reserved = sum(each.bytes for each in arriving.values() if each.run_id == run_id)
            unfinished = self._uploads.total_bytes(run_id, without=arriving)
            if self._files.run_bytes(run_id) + unfinished + reserved > limit:
                raise FileRejected(f"the files of the run would exceed the limit of {limit:,} bytes")
        most = self._limits().total_bytes
        if most is not None:
            reserved = sum(each.bytes for each in arriving.values())
            bytes_left = most - self._uploads.total_bytes(without=arriving) - reserved
            stored = self._files
            # Another server may have removed files.
            if stored.total_bytes() > bytes_left and stored.total_bytes(anew=True) > bytes_left:
                raise FileRejected(f"the files of this server would exceed the limit of {most:,} bytes")
        self._disk.check(missing)
