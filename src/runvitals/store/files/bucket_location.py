"""Where a bucket is: its provider, its address there, and how to get in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

Provider = Literal["s3", "gcs", "azure", "folder"]
PROVIDERS: Final[tuple[Provider, ...]] = ("s3", "gcs", "azure", "folder")
_SCHEMES: Final[dict[Provider, str]] = {"s3": "s3", "gcs": "gs", "azure": "az"}
SCHEMES: Final = tuple(_SCHEMES.values())
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()/-]{0,700}")


@dataclass(frozen=True, slots=True)
class BucketLocation:
    """A bucket and the beginning of the keys in it: empty, or with a `/` at its end.

    Args:
        bucket: its name, that of a container of Azure, or the absolute path of a folder.
        endpoint: the URL of the service; empty: that of the provider.
        kms_key: encrypts new objects of S3; empty: what the bucket itself says.
        account, tenant, client_id: of Azure.
        secret: credentials, by their names in `SECRETS`; empty: those of the environment, or the role of the
            machine.
        direct: whether clients reach it: they get signed addresses there. Otherwise files go through the
            server.
        proxy: the URL of an HTTP proxy that all requests go through; empty: that of the environment.

    Example:
        >>> BucketLocation.read("s3://training-files/runvitals").prefix
        'runvitals/'
    """

    provider: Provider
    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    kms_key: str = ""
    account: str = ""
    tenant: str = ""
    client_id: str = ""
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    direct: bool = True
    proxy: str = field(default="", repr=False)

    @classmethod
    def read(cls, text: str) -> BucketLocation:
        """Read an address: `s3://BUCKET/PREFIX`, `gs://…` of Google Cloud, or `az://…` of Azure.

        Raises:
            ValueError: not an address of a bucket.
        """
        scheme, _, rest = text.partition("://")
        bucket, _, prefix = rest.partition("/")
        provider = next((name for name, start in _SCHEMES.items() if start == scheme), None)
        if provider is None or not (_BUCKET.fullmatch(bucket) and _PREFIX.fullmatch(prefix)):
            # Without the text: some people write credentials into it.
            raise ValueError("invalid bucket; expected s3://BUCKET or s3://BUCKET/PREFIX, or gs:// or az://")
        return cls(provider, bucket, checked_prefix(prefix))

    def below(self, folder: str) -> BucketLocation:
        """Return the location of a folder in this one."""
        return replace(self, prefix=f"{self.prefix}{folder}/")

    def with_secret(self, secret: Mapping[str, str]) -> BucketLocation:
        """Return the location with credentials."""
        return replace(self, secret=secret)

    def __str__(self) -> str:
        if self.provider == "folder":
            return f"{self.bucket.rstrip('/')}/{self.prefix}".rstrip("/")
        return f"{_SCHEMES[self.provider]}://{self.bucket}/{self.prefix}".rstrip("/")


SECRETS: Final[Mapping[Provider, tuple[str, ...]]] = {
    "s3": ("access_key_id", "secret_access_key"),
    "gcs": ("service_account",),
    "azure": ("account_key", "client_secret", "sas_token"),
    "folder": (),
}
"""What credentials of a provider are called. S3 needs both, Azure one of them."""


def checked_prefix(prefix: str) -> str:
    """Return the beginning of keys as it is used: empty, or with a `/` at its end.

    Raises:
        ValueError: it has characters, or parts, that not every service takes.
    """
    parts = [part for part in prefix.split("/") if part]
    if _PREFIX.fullmatch(prefix) is None or {".", ".."} & set(parts):
        raise ValueError("invalid prefix; expected up to 700 letters, digits and !_.*'()/-, no part `..`")
    return "".join(f"{part}/" for part in parts)


def checked_bucket(provider: Provider, name: str) -> str:
    """Return the name of a bucket.

    Raises:
        ValueError: no provider has such a bucket.
    """
    if provider != "folder" and _BUCKET.fullmatch(name) is None:
        raise ValueError("invalid name of a bucket; expected 3 to 63 lower-case letters, digits, - and .")
    return name
