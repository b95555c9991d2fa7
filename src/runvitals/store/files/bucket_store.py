"""Contents of files in a bucket of S3, or of a service with the same protocol, such as MinIO or Ceph."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, cast

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from runvitals.model.media import is_sha256
from runvitals.store.files.bucket_address import BucketAddress
from runvitals.store.files.interface import StoredContent

_CONNECT_S = 10
_READ_S = 60
_ATTEMPTS = 4
_CONNECTIONS = 32
_REMOVED_AT_ONCE = 1000
"""As many as S3 removes in one request."""
_BUFFER_BYTES = 256 * 1024
_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
_FAILURES = (BotoCoreError, ClientError, Boto3Error)


class BucketFileStore:
    """A `FileStore` in a bucket: `<prefix><first two digits>/<SHA-256>`, as in `FolderFileStore`.

    Credentials, region and endpoint are those of the environment, as all programs of AWS read them:
    `AWS_ACCESS_KEY_ID`, `AWS_PROFILE`, a role of the machine, `AWS_ENDPOINT_URL_S3` …. They appear in no
    message of this class.

    Args:
        address: of an existing bucket.

    Example:
        >>> files = BucketFileStore(BucketAddress.read("s3://training-files/runvitals"))
        >>> files.take(sha256, "/store/uploads/7-4e5f")
    """

    def __init__(self, address: BucketAddress) -> None:
        self._address = address
        config = Config(
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            max_pool_connections=_CONNECTIONS,
            user_agent_extra="runvitals",
        )
        with self._failing("cannot be used"):
            self._client: Any = boto3.Session().client("s3", config=config)
        # One thread a file: several files are sent at the same time anyway.
        self._transfer = TransferConfig(use_threads=False)

    def check(self) -> None:
        """Raise OSError, before the server starts, if the bucket does not exist or cannot be listed."""
        with self._failing("cannot be listed"):
            self._client.list_objects_v2(Bucket=self._address.bucket, Prefix=self._address.prefix, MaxKeys=1)

    def _key(self, sha256: str) -> str:
        if not is_sha256(sha256):
            raise ValueError(f"invalid SHA-256 {sha256[:80]!r}")
        return f"{self._address.prefix}{sha256[:2]}/{sha256}"

    def take(self, sha256: str, path: str) -> None:
        """Keep the content of a file on this machine, which no longer exists afterwards."""
        with self._failing(f"did not store {sha256}"):
            self._client.upload_file(path, self._address.bucket, self._key(sha256), Config=self._transfer)
        os.unlink(path)

    def open(self, sha256: str) -> BinaryIO:
        """Open a content at its beginning; the caller closes it."""
        key = self._key(sha256)
        with self._failing(f"did not return {sha256}"):
            size = self._client.head_object(Bucket=self._address.bucket, Key=key)["ContentLength"]
        content = BucketContent(self._read_from, key, size)
        return cast(BinaryIO, io.BufferedReader(content, _BUFFER_BYTES))

    def _read_from(self, key: str, first: int) -> Any:
        with self._failing(f"did not return {key}"):
            response = self._client.get_object(Bucket=self._address.bucket, Key=key, Range=f"bytes={first}-")
            return response["Body"]

    def remove(self, digests: Collection[str]) -> None:
        """Remove those of some contents that are there."""
        keys = iter([{"Key": self._key(sha256)} for sha256 in digests])
        while some := list(islice(keys, _REMOVED_AT_ONCE)):
            with self._failing("did not remove contents"):
                response = self._client.delete_objects(
                    Bucket=self._address.bucket, Delete={"Objects": some, "Quiet": True}
                )
            for failure in response.get("Errors", ()):
                raise OSError(
                    errno.EIO, f"{self._address}: did not remove {failure.get('Key')}: {failure.get('Code')}"
                )

    def contents(self) -> Iterator[StoredContent]:
        """Iterate over all contents, in any order."""
        pages = self._client.get_paginator("list_objects_v2")
        with self._failing("cannot be listed"):
            for page in pages.paginate(Bucket=self._address.bucket, Prefix=self._address.prefix):
                for entry in page.get("Contents", ()):
                    sha256 = entry["Key"].rpartition("/")[2]
                    if is_sha256(sha256) and entry["Key"] == self._key(sha256):
                        yield StoredContent(sha256, entry["Size"], entry["LastModified"].timestamp())

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Raise OSError for what the bucket's service or the library reports."""
        try:
            yield
        except _FAILURES as error:
            code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
            number = errno.ENOENT if code in _MISSING else errno.EIO
            why = code or type(error).__name__  # messages may contain parts of requests
            raise OSError(number, f"the bucket {self._address} {what}: {why}") from None


class BucketContent(io.RawIOBase):
    """A content of a bucket, read from where the reader is, in one response.

    Args:
        read_from: returns the body from an offset to the end.
    """

    def __init__(self, read_from: Any, key: str, size: int) -> None:
        self._read_from = read_from
        self._key = key
        self._size = size
        self._at = 0
        self._body: Any = None

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
            self._close_body()
            self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        """Read some bytes from the position on."""
        if self._at >= self._size or not len(buffer):
            return 0
        if self._body is None:
            self._body = self._read_from(self._key, self._at)
        try:
            data = self._body.read(len(buffer))
        except BotoCoreError as error:
            raise OSError(
                errno.EIO, f"the connection to the bucket was lost: {type(error).__name__}"
            ) from None
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """End the request that is open."""
        self._close_body()
        super().close()

    def _close_body(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None
