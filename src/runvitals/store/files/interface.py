"""Stores of the contents of files: a folder, or a bucket."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import BinaryIO, Literal, NamedTuple, Protocol

Method = Literal["GET", "PUT"]


class StoredContent(NamedTuple):
    """A content that is kept. `bytes`: its size. `changed_s`: when it was put there, seconds since 1970."""

    sha256: str
    bytes: int
    changed_s: float


class FileStore(Protocol):
    """Contents of files by their SHA-256. Thread-safe.

    A content is there completely or not at all, also after a power failure.
    """

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards.

        Args:
            path: its content has this SHA-256, and was synced to the disk.

        Raises:
            OSError: it could not be stored.
        """

    def open(self, sha256: str) -> BinaryIO:
        """Return a content, open at its beginning; the caller closes it.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it could not be read.
        """

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there.

        Raises:
            OSError: one of them could not be removed.
        """

    def contents(self) -> Iterator[StoredContent]:
        """Return all contents, in any order.

        Raises:
            OSError: they could not be listed.
        """

    def signed_address(self, sha256: str, method: Method, seconds: int) -> str | None:
        """Return an address where anybody may read or write one content for a time; None: there are none.

        Decide before it whether who asks may do so.

        Raises:
            OSError: it could not be signed.
        """
