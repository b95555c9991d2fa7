"""Contents of files in a bucket, by the library obstore."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import obstore
from obstore.exceptions import BaseError

from runvitals.model.media import is_sha256
from runvitals.store.files.interface import Method, StoredContent

_PART_BYTES: Final = 8 << 20
_MAX_PARTS: Final = 9_000
"""Of one object; S3 allows 10,000."""
_PARTS_AT_ONCE: Final = 2
_STREAM_BYTES: Final = 256 * 1024
_REMOVED_AT_ONCE: Final = 1000
"""As many as S3 removes in one request."""
_CODE: Final = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_NO_CREDENTIALS: Final = (
    "169.254.169.254",
    "metadata.google.internal",
    "missing credential",
    "credential_process",
)
_NO_ANSWER: Final = "no answer in time"
_NO_CONNECTION: Final = "no connection"
_NOBODY: Final = (_NO_ANSWER, _NO_CONNECTION)
_ATTRIBUTES: Final = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
"""Of every object: a browser that opens one at its signed address saves it, and does not run it."""


class NoAnswer(OSError):
    """A bucket's service did not answer, or could not: it may do so later."""


class ObjectFileStore:
    """A `FileStore` in a bucket: `<prefix><first two digits>/<SHA-256>`, as in `FolderFileStore`.

    Credentials appear in no message of this class.

    Args:
        objects: a store of obstore.
        name: of the bucket, for messages.
        prefix: of all keys; empty, or with a `/` at its end.
        may_sign: whether the service has signed addresses.

    Example:
        >>> files = open_store(BucketLocation.read("s3://training-files/runvitals"))
        >>> files.take(sha256, "/store/uploads/7-4e5f")
    """

    def __init__(self, objects: Any, name: str, prefix: str, may_sign: bool = True) -> None:
        self._objects = objects
        self._name = name
        self._prefix = prefix
        self._may_sign = may_sign

    def check(self) -> None:
        """Raise OSError if the bucket does not exist or cannot be listed; `NoAnswer` if nobody says so."""
        with self._failing("cannot be listed"):
            next(iter(obstore.list(self._objects, self._prefix or None, chunk_size=1)), None)

    def _key(self, sha256: str) -> str:
        if not is_sha256(sha256):
            raise ValueError(f"invalid SHA-256 {sha256[:80]!r}")
        return f"{self._prefix}{sha256[:2]}/{sha256}"

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards."""
        key, size = self._key(sha256), os.stat(path).st_size
        with self._failing(f"did not store {sha256}"):
            obstore.put(
                self._objects,
                key,
                Path(path),
                attributes=_ATTRIBUTES,
                chunk_size=max(_PART_BYTES, -(-size // _MAX_PARTS)),
                max_concurrency=_PARTS_AT_ONCE,
            )
            kept = obstore.head(self._objects, key)["size"]
        # Not by its ETag: that is no digest with several parts, or with encryption.
        if kept != size:
            raise OSError(
                errno.EIO, f"the bucket {self._name} has {kept:,} of the {size:,} bytes of {sha256}"
            )
        os.unlink(path)

    def open(self, sha256: str) -> BinaryIO:
        """Open a content at its beginning; the caller closes it."""
        key = self._key(sha256)
        with self._failing(f"did not return {sha256}"):
            size = obstore.head(self._objects, key)["size"]
        content = ObjectContent(lambda first: self._pieces(key, first), size)
        return cast(BinaryIO, io.BufferedReader(content, _STREAM_BYTES))

    def _pieces(self, key: str, first: int) -> Iterator[bytes]:
        """The content of an object from an offset on."""
        with self._failing(f"did not return {key}"):
            response = obstore.get(self._objects, key, options={"range": {"offset": first}})
            for piece in response.stream(min_chunk_size=_STREAM_BYTES):
                yield bytes(piece)

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there."""
        keys = iter([self._key(sha256) for sha256 in digests])
        while batch := list(islice(keys, _REMOVED_AT_ONCE)):
            with self._failing("did not remove contents"):
                try:
                    obstore.delete(self._objects, batch)
                except FileNotFoundError:  # one was gone: the others may still be there
                    for key in batch:
                        with suppress(FileNotFoundError):
                            obstore.delete(self._objects, key)

    def contents(self) -> Iterator[StoredContent]:
        """Iterate over all contents, in any order."""
        with self._failing("cannot be listed"):
            for page in obstore.list(self._objects, self._prefix or None):
                for entry in page:
                    sha256 = entry["path"].rpartition("/")[2]
                    if is_sha256(sha256) and entry["path"] == self._key(sha256):
                        yield StoredContent(sha256, entry["size"], entry["last_modified"].timestamp())

    def signed_address(self, sha256: str, method: Method, seconds: int) -> str | None:
        """Return an address where anybody may read or write one content for a time."""
        if not self._may_sign:
            return None
        with self._failing("cannot sign addresses"):
            return str(obstore.sign(self._objects, method, self._key(sha256), timedelta(seconds=seconds)))

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Raise OSError for what the bucket's service or the library reports."""
        try:
            yield
        except FileNotFoundError as error:
            why = reason(error)
            number = errno.ENOENT if why in ("NoSuchKey", "BlobNotFound", "status 404") else errno.EIO
            raise OSError(number, f"the bucket {self._name} {what}: {why}") from None
        except (BaseError, OSError, ValueError) as error:
            why = reason(error)
            kind = NoAnswer if why in _NOBODY or why.startswith("status 5") else OSError
            raise kind(errno.EIO, f"the bucket {self._name} {what}: {why}") from None


class ObjectContent(io.RawIOBase):
    """A content of a bucket, read from where the reader is, in one response.

    Args:
        pieces: returns the content from an offset to the end.
    """

    def __init__(self, pieces: Any, size: int) -> None:
        self._pieces = pieces
        self._size = size
        self._at = 0
        self._coming: Any = None
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position; the next read begins a request there."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        at = max(0, start + offset)
        if at != self._at:
            self._end_response()
            self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        """Read some bytes from the position on."""
        if self._at >= self._size or not len(buffer):
            return 0
        if self._coming is None:
            self._coming = self._pieces(self._at)
        if not self._rest:
            self._rest = memoryview(next(self._coming, b""))
            if not self._rest:
                raise OSError(
                    errno.EIO, f"the bucket ended a content of {self._size:,} bytes at {self._at:,}"
                )
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._at += count
        return count

    def close(self) -> None:
        """End the request that is open."""
        self._end_response()
        super().close()

    def _end_response(self) -> None:
        if self._coming is not None:
            self._coming.close()
            self._coming = None
        self._rest = memoryview(b"")


def reason(error: Exception) -> str:
    """Return why a request failed, from the code of the service: messages may contain parts of requests."""
    text = str(error)
    code = _CODE.search(text)
    status = _STATUS.search(text)
    if code is not None:
        return code.group(1)
    if any(sign in text for sign in _NO_CREDENTIALS):
        return "no credentials"
    if status is not None:
        return f"status {status.group(1)}"
    if "timed out" in text or "TimedOut" in text:
        return _NO_ANSWER
    if "error sending request" in text or "dns error" in text:
        return _NO_CONNECTION
    if "builder error" in text:
        return "the endpoint is not a valid address"
    return type(error).__name__
