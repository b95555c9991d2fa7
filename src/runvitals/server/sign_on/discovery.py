"""Addresses and keys that issuers publish, cached for an hour."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from joserfc.jwk import Key

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed, FetchLimits
from runvitals.server.outbound.policy import Blocked
from runvitals.server.sign_on.tokens import public_keys

CACHED_S: Final = 3600.0
FAILED_S: Final = 5.0
"""How long an issuer that failed is not asked again: who waited for the same question has its answer."""
REFRESH_S: Final = 60.0
"""How often at most an issuer is asked for a key that it did not have."""
_LIMITS: Final = FetchLimits(total_s=10.0, body_bytes=1024 * 1024)
_MAX_ISSUERS: Final = 100


class ProviderFailed(Exception):
    """The provider cannot be reached or answers wrongly; the text says how, for the log."""


@dataclass(frozen=True, slots=True)
class IssuerMetadata:
    """The discovery document of an issuer."""

    issuer: str
    keys_url: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    userinfo_endpoint: str | None = None
    token_auth_methods: tuple[str, ...] = ("client_secret_basic",)
    names_issuer: bool = False
    """Whether it repeats its name when it sends the browser back (RFC 9207)."""


@dataclass(slots=True)
class _CachedIssuer:
    metadata: IssuerMetadata
    keys: list[Key]
    asked_s: float


@dataclass(slots=True)
class _Issuer:
    """What is known of an issuer. The lock is held while it is asked: one that is slow delays no other."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    cached: _CachedIssuer | None = None
    failure: ProviderFailed | None = None
    failed_s: float = 0.0


class Discovery:
    """Asks issuers. Thread-safe; blocks while it asks.

    Args:
        monotonic: seconds that only grow.
    """

    def __init__(self, fetcher: Fetcher, monotonic: Callable[[], float]) -> None:
        self._fetcher = fetcher
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._issuers: dict[str, _Issuer] = {}

    def metadata(self, issuer: str) -> IssuerMetadata:
        """Return an issuer's metadata; raise ProviderFailed without them, or under another name."""
        return self._issuer(issuer, CACHED_S).metadata

    def keys(self, issuer: str, refresh: bool = False) -> Sequence[Key]:
        """Return the keys of an issuer; `refresh`: ask again, at most once a minute. Raises as `metadata`."""
        return self._issuer(issuer, REFRESH_S if refresh else CACHED_S).keys

    def _issuer(self, issuer: str, fresh_s: float) -> _CachedIssuer:
        with self._lock:
            if len(self._issuers) >= _MAX_ISSUERS and issuer not in self._issuers:
                self._issuers.clear()
            known = self._issuers.setdefault(issuer, _Issuer())
        with known.lock:
            now_s = self._monotonic()
            if known.cached is not None and now_s - known.cached.asked_s < fresh_s:
                return known.cached
            if known.failure is not None and now_s - known.failed_s < FAILED_S:
                raise ProviderFailed(str(known.failure))
            try:
                known.cached = self._ask(issuer)
            except ProviderFailed as error:
                known.failure, known.failed_s = error, self._monotonic()
                raise
            return known.cached

    def _ask(self, issuer: str) -> _CachedIssuer:
        asked_s = self._monotonic()
        document = self.json(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise ProviderFailed(f"the issuer {issuer} calls itself {str(document.get('issuer'))[:200]!r}")
        methods = document.get("token_endpoint_auth_methods_supported")
        userinfo = document.get("userinfo_endpoint")
        metadata = IssuerMetadata(
            issuer,
            str(document.get("jwks_uri", "")),
            str(document.get("authorization_endpoint", "")),
            str(document.get("token_endpoint", "")),
            userinfo if isinstance(userinfo, str) else None,
            tuple(map(str, methods)) if isinstance(methods, list) else ("client_secret_basic",),
            document.get("authorization_response_iss_parameter_supported") is True,
        )
        return _CachedIssuer(metadata, public_keys(self.json(metadata.keys_url)), asked_s)

    def json(self, url: str, token: str | None = None) -> dict[str, Any]:
        """Return a JSON object at a URL. `token`: shown to the server. Raises as `metadata`."""
        value = self.json_value(url, token)
        if not isinstance(value, dict):
            raise ProviderFailed(f"the answer of {url[:200]} is not a JSON object")
        return value

    def json_value(self, url: str, token: str | None = None) -> object:
        """As `json`, of any type."""
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            response = self._fetcher.get(url, _LIMITS, headers)
            value: object = json.loads(response.body) if response.status == 200 else None
        except (Blocked, FetchFailed, ValueError, RecursionError) as error:
            raise ProviderFailed(f"{url[:200]}: {error}") from error
        if value is None:
            raise ProviderFailed(f"{url[:200]} answered with status {response.status}")
        return value
