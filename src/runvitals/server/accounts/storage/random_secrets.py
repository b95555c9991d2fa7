"""Random secrets, of which only a digest is stored."""

from __future__ import annotations

import hashlib
import secrets


def new_secret() -> tuple[str, bytes]:
    """A secret of 256 random bits, and its digest."""
    secret = secrets.token_urlsafe(32)
    return secret, digest_of(secret)


def digest_of(secret: str) -> bytes:
    """SHA-256 of a secret. So many random bits need neither a salt nor a slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
