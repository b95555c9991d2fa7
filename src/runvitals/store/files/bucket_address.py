"""The address of a bucket: `s3://BUCKET/PREFIX`."""

from __future__ import annotations

import re
from typing import NamedTuple

_SCHEME = "s3://"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,700}")


class BucketAddress(NamedTuple):
    """A bucket and the beginning of the keys in it: empty, or with a `/` at its end.

    Example:
        >>> BucketAddress.read("s3://training-files/runvitals")
        BucketAddress(bucket='training-files', prefix='runvitals/')
    """

    bucket: str
    prefix: str

    @classmethod
    def read(cls, text: str) -> BucketAddress:
        """
        Raises:
            ValueError: not an address of a bucket.
        """
        bucket, _, prefix = text.removeprefix(_SCHEME).partition("/")
        prefix = prefix.strip("/")
        if not (text.startswith(_SCHEME) and _BUCKET.fullmatch(bucket) and _PREFIX.fullmatch(prefix)):
            # Without the text: some people write credentials into it.
            raise ValueError("invalid bucket; expected s3://BUCKET or s3://BUCKET/PREFIX")
        return cls(bucket, prefix and f"{prefix}/")

    def __str__(self) -> str:
        return f"{_SCHEME}{self.bucket}/{self.prefix}".rstrip("/")
