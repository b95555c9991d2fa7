"""Opens the bucket of an address, with the library for its scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runvitals.store.files.bucket_address import BucketAddress
from runvitals.store.files.interface import FileStore

if TYPE_CHECKING:
    from runvitals.store.files.bucket_store import BucketFileStore
    from runvitals.store.files.fsspec_store import FsspecFileStore

_EXTRAS = {"s3": "s3", "gs": "gcs", "az": "azure"}


def open_bucket(address: BucketAddress) -> FileStore:
    """Return the contents in an existing bucket.

    Raises:
        OSError: it cannot be used, or the library for it is not installed.
    """
    try:
        store = _open(address)
    except ImportError as error:  # fsspec raises it with a text that names the library
        needed = error.name or str(error)
        extra = _EXTRAS[address.scheme]
        raise OSError(f"the bucket {address} needs {needed}: pip install 'runvitals[{extra}]'") from None
    store.check()
    return store


def _open(address: BucketAddress) -> BucketFileStore | FsspecFileStore:
    if address.scheme == "s3":
        from runvitals.store.files.bucket_store import BucketFileStore

        return BucketFileStore(address)
    from runvitals.store.files.fsspec_store import FsspecFileStore

    return FsspecFileStore(address)
