"""Random secrets: of links and sessions, of which only a digest is stored, and API keys.

An API key is `rvt-`, 8 characters that identify it, 26 secret ones and 6 of a checksum. Secret scanners
recognise the prefix, and a mistyped or truncated key is rejected without a look-up. Prefix, dash and 40
letters and digits are also what wandb's clients accept as a key.
"""

from __future__ import annotations

import hashlib
import secrets
import string
import zlib

PREFIX = "rvt-"
PUBLIC_CHARACTERS = 8
_SECRET_CHARACTERS = 26  # 154 bits
_CHECK_CHARACTERS = 6
_LETTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_LENGTH = len(PREFIX) + PUBLIC_CHARACTERS + _SECRET_CHARACTERS + _CHECK_CHARACTERS


def new_secret() -> tuple[str, bytes]:
    """Return a secret of 256 random bits, and its digest."""
    secret = secrets.token_urlsafe(32)
    return secret, digest_of(secret)


def digest_of(secret: str) -> bytes:
    """SHA-256 of a secret. So many random bits need neither a salt nor a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key() -> tuple[str, str]:
    """Return a new key and its public id."""
    body = "".join(secrets.choice(_LETTERS) for _ in range(PUBLIC_CHARACTERS + _SECRET_CHARACTERS))
    return PREFIX + body + _checksum(body), body[:PUBLIC_CHARACTERS]


def public_id(key: str) -> str | None:
    """Return the public id of a key; None if the text is no valid key.

    Example:
        >>> key, shown = new_key()
        >>> public_id(key) == shown, public_id(key[:-1])
        (True, None)
    """
    if len(key) != _LENGTH or not key.startswith(PREFIX):
        return None
    body, checksum = key[len(PREFIX) : -_CHECK_CHARACTERS], key[-_CHECK_CHARACTERS:]
    return body[:PUBLIC_CHARACTERS] if body.isascii() and checksum == _checksum(body) else None


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(_CHECK_CHARACTERS):
        number, digit = divmod(number, len(_LETTERS))
        digits = _LETTERS[digit] + digits
    return digits
