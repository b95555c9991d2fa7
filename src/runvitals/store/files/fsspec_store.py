"""Contents of files in a bucket of Google Cloud Storage or Azure, by fsspec."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, cast

import fsspec

from runvitals.model.media import is_sha256
from runvitals.store.files.bucket_address import BucketAddress
from runvitals.store.files.interface import StoredContent

_CHANGED = ("updated", "last_modified", "LastModified", "created", "mtime")
"""Names of the time of a change in fsspec's file systems: a number, a time, or text."""


class FsspecFileStore:
    """A `FileStore` in a bucket: `<prefix><first two digits>/<SHA-256>`, as in `FolderFileStore`.

    Credentials are those of the environment, as the libraries gcsfs and adlfs read them. They appear in no
    message of this class.

    Args:
        address: of an existing bucket.
        filesystem: that of fsspec; None: as the scheme of the address says.

    Raises:
        ImportError: the library for this scheme is not installed; the text says which.
    """

    def __init__(self, address: BucketAddress, filesystem: Any = None) -> None:
        self._address = address
        self._root = f"{address.bucket}/{address.prefix}"
        if filesystem is None:
            # Listings are not cached: other servers add contents.
            filesystem = fsspec.filesystem(address.scheme, use_listings_cache=False)
        self._filesystem = filesystem

    def check(self) -> None:
        """Raise OSError, before the server starts, if the bucket does not exist or cannot be listed."""
        with self._failing("cannot be listed"):
            self._filesystem.ls(self._address.bucket)

    def _key(self, sha256: str) -> str:
        if not is_sha256(sha256):
            raise ValueError(f"invalid SHA-256 {sha256[:80]!r}")
        return f"{self._root}{sha256[:2]}/{sha256}"

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards."""
        key = self._key(sha256)
        with self._failing(f"did not store {sha256}"):
            self._filesystem.put_file(path, key)
        os.unlink(path)

    def open(self, sha256: str) -> BinaryIO:
        """Open a content at its beginning; the caller closes it."""
        key = self._key(sha256)
        with self._failing(f"did not return {sha256}"):
            return cast(BinaryIO, self._filesystem.open(key, "rb"))

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there."""
        for key in map(self._key, digests):
            with self._failing("did not remove contents"), suppress(FileNotFoundError):
                self._filesystem.rm_file(key)

    def contents(self) -> Iterator[StoredContent]:
        """Iterate over all contents, in any order."""
        with self._failing("cannot be listed"):
            entries = self._filesystem.find(self._root, detail=True)
        for path, about in entries.items():
            sha256 = path.rpartition("/")[2]
            if is_sha256(sha256) and path.lstrip("/") == self._key(sha256):
                yield StoredContent(sha256, int(about["size"]), _changed_s(about))

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Raise OSError for what the bucket's service or the library reports."""
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, f"the bucket {self._address} {what}: not found") from None
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            # Messages may contain parts of requests.
            raise OSError(errno.EIO, f"the bucket {self._address} {what}: {type(error).__name__}") from None


def _changed_s(about: dict[str, Any]) -> float:
    """Return the time when a content was put there, seconds since 1970."""
    changed = next(about[name] for name in _CHANGED if about.get(name) is not None)
    if isinstance(changed, str):
        changed = datetime.fromisoformat(changed.replace("Z", "+00:00"))
    return float(changed.timestamp() if isinstance(changed, datetime) else changed)
