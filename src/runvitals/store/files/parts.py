"""Files that arrive in parts, in any order: each part is a file of its own until all are joined.

The parts of a file have a common key in their names, so an upload goes on after the server was killed. They
are removed with unfinished uploads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from runvitals.base.private_folders import make_private
from runvitals.journal.paths import OPEN_FLAGS

_BLOCK_BYTES: Final = 1024 * 1024
_FINISHED: Final = "finished"
MAX_UPLOADS: Final = 1000
"""Of one owner. Each takes time from all requests that look for parts."""


class TooManyUploads(Exception):
    """There are too many uploads that are neither complete nor given up."""


class UnknownUpload(LookupError):
    """There is no such upload: it was never begun, or is over."""


class JoinedFile(NamedTuple):
    """A file of all parts, on the disk."""

    size: int
    sha256: str


class FileParts:
    """Parts of files in a folder. Thread-safe.

    Args:
        folder: that of unfinished uploads; created if missing.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        make_private(folder)

    def begin(self, key: str, owner: str) -> None:
        """Begin an upload.

        Args:
            key: of letters and digits; identifies the upload and what it is for.
            owner: the number of the run whose file it is, so that it counts for that; else another word.

        Raises:
            TooManyUploads: the owner has too many that are neither complete nor given up.
        """
        marker = os.path.basename(self._marker("", owner))
        names = (entry.name for entry in os.scandir(self._folder) if entry.name.startswith(marker))
        keys = {name[len(marker) :].partition("-")[0] for name in names if not name.endswith(_FINISHED)}
        if len(keys) >= MAX_UPLOADS:
            raise TooManyUploads(f"{MAX_UPLOADS:,} uploads are neither complete nor aborted: abort some")
        os.close(os.open(self._marker(key, owner), os.O_WRONLY | os.O_CREAT | OPEN_FLAGS, 0o600))

    def add(self, key: str, owner: str, number: int, path: str, md5: str) -> None:
        """Add a part, or replace one.

        Args:
            path: where the part is, on the disk; it is moved away.
            md5: of the part, in hexadecimal.

        Raises:
            UnknownUpload: there is no such upload.
        """
        marker = self._marker(key, owner)
        try:
            os.utime(marker)  # unfinished uploads are removed by age
        except FileNotFoundError:
            raise UnknownUpload("there is no such upload: it is over, or was never begun") from None
        before = self._parts(key, owner).get(number)
        os.rename(path, f"{marker}-{number}-{md5}")
        if before is not None and before != f"{marker}-{number}-{md5}":
            os.unlink(before)

    def sizes(self, key: str, owner: str, md5_by_number: Mapping[int, str]) -> int:
        """Return the size of the parts with these MD5s together.

        Raises:
            UnknownUpload: there is no such upload.
            ValueError: a part has not arrived, or another one.
        """
        if not os.path.exists(self._marker(key, owner)):
            raise UnknownUpload("there is no such upload: it is over, or was never begun")
        paths = self._parts(key, owner)
        for number, md5 in md5_by_number.items():
            path = paths.get(number)
            if path is None:
                raise ValueError(f"part {number} has not arrived")
            if path.rpartition("-")[2] != md5:
                raise ValueError(f"part {number} has the ETag {path.rpartition('-')[2]}, not {md5[:60]}")
        return sum(os.stat(paths[number]).st_size for number in md5_by_number)

    def join(self, key: str, owner: str, numbers: list[int], into: str) -> JoinedFile:
        """Write parts one after the other into a new file. They stay until `end`.

        Raises:
            OSError: it could not be written, or a part was removed meanwhile.
        """
        paths = self._parts(key, owner)
        digest, size = hashlib.sha256(), 0
        descriptor = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
        with open(descriptor, "wb", buffering=0) as joined:
            for number in numbers:
                with open(paths[number], "rb", buffering=0) as part:
                    while block := part.read(_BLOCK_BYTES):
                        digest.update(block)
                        rest = memoryview(block)
                        while rest:
                            rest = rest[joined.write(rest) :]
                        size += len(block)
            os.fsync(joined.fileno())
        return JoinedFile(size, digest.hexdigest())

    def end(self, key: str, owner: str) -> None:
        """Remove an upload with its parts; one that does not exist is no error."""
        for path in (*self._parts(key, owner).values(), self._marker(key, owner)):
            with suppress(FileNotFoundError):  # another request ends it, too
                os.unlink(path)

    def finish(self, key: str, owner: str) -> None:
        """As `end`, after the parts were joined: `is_finished` from now on, until it is removed by age."""
        with suppress(FileNotFoundError):  # another request finishes it, too
            os.rename(self._marker(key, owner), self._marker(key, owner) + _FINISHED)
        self.end(key, owner)

    def is_finished(self, key: str, owner: str) -> bool:
        """Return whether the file of a run was completed."""
        return os.path.exists(self._marker(key, owner) + _FINISHED)

    def _marker(self, key: str, owner: str) -> str:
        return os.path.join(self._folder, f"{owner}-parts{key}")

    def _parts(self, key: str, owner: str) -> dict[int, str]:
        prefix = os.path.basename(self._marker(key, owner)) + "-"
        paths = {}
        for entry in os.scandir(self._folder):
            if entry.name.startswith(prefix):
                paths[int(entry.name[len(prefix) :].partition("-")[0])] = entry.path
        return paths
