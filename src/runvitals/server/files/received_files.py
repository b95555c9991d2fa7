"""The files of runs and artifacts on a shared server.

Receives them, in pieces or whole, keeps and removes them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from runvitals.model.limits import FILE_BYTES
from runvitals.model.media_types import HEAD_BYTES, media_type
from runvitals.server.files.disk_space import DiskSpace, FileNotStored
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.library.run_library import OpenedContent
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound
from runvitals.store.files.folder_store import CONTENTS, FolderFileStore
from runvitals.store.files.interface import FileStore
from runvitals.store.files.parts import FileParts
from runvitals.store.files.uploads import Uploads, WrongOffset

_STALE_S = 7 * 86_400.0
"""An upload without a new piece for so long is dropped."""
_ORPHAN_S = 3600.0
"""A content that no file refers to is removed after this time: before, it may just have been put there."""
_UNUSED_PER_TURN = 1000
_RESERVED_AT_ONCE = 16 << 20
"""A file of unknown size reserves so much more space whenever it needs more."""
_CHECKED_PER_QUERY = 1000

log = logging.getLogger("runvitals.server")


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


class _Reservation(NamedTuple):
    """Space for a file that arrives whole.

    `run_id`: the run whose file it is; None: it is one of an artifact.
    """

    bytes: int
    run_id: int | None


class UploadState(NamedTuple):
    """How much of a file has arrived. `complete`: all, and it belongs to the run."""

    sha256: str
    offset: int
    complete: bool


class ReceivedFiles:
    """Uploads, contents and their removal. Thread-safe; one process at a time works on a folder.

    Args:
        folder: for contents and unfinished uploads.
        clock: the time now, ms UTC.
        store: where contents are kept, such as a bucket; None: in the folder.

    Attributes:
        limits: of what may be uploaded.
        space: of the disk of the folder.
        parts: of files that arrive in parts; they count as unfinished uploads.
    """

    def __init__(
        self,
        folder: str,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        limits: FileLimits | None = None,
        store: FileStore | None = None,
    ) -> None:
        self._folder = folder
        self._metadata_store = metadata_store
        self._files = metadata_store.stored_files
        self._clock = clock
        self._uploads = Uploads(os.path.join(folder, "uploads"))
        self.parts = FileParts(os.path.join(folder, "uploads"))
        self._store = store or FolderFileStore(os.path.join(folder, CONTENTS))
        self.limits = limits or FileLimits()
        self.space = DiskSpace(self._folder, lambda: self.limits.free_bytes)
        # Nothing is removed between a content and its row.
        self._changing = threading.Lock()
        self._being_kept: Counter[str] = Counter()
        # Files that arrive whole, by path: those that arrive together must not exceed a limit together.
        self._reserved: dict[str, _Reservation] = {}
        self._reserving = threading.Lock()

    # Uploads

    def run_number(self, uid: str, number: int | None) -> int:
        """Return the number of a run. The check of the permission knows it on a server with accounts.

        Raises:
            NotFound: there is no such run.
        """
        if number is None:
            runs = self._metadata_store.runs.places(uid)
            number = runs[0].run_id if runs else None
        if number is None:
            raise NotFound(f"there is no run {uid!r}: send an envelope of it first")
        return number

    def states(self, run_id: int, digests: Sequence[str]) -> list[UploadState]:
        """How much of some files has arrived. Those that another run of the project has sent are complete."""
        with self._changing:
            shared = self._files.share(run_id, digests)
        return [
            UploadState(sha256, 0, True)
            if sha256 in shared
            else UploadState(sha256, self._uploads.offset(run_id, sha256), False)
            for sha256 in digests
        ]

    def append(self, run_id: int, sha256: str, size: int, offset: int, piece: bytes) -> UploadState:
        """Add a piece to a file. Everything that was accepted is kept if the server is killed.

        Args:
            size: of the whole file.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: such as on a full disk.
            WrongOffset, ContentDiffers, ValueError: see `Uploads.append`.
        """
        # At every piece: a client may name another size than at the first.
        self._check_limits(run_id, size, size - offset)

        def keep(path: str) -> None:
            with open(path, "rb") as file:
                detected = media_type(file.read(HEAD_BYTES))
            with self._keeping(sha256):
                self._store.take(sha256, path)
                self._files.add(run_id, StoredFile(sha256, size, detected), self._clock())

        try:
            with self.space.writing():
                complete = self._uploads.append(run_id, sha256, size, offset, piece, keep)
        except WrongOffset:
            # Two processes of a run may send the same file at the same time.
            if self._files.of_run(run_id, sha256) is None:
                raise
            return UploadState(sha256, 0, True)
        return UploadState(sha256, offset + len(piece), complete)

    @contextmanager
    def _keeping(self, sha256: str) -> Iterator[None]:
        """While a content is stored, which may take minutes in a bucket, housekeeping does not remove it."""
        with self._changing:
            self._being_kept[sha256] += 1
        try:
            yield
        finally:
            with self._changing:
                self._being_kept[sha256] -= 1
                if not self._being_kept[sha256]:
                    del self._being_kept[sha256]

    def _check_limits(self, run_id: int, size: int, missing: int) -> None:
        """Check that the rest of a file keeps the limits.

        Args:
            missing: how many bytes of the file have not arrived yet.
        """
        limits = self.limits
        if size > limits.file_bytes:
            raise FileRejected(f"a file of {size:,} bytes; this server accepts at most {limits.file_bytes:,}")
        self._check_run_space(run_id, missing)
        self._check_space(missing)

    def _check_run_space(self, run_id: int, missing: int) -> None:
        limit = self.limits.run_bytes
        arriving = self._uploads.total_bytes(run_id) + sum(
            reserved.bytes for reserved in list(self._reserved.values()) if reserved.run_id == run_id
        )
        if self._files.run_bytes(run_id) + arriving + missing > limit:
            raise FileRejected(f"the files of the run would exceed the limit of {limit:,} bytes")

    def _check_space(self, missing: int) -> None:
        most = self.limits.total_bytes
        if most is not None:
            reserved = dict(self._reserved)
            arriving = sum(reservation.bytes for reservation in reserved.values())
            left = most - self._uploads.total_bytes(without=reserved) - arriving - missing
            # Another server may have removed files.
            if self._files.total_bytes() > left and self._files.total_bytes(anew=True) > left:
                raise FileRejected(f"the files of this server would exceed the limit of {most:,} bytes")
        self.space.check(missing)

    # Files that arrive whole

    def begin(self, size: int, run_id: int | None = None) -> str:
        """A path for a file of this size, which does not exist yet. Its space is reserved until `end`.

        Args:
            run_id: the run whose file it is; None: it is one of an artifact.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        path = self._uploads.new_path()
        self._reserve(path, size, size, run_id)
        return path

    def reserve(self, path: str, size: int) -> None:
        """Reserve space for more of a file whose size was not known at first.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        reserved = self._reserved[path]
        if size > reserved.bytes:
            steps = -(-size // _RESERVED_AT_ONCE)
            try:
                self._reserve(path, size, steps * _RESERVED_AT_ONCE, reserved.run_id)
            except (FileRejected, FileNotStored):  # near a limit, only what is needed
                self._reserve(path, size, size, reserved.run_id)

    def end(self, path: str) -> None:
        """Free the reserved space, and remove the file unless it was kept."""
        self._reserved.pop(path, None)
        with suppress(FileNotFoundError):
            os.unlink(path)

    def _reserve(self, path: str, size: int, wanted: int, run_id: int | None) -> None:
        """Reserve space for a file.

        Args:
            wanted: as much as is reserved, if a file of the limit's size is not smaller.
        """
        limits = self.limits
        most = limits.artifact_file_bytes if run_id is None else limits.file_bytes
        if size > most:
            raise FileRejected(f"a file of {size:,} bytes; this server accepts at most {most:,}")
        wanted = min(wanted, most)
        with self._reserving:
            before = self._reserved.pop(path, None)
            try:
                if run_id is not None:
                    self._check_run_space(run_id, wanted)
                self._check_space(wanted)
            except (FileRejected, FileNotStored):
                if before is not None:
                    self._reserved[path] = before
                raise
            self._reserved[path] = _Reservation(wanted, run_id)

    def keep(self, path: str, sha256: str, size: int, note: Callable[[StoredFile], None]) -> None:
        """Keep a file that has arrived.

        Args:
            path: as `begin` returned it, which `end` follows; the file was synced to the disk.
            note: notes in the metadata store whose file it is.

        Raises:
            OSError: it could not be stored.
        """
        with open(path, "rb") as file:
            detected = media_type(file.read(HEAD_BYTES))
        with self._keeping(sha256):
            self._store.take(sha256, path)
            note(StoredFile(sha256, size, detected))

    # Reading

    def open_file(self, file: StoredFile) -> OpenedContent | None:
        """A file whose requester may read it; None if the content is lost."""
        try:
            return OpenedContent(self._store.open(file.sha256), file.bytes, file.media_type)
        except FileNotFoundError:
            log.error("the content of a file is lost", extra={"fields": {"sha256": file.sha256}})
            return None

    def open(self, run_id: int, sha256: str) -> OpenedContent | None:
        """A file that a run has sent; None if it has not, or if the content is lost."""
        file = self._files.of_run(run_id, sha256)
        return None if file is None else self.open_file(file)

    # Housekeeping

    def collect(self) -> int:
        """Remove what nothing needs any more; returns how many contents were removed.

        Removed are artifacts whose time is over, what no run and no artifact has any more, contents without a
        file, and abandoned uploads.
        """
        self._metadata_store.artifacts.remove_expired(self._clock())
        self._uploads.remove_before(time.time() - _STALE_S)
        removed = 0
        while True:
            with self._changing:
                unused = self._files.forget_unused(_UNUSED_PER_TURN)
                self._store.remove(set(unused) - self._being_kept.keys())
            removed += len(unused)
            if len(unused) < _UNUSED_PER_TURN:
                break
        return removed + self._collect_orphans()

    def _collect_orphans(self) -> int:
        """Remove contents that no file refers to, because the server was killed between two steps."""
        before_s = time.time() - _ORPHAN_S
        old = [content.sha256 for content in self._store.contents() if content.changed_s < before_s]
        removed = 0
        for first in range(0, len(old), _CHECKED_PER_QUERY):
            part = old[first : first + _CHECKED_PER_QUERY]
            with self._changing:
                orphans = set(part) - self._files.known(part) - self._being_kept.keys()
                self._store.remove(orphans)
            removed += len(orphans)
        return removed
