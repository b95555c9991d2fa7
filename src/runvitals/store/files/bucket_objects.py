"""Objects of a bucket by their address, `s3://BUCKET/KEY`: what identifies them, and their content.

`?versionId=ID` after the key names one version of an object, as W&B's clients write it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_objects

if TYPE_CHECKING:
    from obstore import GetOptions

_PIECE_BYTES: Final = 1 << 20
_LISTED: Final = 1000
VERSION: Final = "?versionId="
"""Between the key of an object and the id of one of its versions."""
_NO_VERSION: Final = "null"
"""What S3 calls the version of an object that was written before its bucket kept versions."""
_CREDENTIALS: Final = ("AWS_", "GOOGLE_", "AZURE_")
"""What the variables of the environment begin with that the library reads."""


class ObjectIdentity(NamedTuple):
    """What identifies an object.

    Attributes:
        tag: its ETag, without quotes; empty if it has none.
        version: its id, if the bucket keeps the versions of an object.
    """

    tag: str
    bytes: int
    version: str | None = None


class ListedObject(NamedTuple):
    """An object below a prefix. `name`: its key without the prefix."""

    name: str
    address: str
    identity: ObjectIdentity


class ObjectRead(NamedTuple):
    """An object that is being read."""

    identity: ObjectIdentity
    pieces: Iterator[bytes]


def object_identity(address: str) -> ObjectIdentity:
    """Return what identifies an object now.

    Raises:
        ValueError: no address of an object.
        FileNotFoundError: there is none.
        OSError: it cannot be read, or the library is not installed.
    """
    objects, key, options = _open(address)
    with _failing(address):
        import obstore

        return _identity(obstore.get(objects, key, options={**options, "head": True}).meta)


def objects_below(address: str) -> Iterator[ListedObject]:
    """Yield the objects below a prefix, `s3://BUCKET/FOLDER` or `s3://BUCKET`, as they are now.

    Left out are empty objects that stand for a folder, whose objects follow.

    Raises:
        ValueError: no address of a bucket.
        OSError: they cannot be listed, or the library is not installed.
    """
    scheme, _, rest = address.partition("://")
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.rstrip("/")
    objects = _opened(f"{scheme}://{bucket}")
    with _failing(address):
        import obstore

        listed = chain.from_iterable(obstore.list(objects, prefix or None, chunk_size=_LISTED))
        for about, following in pairwise(chain(listed, [None])):
            key = about["path"]  # without the `/` at the end of what stands for a folder
            is_folder = not about["size"] and following and following["path"].startswith(f"{key}/")
            if key != prefix and not is_folder:
                name = key.removeprefix(f"{prefix}/") if prefix else key
                yield ListedObject(name, f"{scheme}://{bucket}/{key}", _identity(about))


def read_object(address: str) -> ObjectRead:
    """Begin to read an object, as `object_identity`; the pieces may raise OSError, too."""
    objects, key, options = _open(address)
    with _failing(address):
        import obstore

        response = obstore.get(objects, key, options=options)

    def pieces() -> Iterator[bytes]:
        with _failing(address):
            for piece in response.stream(min_chunk_size=_PIECE_BYTES):
                yield bytes(piece)

    return ObjectRead(_identity(response.meta), pieces())


def _identity(about: Any) -> ObjectIdentity:
    tag = (about["e_tag"] or "").removeprefix("W/").strip('"')
    version = about["version"]
    return ObjectIdentity(tag, about["size"], None if version == _NO_VERSION else version)


def _open(address: str) -> tuple[Any, str, GetOptions]:
    """Return the bucket of an object, its key, and options that ask for the version in its address."""
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    key, _, version = key.partition(VERSION)
    if not key:
        raise ValueError(f"invalid address {address!r}; expected {scheme}://BUCKET/KEY")
    return _opened(f"{scheme}://{bucket}"), key, {"version": unquote(version)} if version else {}


def _opened(bucket: str) -> Any:
    """Return a bucket, whose connections are kept for the next object."""
    credentials = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_CREDENTIALS)))
    return _opened_with(bucket, credentials)


@lru_cache(maxsize=4)
def _opened_with(bucket: str, credentials: tuple[tuple[str, str], ...]) -> Any:
    return open_objects(BucketLocation.read(bucket))


@contextmanager
def _failing(address: str) -> Iterator[None]:
    """Raise OSError for what the bucket's service or the library reports."""
    from obstore.exceptions import BaseError

    from runvitals.store.files.object_store import reason

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{address} cannot be read: {reason(error)}") from None
    except BaseError as error:
        raise OSError(f"{address} cannot be read: {reason(error)}") from None
