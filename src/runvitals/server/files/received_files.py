"""The files of runs and artifacts on a shared server.

Receives them, in pieces or whole, keeps and removes them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from runvitals.model.limits import FILE_BYTES
from runvitals.model.media_types import HEAD_BYTES, media_type
from runvitals.server.files.disk_space import DiskSpace, FileNotStored
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.library.run_library import OpenedContent
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NotFound
from runvitals.store.files.folder_store import CONTENTS, FolderFileStore
from runvitals.store.files.interface import FileStore, Method
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
SMALL_FILES_AT_ONCE = 4
"""Small files of one request that a bucket is given, or asked for, at the same time."""

_Content: TypeAlias = tuple[int, str]
"""Place and SHA-256."""

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

    `run_id`: the run whose file it is; None: it is one of an artifact. `most`: bytes that the file may have.
    """

    bytes: int
    run_id: int | None
    most: int


class TeamStores(Protocol):
    """The file stores of teams that have a bucket of their own."""

    def of(self, team_id: int) -> FileStore:
        """Return the store of a team. What it raises is an `HttpRejection` (503) while it cannot be used."""

    def check(self) -> None:
        """Look whether those that failed work again, and tell administrators about those that do not."""


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
        team_stores: of teams with a bucket of their own; None: none has one.
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
        self.team_stores: TeamStores | None = None
        self.limits = limits or FileLimits()
        self.space = DiskSpace(self._folder, lambda: self.limits.free_bytes)
        # Nothing is removed between a content and its row, and nothing kept while it is removed.
        self._changing = threading.Condition()
        self._being_kept: Counter[_Content] = Counter()
        self._being_removed: set[_Content] = set()
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

    def check_upload(self, run_id: int, size: int, offset: int) -> None:
        """Check the rest of a file before some of it arrives: a client may name another size than before.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        self._check_limits(run_id, size, size - offset)

    def append(self, run_id: int, sha256: str, size: int, offset: int, piece: Sequence[bytes]) -> UploadState:
        """Add a piece to a file, after `check_upload`. What was added is kept if the server is killed.

        Args:
            size: of the whole file.
            piece: in the chunks in which it arrived.

        Raises:
            FileNotStored: such as on a full disk.
            WrongOffset, ContentDiffers, ValueError: see `Uploads.append`.
        """

        def note(file: StoredFile) -> None:
            self._files.add(run_id, file, self._clock())

        def keep(path: str) -> None:
            self.keep(path, sha256, size, note, self.place_of_run(run_id))

        try:
            with self.space.writing():
                complete = self._uploads.append(run_id, sha256, size, offset, piece, keep)
        except WrongOffset:
            # Two processes of a run may send the same file at the same time.
            if self._files.of_run(run_id, sha256) is None:
                raise
            return UploadState(sha256, 0, True)
        return UploadState(sha256, offset + sum(map(len, piece)), complete)

    def add_small(self, run_id: int, contents: Mapping[str, memoryview]) -> None:
        """Keep small files of a run, by their SHA-256, which were checked: all of them, in one transaction.

        Raises:
            FileRejected: they exceed a limit.
            FileNotStored: such as on a full disk.
        """
        if not contents:
            return
        self._check_limits(run_id, 0, sum(map(len, contents.values())))
        place = self.place_of_run(run_id)
        files = [
            StoredFile(sha256, len(content), media_type(bytes(content[:HEAD_BYTES])), place)
            for sha256, content in contents.items()
        ]
        with self.space.writing(), self._keeping(*((place, sha256) for sha256 in contents)):
            store = self._store_of(place)
            if isinstance(store, FolderFileStore):
                store.take_contents(contents)
            else:
                self._take_each(store, contents)
            self._files.add_many(run_id, files, self._clock())

    def _take_each(self, store: FileStore, contents: Mapping[str, memoryview]) -> None:
        """Put contents into a bucket, some at the same time: each waits for an answer or two."""

        def take(item: tuple[str, memoryview]) -> None:
            path = self._uploads.new_path()
            try:
                with open(path, "xb") as file:
                    file.write(item[1])
                store.take(item[0], path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(path)

        with ThreadPoolExecutor(SMALL_FILES_AT_ONCE) as threads:
            list(threads.map(take, contents.items()))

    @contextmanager
    def _keeping(self, *contents: _Content) -> Iterator[None]:
        """While contents are stored, which takes minutes in a bucket, housekeeping does not remove them."""
        with self._changing:
            self._changing.wait_for(lambda: self._being_removed.isdisjoint(contents))
            self._being_kept.update(contents)
        try:
            yield
        finally:
            with self._changing:
                self._being_kept -= Counter(contents)

    @contextmanager
    def _removing(self, place: int, unused: Callable[[], Iterable[str]]) -> Iterator[set[str]]:
        """While contents are removed, which may take minutes in a bucket, they are not stored anew.

        Args:
            unused: returns their SHA-256; those that are being stored are left out.
        """
        with self._changing:
            contents = {(place, sha256) for sha256 in unused()} - self._being_kept.keys()
            self._being_removed |= contents
        try:
            yield {sha256 for _, sha256 in contents}
        finally:
            with self._changing:
                self._being_removed -= contents
                self._changing.notify_all()

    # Places

    def place_of_run(self, run_id: int) -> int:
        """Return where the files of a run are kept: see `StoredFile`."""
        return self._files.place_of_run(run_id)

    def place_of_project(self, project_id: int) -> int:
        """Return where the files of a project are kept: see `StoredFile`."""
        return self._files.place_of_project(project_id)

    def place_of_report(self, report_id: int) -> int:
        """Return where the files of a report are kept: see `StoredFile`."""
        return self._files.place_of_report(report_id)

    @property
    def in_folder(self) -> bool:
        """Whether contents are in a folder of this machine, but for those of teams with a bucket."""
        return isinstance(self._store, FolderFileStore)

    def _store_of(self, place: int) -> FileStore:
        if not place:
            return self._store
        if self.team_stores is None:
            raise FileNotStored("the files of this team are in a bucket, which this server does not use")
        return self.team_stores.of(place)

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
            bytes_left = most - self._uploads.total_bytes(without=reserved) - arriving - missing
            # Another server may have removed files.
            if self._files.total_bytes() > bytes_left and self._files.total_bytes(anew=True) > bytes_left:
                raise FileRejected(f"the files of this server would exceed the limit of {most:,} bytes")
        self.space.check(missing)

    # Files that arrive whole

    def begin(self, size: int, run_id: int | None = None, *, is_artifact: bool = False) -> str:
        """A path for a file of this size, which does not exist yet. Its space is reserved until `end`.

        Args:
            run_id: the run whose file it is; None: it is one of an artifact.
            is_artifact: it may be as large as one of an artifact, though it is a run's.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        path = self._uploads.new_path()
        limits = self.limits
        most = limits.artifact_file_bytes if run_id is None or is_artifact else limits.file_bytes
        self._reserve(path, size, _Reservation(size, run_id, most))
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
                self._reserve(path, size, reserved._replace(bytes=steps * _RESERVED_AT_ONCE))
            except (FileRejected, FileNotStored):  # near a limit, only what is needed
                self._reserve(path, size, reserved._replace(bytes=size))

    def end(self, path: str) -> None:
        """Free the reserved space, and remove the file unless it was kept."""
        self._reserved.pop(path, None)
        with suppress(FileNotFoundError):
            os.unlink(path)

    def _reserve(self, path: str, size: int, reservation: _Reservation) -> None:
        """Reserve space for a file.

        Args:
            reservation: as much as is reserved, if a file of the limit's size is not smaller.
        """
        if size > reservation.most:
            raise FileRejected(f"a file of {size:,} bytes; this server accepts at most {reservation.most:,}")
        reservation = reservation._replace(bytes=min(reservation.bytes, reservation.most))
        with self._reserving:
            before = self._reserved.pop(path, None)
            try:
                if reservation.run_id is not None:
                    self._check_run_space(reservation.run_id, reservation.bytes)
                self._check_space(reservation.bytes)
            except (FileRejected, FileNotStored):
                if before is not None:
                    self._reserved[path] = before
                raise
            self._reserved[path] = reservation

    def keep(self, path: str, sha256: str, size: int, note: Callable[[StoredFile], None], place: int) -> None:
        """Keep a file that has arrived: when this returns, it is on the disk, or in the bucket of its team.

        Args:
            path: as `begin` returned it, which `end` follows; the file was synced to the disk.
            note: notes in the metadata store whose file it is.
            place: where it is kept.

        Raises:
            OSError, FileNotStored: it could not be stored.
        """
        with open(path, "rb") as file:
            detected = media_type(file.read(HEAD_BYTES))
        with self._keeping((place, sha256)):
            self._store_of(place).take(sha256, path)
            note(StoredFile(sha256, size, detected, place))

    # Reading

    def open_file(self, file: StoredFile) -> OpenedContent | None:
        """A file whose requester may read it; None if the content is lost."""
        try:
            content = self._store_of(file.place).open(file.sha256)
            return OpenedContent(content, file.bytes, file.media_type)
        except FileNotFoundError:
            log.error("the content of a file is lost", extra={"fields": {"sha256": file.sha256}})
            return None

    def open(self, run_id: int, sha256: str) -> OpenedContent | None:
        """A file that a run has sent; None if it has not, or if the content is lost."""
        file = self._files.of_run(run_id, sha256)
        return None if file is None else self.open_file(file)

    def signed_address(self, file: StoredFile, method: Method, seconds: int) -> str | None:
        """Return an address in the bucket of a team at which anybody may read or write a file; None: none."""
        if not file.place:
            return None
        return self._store_of(file.place).signed_address(file.sha256, method, seconds)

    # Housekeeping

    def collect(self) -> int:
        """Remove what nothing needs any more; returns how many contents were removed.

        Removed are artifacts whose time is over, what no run and no artifact has any more, contents without a
        file, and abandoned uploads.
        """
        self._metadata_store.artifacts.remove_expired(self._clock())
        self._uploads.remove_before(time.time() - _STALE_S)
        if self.team_stores is not None:
            self.team_stores.check()
        removed = 0
        for place in self._files.places():
            try:
                removed += self._collect_at(place)
            except (OSError, HttpRejection) as error:
                if not place:
                    raise
                # The others are not kept waiting; what was forgotten is an orphan the next time.
                log.warning("files of a team were not removed", extra={"fields": {"reason": str(error)}})
        return removed

    def _collect_at(self, place: int) -> int:
        store, removed = self._store_of(place), 0
        while True:
            unused: list[str] = []

            def forget(unused: list[str] = unused) -> list[str]:
                unused += self._files.forget_unused(_UNUSED_PER_TURN, place)
                return unused

            with self._removing(place, forget) as contents:
                store.remove(contents)
            removed += len(unused)
            if len(unused) < _UNUSED_PER_TURN:
                return removed + self._collect_orphans(place, store)

    def _collect_orphans(self, place: int, store: FileStore) -> int:
        """Remove contents that no file refers to, because the server was killed between two steps."""
        before_s = time.time() - _ORPHAN_S
        old = [content.sha256 for content in store.contents() if content.changed_s < before_s]
        removed = 0
        for first in range(0, len(old), _CHECKED_PER_QUERY):
            part = old[first : first + _CHECKED_PER_QUERY]

            def unknown(part: list[str] = part) -> set[str]:
                return set(part) - self._files.known(part, place)

            with self._removing(place, unknown) as orphans:
                store.remove(orphans)
            removed += len(orphans)
        return removed
