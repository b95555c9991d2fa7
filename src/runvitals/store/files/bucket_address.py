"""The address of a bucket: `s3://BUCKET/PREFIX`, `gs://…` of Google Cloud, `az://…` of Azure."""

from __future__ import annotations

import re
from typing import NamedTuple

SCHEMES = ("s3", "gs", "az")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,700}")


class BucketAddress(NamedTuple):
    """A bucket and the beginning of the keys in it: empty, or with a `/` at its end.

    Example:
        >>> BucketAddress.read("s3://training-files/runvitals")
        BucketAddress(bucket='training-files', prefix='runvitals/', scheme='s3')
    """

    bucket: str
    prefix: str
    scheme: str = "s3"

    @classmethod
    def read(cls, text: str) -> BucketAddress:
        """Read the address of a bucket.

        Raises:
            ValueError: not an address of a bucket.
        """
        scheme, _, rest = text.partition("://")
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.strip("/")
        if not (scheme in SCHEMES and _BUCKET.fullmatch(bucket) and _PREFIX.fullmatch(prefix)):
            # Without the text: some people write credentials into it.
            raise ValueError("invalid bucket; expected s3://BUCKET or s3://BUCKET/PREFIX, or gs:// or az://")
        return cls(bucket, prefix and f"{prefix}/", scheme)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")
