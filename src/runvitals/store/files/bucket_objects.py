"""Any object of a bucket by its address, `s3://BUCKET/KEY`: what identifies it, and its content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.files.buckets import open_objects

_PIECE_BYTES: Final = 1 << 20


class ObjectIdentity(NamedTuple):
    """What identifies an object. `tag`: its ETag, without quotes; empty if it has none."""

    tag: str
    bytes: int


class ObjectRead(NamedTuple):
    """An object that is being read."""

    identity: ObjectIdentity
    pieces: Iterator[bytes]


def object_identity(address: str) -> ObjectIdentity:
    """Return what identifies an object now.

    Raises:
        ValueError: no address of an object.
        OSError: it cannot be read, or the library is not installed.
    """
    objects, key = _open(address)
    with _failing(address):
        import obstore

        return _identity(obstore.head(objects, key))


def read_object(address: str) -> ObjectRead:
    """Begin to read an object, as `object_identity`; the pieces may raise OSError, too."""
    objects, key = _open(address)
    with _failing(address):
        import obstore

        response = obstore.get(objects, key)

    def pieces() -> Iterator[bytes]:
        with _failing(address):
            for piece in response.stream(min_chunk_size=_PIECE_BYTES):
                yield bytes(piece)

    return ObjectRead(_identity(response.meta), pieces())


def _identity(about: Any) -> ObjectIdentity:
    return ObjectIdentity((about["e_tag"] or "").removeprefix("W/").strip('"'), about["size"])


def _open(address: str) -> tuple[Any, str]:
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    if not key:
        raise ValueError(f"invalid address {address!r}; expected {scheme}://BUCKET/KEY")
    return open_objects(BucketLocation.read(f"{scheme}://{bucket}")), key


@contextmanager
def _failing(address: str) -> Iterator[None]:
    """Raise OSError for what the bucket's service or the library reports."""
    from obstore.exceptions import BaseError

    from runvitals.store.files.object_store import reason

    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise OSError(f"{address} cannot be read: {reason(error)}") from None
