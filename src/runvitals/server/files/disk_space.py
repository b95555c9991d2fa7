"""The space on the disk that keeps files: a full disk is a fault that passes, unlike the limits of a server.

Clients keep what is answered with 503, and send it again; 507 would be final for many of them.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from runvitals.server.http.request_errors import HttpRejection
from runvitals.store.errors import StoreError

RETRY_AFTER_S: Final = 30
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FULL_BYTES: Final = 1 << 20
"""A disk with less than this is full: not even a piece of a file can be stored."""
_TRIAL: Final = "trial"


class FileNotStored(HttpRejection):
    """503: a file could not be stored now."""

    def __init__(self, text: str) -> None:
        super().__init__(503, text, retry_after_s=RETRY_AFTER_S)


class DiskSpace:
    """A check that files can be written to a folder. Thread-safe.

    Args:
        free_bytes: how much must stay free on its disk.
    """

    def __init__(self, folder: str, free_bytes: Callable[[], int]) -> None:
        self._folder = folder
        self._free_bytes = free_bytes
        self._failure: str | None = None
        self._not_stored: str | None = None

    def check(self, missing: int) -> None:
        """Raise FileNotStored unless there is space for so many bytes more."""
        if missing > self._free() - self._free_bytes():
            raise FileNotStored("the disk of this server has no space for the file")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While a file is written: a disk that cannot take it is reported until it can.

        Raises:
            FileNotStored: instead of an OSError.
        """
        try:
            yield
        except StoreError:
            raise
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno in NO_SPACE:
                self._failure = reason
            self._not_stored = reason
            raise FileNotStored(f"the file could not be stored: {reason}") from error
        self._not_stored = None

    def problem(self) -> str | None:
        """Return why no file can be written at present; None if one can."""
        if self._failure is not None:
            self._failure = self._try_to_write()
        if self._failure is not None:
            return f"files cannot be written to {self._folder}: {self._failure}"
        try:
            free = self._free()
        except OSError as error:
            return f"files cannot be written: {error}"
        return f"the disk of {self._folder} is full: {free:,} bytes are free" if free < _FULL_BYTES else None

    def warning(self) -> str | None:
        """Return why files are refused, or not stored, although the disk is not full; None if they are."""
        free, reserve, not_stored = self._free(), self._free_bytes(), self._not_stored
        if free >= reserve:  # until another is stored: clients send them again
            return None if not_stored is None else f"the last file could not be stored: {not_stored}"
        return (
            f"files are refused: {free:,} bytes are free on the disk of {self._folder}, less than {reserve:,}"
        )

    def _free(self) -> int:
        return shutil.disk_usage(self._folder).free

    def _try_to_write(self) -> str | None:
        """Return why as much as a piece of a file cannot be written; None if it can."""
        path = os.path.join(self._folder, _TRIAL)
        try:
            with open(path, "wb") as file:
                file.write(bytes(_FULL_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            return error.strerror or str(error)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(path)
        return None
