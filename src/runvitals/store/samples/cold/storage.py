"""Cold storage as a store uses it: puts objects there, and fetches those that are read into a cache."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from runvitals.base import deadline
from runvitals.base.backoff import Backoff
from runvitals.base.private_folders import make_private
from runvitals.journal.paths import OPEN_FLAGS
from runvitals.store.files.bucket_location import SCHEMES, BucketLocation
from runvitals.store.files.interface import FileStore
from runvitals.store.samples.cold.reading import ColdLocation, ColdLost, ColdUnavailable

CACHE_FOLDER = "cold-cache"
_SUBFOLDER = "samples"
"""In the bucket: what it has besides, such as files of runs, is not among the objects."""
_NEW = "new-"
_PIECE_BYTES = 256 * 1024
_FIRST_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0
_MAX_REQUESTED = 1000

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ColdSettings:
    """The address of cold storage, and its limits.

    Args:
        address: `s3://BUCKET/PREFIX`, `gs://…`, `az://…`, or the absolute path of an existing folder.
        after_ms: chunks that ended longer ago are moved there; None: only read what was moved before.
        cache_bytes: size of the objects that are kept on disk after they were read.
        object_bytes: size of the objects that are made.
    """

    address: str
    after_ms: int | None = None
    cache_bytes: int = 2 * GIB
    object_bytes: int = 8 << 20


def is_bucket(address: str) -> bool:
    """Return whether this is the address of a bucket, not a folder."""
    return address.partition("://")[0] in SCHEMES


def open_cold(address: str) -> FileStore:
    """Open the folder or bucket that keeps the objects.

    Raises:
        OSError: it cannot be used at present.
        ValueError: invalid address.
    """
    if is_bucket(address):
        from runvitals.store.files.buckets import open_bucket

        return open_bucket(BucketLocation.read(address).below(_SUBFOLDER))
    from runvitals.store.files.folder_store import FolderFileStore

    if not os.path.isdir(address):  # it may be on a disk that is not mounted
        raise OSError(f"there is no folder {address}")
    return FolderFileStore(os.path.join(address, _SUBFOLDER))


class _LostObject(OSError):
    """One object is missing or damaged."""


class ColdStorage:
    """Thread-safe. Nothing is opened before it is needed, so a store opens while the bucket is away.

    After a failure it fails at once for a while, so that requests do not wait for a bucket that is away.

    Args:
        settings: where the objects are.
        folder: of the store.
        open_objects: opens an address.
        clock_s: a monotonic clock.

    Attributes:
        wake: called when something is to be fetched, or has failed.
        problem: what failed last; None if it has worked since.
    """

    def __init__(
        self,
        settings: ColdSettings,
        folder: str,
        open_objects: Callable[[str], FileStore] = open_cold,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._cache = os.path.join(folder, CACHE_FOLDER)
        self._open_objects = open_objects
        self._clock_s = clock_s
        self._objects: FileStore | None = None
        self._backoff = Backoff(_FIRST_PAUSE_S, _MAX_PAUSE_S)
        self._lock = threading.Lock()
        self._fetching: dict[str, tuple[threading.Lock, int]] = {}
        self._requested: dict[str, None] = {}
        self._lost: dict[str, tuple[Backoff, str]] = {}
        self.wake: Callable[[], None] = lambda: None
        self.problem: str | None = None

    # Reading

    def read(self, location: ColdLocation) -> bytes:
        """See `ColdReader`. Waits for the bucket."""
        for _ in range(3):  # another thread may remove it from the cache
            content = self._read_cached(location)
            if content is not None:
                return content
            self.fetch(location.sha256)
        raise ColdUnavailable(f"{self.settings.address}: the cache of {self._cache} is too small")

    def forget(self, location: ColdLocation) -> None:
        """Fetch the object again when it is read next."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(location.sha256))

    def read_cached(self, location: ColdLocation) -> bytes:
        """As `read`, but does not wait: what is not in the cache is fetched later, by `fetch_requested`."""
        content = self._read_cached(location)
        if content is None:
            with self._lock:
                if len(self._requested) < _MAX_REQUESTED:
                    self._requested[location.sha256] = None
            self.wake()
            raise ColdUnavailable(
                f"samples are still being fetched from {self.settings.address}", location.sha256
            )
        return content

    def fetch_requested(self) -> None:
        """Fetch what `read_cached` did not find, or raise ColdUnavailable."""
        with self._lock:
            digests, self._requested = list(self._requested), {}
        for sha256 in digests:
            self.fetch(sha256)

    @contextmanager
    def open(self, sha256: str) -> Iterator[BinaryIO]:
        """Return a whole object; raise ColdLost if it is missing or damaged, or ColdUnavailable."""
        self.fetch(sha256)
        with open(self._path(sha256), "rb") as file:
            yield file

    def _read_cached(self, location: ColdLocation) -> bytes | None:
        path = self._path(location.sha256)
        try:
            with open(path, "rb", buffering=0) as file:
                file.seek(location.offset)
                content = file.read(location.size)
            os.utime(path)  # the objects that were not read for longest are removed first
        except FileNotFoundError:
            return None
        return content

    def fetch(self, sha256: str) -> None:
        """Fetch an object into the cache, unless it is there.

        Raises:
            ColdLost: it is missing or damaged.
            ColdUnavailable: it cannot be read at present.
        """
        path = self._path(sha256)
        with self._one_at_a_time(sha256):
            if os.path.exists(path):
                return
            new = self.new_path()
            try:
                with (
                    self._using_bucket(f"could not read samples from {self.settings.address}"),
                    self._noting_lost(sha256),
                ):
                    self._download(sha256, new)
                    os.replace(new, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(new)
        self._shrink_cache(sha256)

    @contextmanager
    def _noting_lost(self, sha256: str) -> Iterator[None]:
        """Do not read a lost object again for each of its chunks, but after a while."""
        pause, reason = self._lost.get(sha256) or (Backoff(_FIRST_PAUSE_S, _MAX_PAUSE_S), "")
        if not pause.due(self._clock_s()):
            raise _LostObject(reason)
        try:
            yield
        except _LostObject as error:
            pause.note_failure(self._clock_s())
            self._lost[sha256] = pause, str(error)
            raise
        self._lost.pop(sha256, None)

    def _download(self, sha256: str, into: str) -> None:
        digest = hashlib.sha256()
        descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
        with open(descriptor, "wb") as writing, self._reading(sha256) as reading:
            while piece := reading.read(_PIECE_BYTES):
                deadline.check()
                digest.update(piece)
                writing.write(piece)
        if digest.hexdigest() != sha256:
            raise _LostObject(f"the object {sha256} does not have the content that was put there")

    def _reading(self, sha256: str) -> BinaryIO:
        objects = self._file_store()
        try:
            return objects.open(sha256)
        except FileNotFoundError:
            raise _LostObject(f"the object {sha256} is missing") from None

    def _shrink_cache(self, kept: str) -> None:
        """Remove the objects that were not read for longest."""
        entries = []
        for entry in os.scandir(self._cache):
            if not entry.name.startswith(_NEW):
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    entries.append((status.st_mtime, entry.name, status.st_size))
        size = sum(entry[2] for entry in entries)
        for _, name, entry_size in sorted(entries):
            if size <= self.settings.cache_bytes:
                return
            if name != kept:
                # On Windows, one that is being read cannot be removed.
                with suppress(FileNotFoundError, PermissionError):
                    os.unlink(os.path.join(self._cache, name))
                    size -= entry_size

    # Writing

    def new_path(self) -> str:
        """Return the path of a new file on the same disk as the cache."""
        make_private(self._cache)
        return os.path.join(self._cache, f"{_NEW}{secrets.token_hex(8)}")

    def put(self, sha256: str, path: str) -> None:
        """Put an object there; its file no longer exists afterwards.

        Raises:
            ColdUnavailable: it cannot be stored at present.
        """
        with self._using_bucket(f"could not move samples to {self.settings.address}"):
            objects = self._file_store()
            if not is_bucket(self.settings.address):
                path = self._moved_to_its_disk(path)
            objects.take(sha256, path)

    def _moved_to_its_disk(self, path: str) -> str:
        """Copy a file into the folder of cold storage, from which it can be renamed."""
        into = os.path.join(self.settings.address, _SUBFOLDER, os.path.basename(path))
        descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
        try:
            with open(descriptor, "wb") as writing, open(path, "rb") as reading:
                while piece := reading.read(_PIECE_BYTES):
                    writing.write(piece)
                writing.flush()
                os.fsync(writing.fileno())
        except BaseException:
            os.unlink(into)
            raise
        os.unlink(path)
        return into

    def remove(self, digests: Collection[str]) -> None:
        """Remove objects, or raise ColdUnavailable."""
        with self._using_bucket(f"could not remove samples from {self.settings.address}"):
            self._file_store().remove(digests)

    def check(self) -> None:
        """Raise ColdUnavailable if it still cannot be used, after a failure."""
        with self._using_bucket(f"could not use {self.settings.address}"):
            self._objects = self._open_objects(self.settings.address)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all objects that are there, by their SHA-256, or raise ColdUnavailable."""
        with self._using_bucket(f"could not list {self.settings.address}"):
            return {content.sha256: content.bytes for content in self._file_store().contents()}

    def remove_leftovers(self) -> None:
        """Remove unfinished files of a process that was killed."""
        for folder in (self._cache, os.path.join(self.settings.address, _SUBFOLDER)):
            if os.path.isdir(folder):
                for name in os.listdir(folder):
                    if name.startswith(_NEW):
                        os.unlink(os.path.join(folder, name))

    # Both

    def _path(self, sha256: str) -> str:
        return os.path.join(self._cache, sha256)

    def _file_store(self) -> FileStore:
        if self._objects is None:
            self._objects = self._open_objects(self.settings.address)
        return self._objects

    @contextmanager
    def _using_bucket(self, what: str) -> Iterator[None]:
        """Convert failures, and fail at once for a while after one."""
        with self._lock:
            if not self._backoff.due(self._clock_s()):
                raise ColdUnavailable(self.problem or what)
        try:
            yield
        except _LostObject as error:  # the others may be there
            self.problem = f"{what}: {error}"
            raise ColdLost(self.problem) from error
        except (OSError, ValueError) as error:
            self.problem = f"{what}: {error}"
            with self._lock:
                self._backoff.note_failure(self._clock_s())
            self.wake()
            raise ColdUnavailable(self.problem) from error
        with self._lock:
            self._backoff.note_success()
        self.problem = None

    @contextmanager
    def _one_at_a_time(self, sha256: str) -> Iterator[None]:
        """One thread fetches an object; others that need it wait, until their deadline."""
        with self._lock:
            lock, users = self._fetching.get(sha256) or (threading.Lock(), 0)
            self._fetching[sha256] = lock, users + 1
        left_s = deadline.left_s()
        is_ours = lock.acquire(timeout=-1 if left_s is None else left_s)
        try:
            deadline.check()
            yield
        finally:
            if is_ours:
                lock.release()
            with self._lock:
                lock, users = self._fetching.pop(sha256)
                if users > 1:
                    self._fetching[sha256] = lock, users - 1


class CachedOnly:
    """A `ColdReader` for a thread that must not wait for the bucket."""

    def __init__(self, storage: ColdStorage) -> None:
        self._storage = storage

    def read(self, location: ColdLocation) -> bytes:
        """Return the bytes at a place, if its object is on this machine."""
        return self._storage.read_cached(location)

    def forget(self, location: ColdLocation) -> None:
        """Fetch the object again when it is read next."""
        self._storage.forget(location)
