"""Fields of requests that hold secrets. Errors and logs name such a field, and never show its value."""

from __future__ import annotations

from typing import Final

SECRET_FIELDS: Final = frozenset(
    (
        "access_key_id",
        "access_secret",
        "account_key",
        "client_secret",
        "code",
        "device_code",
        "invitation",
        "new",
        "old",
        "passkey",
        "password",
        "sas_token",
        "secret",
        "secret_access_key",
        "signing_secret",
        "smtp_url",
        "token",
        "value",
        "webhook_url",
    )
)


def is_secret_field(name: str) -> bool:
    """Return whether the field of a request holds a secret, or is a part of one that does.

    Args:
        name: as in an error: `providers[0].client_secret`.

    Example:
        >>> is_secret_field("providers[0].client_secret"), is_secret_field("links[2].url")
        (True, False)
    """
    return any(part.partition("[")[0] in SECRET_FIELDS for part in name.split("."))
