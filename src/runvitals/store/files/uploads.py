"""Files that arrive in pieces: each is collected in a file of its own until it is complete."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, suppress

from runvitals.base.private_folders import make_private
from runvitals.journal.paths import OPEN_FLAGS
from runvitals.model.media import is_sha256

_BLOCK_BYTES = 1024 * 1024


class WrongOffset(Exception):
    """A piece does not follow what has arrived. `offset`: how much has."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the next piece begins at byte {offset}")
        self.offset = offset


class ContentDiffers(Exception):
    """The content received does not have the announced SHA-256; all of it was dropped."""


class Uploads:
    """Unfinished uploads in a folder. Thread-safe; one process at a time.

    An upload belongs to a run: nobody can complete the upload of another run, and so get a file of which they
    know no more than its SHA-256.

    Args:
        folder: created if missing.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        make_private(folder)
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._guard = threading.Lock()

    def offset(self, run_id: int, sha256: str) -> int:
        """Return the bytes of a file that have arrived."""
        try:
            return os.stat(self.path(run_id, sha256)).st_size
        except FileNotFoundError:
            return 0

    def append(
        self,
        run_id: int,
        sha256: str,
        size: int,
        offset: int,
        piece: Sequence[bytes],
        keep: Callable[[str], None],
    ) -> bool:
        """Add a piece; return whether the file is complete, and so was kept.

        An empty piece completes a file of which everything has arrived, and that the server was killed before
        it kept.

        Args:
            size: of the whole file.
            piece: in the chunks in which it arrived.
            keep: is called with the path of the file once it is complete, correct and on the disk, while
                nobody else adds to it; moves it away.

        Raises:
            WrongOffset: the piece does not follow what has arrived.
            ContentDiffers: the file is complete and has another SHA-256.
            ValueError: the piece exceeds the file.
            OSError: it could not be written; what has arrived before is kept.
        """
        length = sum(map(len, piece))
        if offset + length > size:
            raise ValueError(f"a piece of {length} bytes at byte {offset} of a file of {size} bytes")
        path = self.path(run_id, sha256)
        with self._exclusive(path):
            fd = _open(path, offset)
            try:
                stored_bytes = os.fstat(fd).st_size
                if offset != stored_bytes:
                    raise WrongOffset(stored_bytes)
                _write_at(fd, offset, piece)
                if offset + length < size:
                    return False
                os.fsync(fd)
                if _digest(fd) != sha256:
                    os.unlink(path)
                    raise ContentDiffers(f"the content of the file does not have the SHA-256 {sha256}")
            finally:
                os.close(fd)
            keep(path)
            return True

    def new_path(self) -> str:
        """Return the path of a file that nobody else uses, for what arrives whole."""
        return os.path.join(self._folder, f"whole-{secrets.token_hex(16)}")

    def total_bytes(self, run_id: int | None = None, without: Container[str] = ()) -> int:
        """Return the size of all unfinished uploads, or of those of a run.

        Args:
            without: paths that are not counted.
        """
        total = 0
        for entry in os.scandir(self._folder):
            if entry.path in without:
                continue
            if run_id is None or entry.name.startswith(f"{run_id}-"):
                with suppress(FileNotFoundError):  # completed meanwhile
                    total += entry.stat().st_size
        return total

    def remove_before(self, before_s: float) -> int:
        """Remove uploads without a new piece since a time, seconds since 1970; returns how many."""
        removed = 0
        for entry in os.scandir(self._folder):
            with self._exclusive(entry.path):
                try:
                    if os.stat(entry.path).st_mtime < before_s:
                        os.unlink(entry.path)
                        removed += 1
                except FileNotFoundError:
                    continue  # completed meanwhile
        return removed

    def path(self, run_id: int, sha256: str) -> str:
        """Return where a file is collected."""
        if not is_sha256(sha256):
            raise ValueError(f"invalid SHA-256 {sha256[:80]!r}")
        return os.path.join(self._folder, f"{int(run_id)}-{sha256}")

    @contextmanager
    def _exclusive(self, path: str) -> Iterator[None]:
        """One thread at a time for each upload."""
        with self._guard:
            lock, users = self._locks.get(path) or (threading.Lock(), 0)
            self._locks[path] = lock, users + 1
        try:
            with lock:
                yield
        finally:
            with self._guard:
                lock, users = self._locks.pop(path)
                if users > 1:
                    self._locks[path] = lock, users - 1


def _open(path: str, offset: int) -> int:
    """Return the file of an upload, created for its first piece; raise WrongOffset for a later one."""
    try:
        return os.open(path, os.O_RDWR | (0 if offset else os.O_CREAT) | OPEN_FLAGS, 0o600)
    except FileNotFoundError:
        raise WrongOffset(0) from None


def _write_at(fd: int, offset: int, piece: Sequence[bytes]) -> None:
    """Write a piece completely, or leave the file as it was."""
    os.lseek(fd, offset, os.SEEK_SET)
    try:
        for chunk in piece:
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
    except OSError:
        os.ftruncate(fd, offset)
        raise


def _digest(fd: int) -> str:
    digest = hashlib.sha256()
    os.lseek(fd, 0, os.SEEK_SET)
    while block := os.read(fd, _BLOCK_BYTES):
        digest.update(block)
    return digest.hexdigest()
