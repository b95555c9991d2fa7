"""JSON Web Tokens: signatures and times. What else a token says is checked by who asked for it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

ALGORITHMS: Final = ("RS256", "ES256", "EdDSA", "Ed25519")
"""Signatures by a key pair. Never `none`, nor `HS256`, for which a public key would be the secret."""
LEEWAY_S: Final = 60
MAX_TOKEN: Final = 16 * 1024
_MAX_KEYS: Final = 100
_OLDEST_RSA_BITS: Final = 2048
# Most providers still write `EdDSA`, which newer standards call `Ed25519`.
warnings.filterwarnings("ignore", "EdDSA is deprecated", SecurityWarning)

Claims = dict[str, Any]
FindKeys = Callable[[bool], Sequence[Key]]
"""The keys of an issuer; with True after asking it again, because one is missing."""


class InvalidToken(Exception):
    """A token that proves nothing; the text says why, for the log."""


def verified_claims(token: str, find_keys: FindKeys, now_s: float) -> Claims:
    """Return the claims of a token with a valid signature that is valid now.

    Raises:
        InvalidToken: it is not.
    """
    if len(token) > MAX_TOKEN:
        raise InvalidToken("the token is too long")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, UnicodeError):
        raise InvalidToken("not a signed token") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise InvalidToken(f"the algorithm is {algorithm!r}; expected one of {', '.join(ALGORITHMS)}")
    keys = _suitable(find_keys(False), algorithm, key_id) or _suitable(find_keys(True), algorithm, key_id)
    if not keys:
        raise InvalidToken("the issuer has no such key")
    for key in keys:
        try:
            claims = jwt.decode(token, key, algorithms=[algorithm]).claims
        except (JoseError, ValueError, TypeError):
            continue
        _check_times(claims, now_s)
        return claims
    raise InvalidToken("the signature is wrong")


def public_keys(document: object) -> list[Key]:
    """Return the keys of a JWKS document that may sign tokens; others are left out."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InvalidToken("the issuer's keys cannot be read")
    public = []
    for entry in entries[:_MAX_KEYS]:
        if not isinstance(entry, dict) or entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
            continue
        try:
            key = JWKRegistry.import_key(entry)
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # of a kind that this server does not know
        if not isinstance(key, RSAKey) or key.raw_value.key_size >= _OLDEST_RSA_BITS:
            public.append(key)
    return public


def checked_keys(text: str) -> str:
    """Return a JWKS document as it is stored: only public keys, without blanks.

    Raises:
        ValueError: it is something else, or has no key that may sign tokens.
    """
    try:
        keys = public_keys(json.loads(text))
    except (InvalidToken, ValueError, RecursionError):
        raise ValueError('expected a JWKS document: {"keys": […]}') from None
    if not keys:
        raise ValueError("none of the keys may sign tokens; expected RSA, EC or OKP keys")
    public = [key.as_dict(private=False) for key in keys]
    return json.dumps({"keys": public}, separators=(",", ":"))


def checked_audience(claims: Claims, audience: str) -> bool:
    """Return whether a token was issued for this audience."""
    audiences = claims.get("aud")
    return audience == audiences or (isinstance(audiences, list) and audience in audiences)


def number(claims: Claims, name: str) -> float | None:
    """Return a time of a token in s; None if it is missing.

    Raises:
        InvalidToken: it is no number.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidToken(f"{name} is not a number")
    return float(value)


def _suitable(keys: Sequence[Key], algorithm: str, key_id: object) -> list[Key]:
    kind = {"RS256": RSAKey, "ES256": ECKey}.get(algorithm, OKPKey)
    return [key for key in keys if isinstance(key, kind) and (key_id is None or key.kid in (None, key_id))]


def _check_times(claims: Claims, now_s: float) -> None:
    expires_s, issued_s, begins_s = (number(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None or issued_s is None:
        raise InvalidToken("exp or iat is missing")
    if not expires_s > now_s - LEEWAY_S:
        raise InvalidToken("the token has expired")
    if not issued_s <= now_s + LEEWAY_S:
        raise InvalidToken("the token was issued in the future")
    if begins_s is not None and not begins_s <= now_s + LEEWAY_S:
        raise InvalidToken("the token is not valid yet")
