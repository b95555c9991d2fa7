"""Contents of files in a folder: `<first two digits>/<SHA-256>`."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import BinaryIO

from runvitals.base.private_folders import make_private
from runvitals.journal.paths import OPEN_FLAGS, open_file, sync_folder
from runvitals.model.media import is_sha256
from runvitals.store.files.interface import Method, StoredContent

_PIECE_BYTES = 1 << 20
CONTENTS = "contents"
"""The folder of a store's files that has their contents; the others hold unfinished uploads."""


class FolderFileStore:
    r"""A `FileStore` in a folder. What `take` is given is moved, or copied from another file system.

    Example:
        >>> files = FolderFileStore("/store/files")
        >>> files.take(sha256, "/store/uploads/7-4e5f")
        >>> files.open(sha256).read(4)
        b'\x89PNG'
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        make_private(folder)

    def _path(self, sha256: str) -> str:
        if not is_sha256(sha256):
            raise ValueError(f"invalid SHA-256 {sha256[:80]!r}")
        return os.path.join(self.folder, sha256[:2], sha256)

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards."""
        target = self._path(sha256)
        parent = os.path.dirname(target)
        if not os.path.isdir(parent):
            make_private(parent)
            sync_folder(self.folder)
        try:
            os.replace(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(path, target)
            os.unlink(path)
        sync_folder(parent)

    def take_contents(self, contents: Mapping[str, memoryview]) -> None:
        """Keep contents, by their SHA-256, with one sync of each folder. All are there when this returns."""
        parents: set[str] = set()
        for sha256, content in contents.items():
            target = self._path(sha256)
            parent = os.path.dirname(target)
            if parent not in parents and not os.path.isdir(parent):
                make_private(parent)
                sync_folder(self.folder)
            parents.add(parent)
            if not os.path.exists(target):
                _write(target, content)
        for parent in parents:
            sync_folder(parent)

    def open(self, sha256: str) -> BinaryIO:
        """Open a content at its beginning; the caller closes it."""
        return os.fdopen(open_file(self._path(sha256)), "rb")

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there."""
        for sha256 in digests:
            with suppress(FileNotFoundError):
                os.unlink(self._path(sha256))

    def contents(self) -> Iterator[StoredContent]:
        """Iterate over all contents, in any order."""
        for part in sorted(os.listdir(self.folder)):
            try:
                entries = list(os.scandir(os.path.join(self.folder, part)))
            except NotADirectoryError:
                continue
            for entry in entries:
                if is_sha256(entry.name):
                    status = entry.stat(follow_symlinks=False)
                    yield StoredContent(entry.name, status.st_size, status.st_mtime)

    def signed_address(self, sha256: str, method: Method, seconds: int) -> str | None:
        """Return None: a folder has no addresses."""
        return None


def _write(target: str, content: memoryview) -> None:
    """Write a file: it is there completely or not at all."""
    unfinished = f"{target}.{secrets.token_hex(4)}"
    fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
    try:
        try:
            while content:
                content = content[os.write(fd, content) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(unfinished, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def _copy(path: str, target: str) -> None:
    """Copy a file to another file system: it is there completely or not at all."""
    unfinished = f"{target}.{secrets.token_hex(4)}"
    try:
        with open(path, "rb") as reading, open(unfinished, "xb") as writing:
            os.chmod(unfinished, 0o600)
            shutil.copyfileobj(reading, writing, _PIECE_BYTES)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(unfinished, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
