"""Stores the files of a run beside its journal, each under its SHA-256."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from typing import Any

from runvitals.base.private_folders import make_private
from runvitals.journal import paths
from runvitals.model.limits import FILE_BYTES, RUN_FILES_BYTES
from runvitals.model.media_types import HEAD_BYTES, media_type
from runvitals.sdk.media.shared_contents import SharedContents

_BUFFER_BYTES = 1024 * 1024
_ZEROS = bytes(_BUFFER_BYTES)
_READ = os.O_RDONLY | paths.OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class FileTooLarge(ValueError):
    """A file is larger than `FILE_BYTES`, or the files of the run together than `RUN_FILES_BYTES`."""


class RunFiles:
    """The folder `files` of a run. Thread-safe.

    A file is complete and on the disk before it has its name, so whoever finds it may read it. The same
    content is stored once, and a large one once for all runs of the data folder.

    Args:
        folder: the run's folder.

    Example:
        >>> RunFiles("/data/runs/abc").add(b"<svg></svg>")["type"]
        'image/svg+xml'
    """

    def __init__(self, folder: str, file_bytes: int = FILE_BYTES, run_bytes: int = RUN_FILES_BYTES) -> None:
        self._folder = folder
        self._shared = SharedContents(folder)
        self._file_bytes = file_bytes
        self._run_bytes = run_bytes
        self._stored_bytes = 0
        self._lock = threading.Lock()

    def add(self, content: bytes, expected: tuple[str, ...] = ("",)) -> dict[str, Any]:
        """Store some bytes; return `sha256`, `bytes` and `type`, as in a MEDIA record.

        Args:
            expected: the beginnings of the media types that it may have.

        Raises:
            FileTooLarge: it exceeds a limit.
            ValueError: it has another media type.
            OSError: it could not be stored.
        """
        self._check_size(len(content))
        view = memoryview(content)
        pieces = (view[first : first + _BUFFER_BYTES] for first in range(0, len(view), _BUFFER_BYTES))
        return self._store(pieces, expected)

    def add_file(
        self, path: str, expected: tuple[str, ...] = ("",), with_md5: bool = False
    ) -> dict[str, Any]:
        """Store a copy of a regular file; see `add`. The last part of the path must not be a symbolic link.

        Args:
            with_md5: also compute the MD5 of the content, as base64.

        Raises:
            FileTooLarge: it exceeds a limit.
            ValueError: it has another media type than expected.
            OSError: it could not be read or stored, or is not a regular file.
        """
        fd = os.open(path, _READ)  # a FIFO must not block the training
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            self._check_size(status.st_size)
            pieces = iter(lambda: memoryview(os.read(fd, _BUFFER_BYTES)), b"")
            if not with_md5:
                return self._store(pieces, expected)
            md5 = hashlib.md5(usedforsecurity=False)
            about = self._store(_digest_pieces(pieces, md5), expected)
            return {**about, "md5": base64.b64encode(md5.digest()).decode("ascii")}
        finally:
            os.close(fd)

    def _check_size(self, size: int) -> None:
        if size > self._file_bytes:
            raise FileTooLarge(f"a file of {size:,} bytes; at most {self._file_bytes:,} are allowed")
        if self._stored_bytes + size > self._run_bytes:
            raise FileTooLarge(f"more than {self._run_bytes:,} bytes of files of one run")

    def _store(self, pieces: Iterator[memoryview], expected: tuple[str, ...]) -> dict[str, Any]:
        folder = paths.files_dir(self._folder)
        make_private(folder)
        draft = os.path.join(folder, f".{os.getpid()}-{os.urandom(8).hex()}.part")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | paths.OPEN_FLAGS, 0o600)
            try:
                about = self._copy(pieces, fd, expected)
                os.fsync(fd)
            finally:
                os.close(fd)
            path = os.path.join(folder, about["sha256"])
            if os.path.exists(path):
                os.unlink(draft)
                return about
            if self._shared.link(about["sha256"], about["bytes"], path):
                os.unlink(draft)
            else:
                os.replace(draft, path)
                self._shared.note(about["sha256"], about["bytes"], path)
            paths.sync_folder(folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
            raise
        with self._lock:
            self._stored_bytes += about["bytes"]
        return about

    def _copy(self, pieces: Iterator[memoryview], fd: int, expected: tuple[str, ...]) -> dict[str, Any]:
        """Write the pieces. Pieces of zeros stay holes, so a sparse file does not fill the disk."""
        digest, size, kind = hashlib.sha256(), 0, ""
        for piece in pieces:
            kind = kind or _check_type(piece, expected)
            digest.update(piece)
            size += len(piece)
            self._check_size(size)  # it may grow while it is copied
            if len(piece) == len(_ZEROS) and piece == _ZEROS:
                os.lseek(fd, len(piece), os.SEEK_CUR)
            else:
                _write(fd, piece)
        os.ftruncate(fd, size)
        return {"sha256": digest.hexdigest(), "bytes": size, "type": kind or _check_type(b"", expected)}


def _digest_pieces(pieces: Iterator[memoryview], digest: hashlib._Hash) -> Iterator[memoryview]:
    """Yield the pieces, which are added to a digest as they are read."""
    for piece in pieces:
        digest.update(piece)
        yield piece


def _check_type(piece: memoryview | bytes, expected: tuple[str, ...]) -> str:
    kind = media_type(bytes(piece[:HEAD_BYTES]))
    if not kind.startswith(expected):
        raise ValueError(f"a file of the type {kind}; expected {' or '.join(expected)}…")
    return kind


def _write(fd: int, piece: memoryview) -> None:
    written_bytes = 0
    while written_bytes < len(piece):
        written_bytes += os.write(fd, piece[written_bytes:])
