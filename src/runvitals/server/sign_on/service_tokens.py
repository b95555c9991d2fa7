"""Tokens that programs show instead of a key: those of GitHub Actions, GitLab, Kubernetes.

Such a token is signed by a service that an administrator registered, and says which job shows it. So nobody
has to store a key there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import threading
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

from runvitals.server.metadata_store import MetadataStore
from runvitals.server.sign_on.discovery import Discovery, ProviderFailed
from runvitals.server.sign_on.storage.jwt_issuers import JwtIssuerRow
from runvitals.server.sign_on.tokens import (
    LEEWAY_S,
    MAX_TOKEN,
    FindKeys,
    InvalidToken,
    checked_audience,
    number,
    public_keys,
    verified_claims,
)

CACHED_MS: Final = 5000
"""How long a token is taken as valid without another look: as long as a key."""
MAX_LIFE_S: Final = 24 * 3600
_MAX_CACHED: Final = 10_000

log = logging.getLogger("runvitals.accounts")


class ServiceTokens:
    """Finds the service account of a token. Thread-safe; blocks while it asks an issuer for its keys.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, discovery: Discovery, clock: Callable[[], int]) -> None:
        self._issuers = metadata_store.accounts.jwt_issuers
        self._discovery = discovery
        self._clock = clock
        self._lock = threading.Lock()
        self._cache: LRUCache[bytes, tuple[int, int]] = LRUCache(_MAX_CACHED)

    def account(self, token: str) -> int | None:
        """Return the id of the service account that shows this token; None if the token is not valid.

        A disabled issuer or account is noticed within five seconds, as with keys.
        """
        if not looks_like_token(token):
            return None
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        now_ms = self._clock()
        with self._lock:
            cached = self._cache.get(digest)
        if cached is not None and now_ms < cached[1]:
            return cached[0]
        try:
            account_id, expires_ms = self._check(token, now_ms)
        except (InvalidToken, ProviderFailed) as error:
            log.info("a token of another service was refused: %s", error)
            return None
        with self._lock:
            self._cache[digest] = account_id, min(now_ms + CACHED_MS, expires_ms)
        return account_id

    def _check(self, token: str, now_ms: int) -> tuple[int, int]:
        """Return the account, and when the token expires."""
        url = _issuer_of(token)
        issuer = self._issuers.by_url(url)
        if issuer is None:
            raise InvalidToken("its issuer is not registered")
        now_s = now_ms / 1000
        claims = verified_claims(token, self._keys(issuer), now_s)
        if claims.get("iss") != issuer.url or not checked_audience(claims, issuer.audience):
            raise InvalidToken("it is of another issuer, or for another audience")
        expires_s = number(claims, "exp")
        if expires_s is None or expires_s > now_s + MAX_LIFE_S + LEEWAY_S:
            raise InvalidToken("it is valid for more than a day")
        subject = claims.get("sub")
        account_id = self._issuers.service_account(issuer.id, subject) if isinstance(subject, str) else None
        if account_id is None:
            raise InvalidToken("no service account has its subject")
        return account_id, int((expires_s + LEEWAY_S) * 1000)

    def _keys(self, issuer: JwtIssuerRow) -> FindKeys:
        if issuer.pasted_keys is None:
            return lambda refresh: self._discovery.keys(issuer.url, refresh)
        pasted = public_keys(json.loads(issuer.pasted_keys))
        return lambda refresh: pasted


def looks_like_token(secret: str) -> bool:
    """Return whether what was shown as a key may be such a token: cheap, before `ServiceTokens.account`.

    Example:
        >>> looks_like_token("eyJhbGciOiJSUzI1NiJ9.e30.c2ln"), looks_like_token("rvt-abc")
        (True, False)
    """
    return secret.startswith("eyJ") and secret.count(".") == 2 and len(secret) <= MAX_TOKEN


def _issuer_of(token: str) -> str:
    """Return the issuer that a token names, before anything is proven: unknown ones are never asked."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        issuer = claims["iss"]
    except (IndexError, ValueError, binascii.Error, KeyError, TypeError, RecursionError):
        raise InvalidToken("it names no issuer") from None
    if not isinstance(issuer, str):
        raise InvalidToken("it names no issuer")
    return issuer
