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
from typing import NamedTuple, Protocol, TypeAlias

from runvitals.model.media_types import HEAD_BYTES, media_type
from runvitals.server.files.disk_space import DiskSpace, FileNotStored
from runvitals.server.files.reserved_space import FileLimits, FileRejected, Reservation, ReservedSpace
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
_CHECKED_PER_QUERY = 1000
SMALL_FILES_AT_ONCE = 4
"""Small files of one request that a bucket is given, or asked for, at the same time."""

_Content: TypeAlias = tuple[int, str]
"""Place and SHA-256."""

log = logging.getLogger("runvitals.server")


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
        self._reserved = ReservedSpace(lambda: self.limits, self._uploads, self._files, self.space)

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

    @contextmanager
    def uploading(self, run_id: int, sha256: str, size: int) -> Iterator[None]:
        """Reserve space for a file while a request sends some of it: its client may have named another size.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        most = self.limits.file_bytes
        if size > most:
            raise FileRejected(f"a file of {size:,} bytes; this server accepts at most {most:,}")
        path, arrived = self._uploads.path(run_id, sha256), self._uploads.offset(run_id, sha256)
        with self._reserved.reserved(path, size, run_id, arrived):
            yield

    def append(self, run_id: int, sha256: str, size: int, offset: int, piece: Sequence[bytes]) -> UploadState:
        """Add a piece to a file, while `uploading`. What was added is kept if the server is killed.

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
        place = self.place_of_run(run_id)
        files = [
            StoredFile(sha256, len(content), media_type(bytes(content[:HEAD_BYTES])), place)
            for sha256, content in contents.items()
        ]
        size, keeping = sum(map(len, contents.values())), ((place, sha256) for sha256 in contents)
        reserved = self._reserved.reserved(self._uploads.new_path(), size, run_id)
        with reserved, self.space.writing(), self._keeping(*keeping):
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
        self._reserved.reserve(path, size, Reservation(size, run_id, most))
        return path

    def reserve(self, path: str, size: int) -> None:
        """Reserve space for more of a file whose size was not known at first.

        Raises:
            FileRejected: it exceeds a limit.
            FileNotStored: the disk has no space for it.
        """
        self._reserved.reserve_more(path, size)

    def end(self, path: str) -> None:
        """Free the reserved space, and remove the file unless it was kept."""
        self._reserved.release(path)
        with suppress(FileNotFoundError):
            os.unlink(path)

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
