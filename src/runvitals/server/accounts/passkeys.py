"""Passkeys (WebAuthn): challenges, and whether an answer of a browser proves that the user has a passkey.

A challenge is signed by the server's key and names what it is for, so that strangers who ask for challenges
fill no table. An answer counts once: the store remembers the challenges that were answered until they expire.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runvitals.model.durations import MINUTE_MS
from runvitals.store.errors import NoLongerValid

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.passkeys import MadePasskey, PasskeyRow, PasskeyUse
    from runvitals.server.audit.storage.audit import Actor

CHALLENGE_MS: Final = 5 * MINUTE_MS
MAX_RESPONSE: Final = 16 * 1024
"""The longest answer in characters. Without an attestation, browsers send less than two thousand."""
_ALGORITHMS: Final = (-7, -8, -257)
"""ES256, EdDSA and RS256, as COSE numbers them."""
_TRANSPORTS: Final = ("ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb")
_DOMAIN: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")
_PORTS: Final = {"https": "443", "http": "80"}
_RANDOM_BYTES, _TIME_BYTES, _MAC_BYTES = 16, 8, 16
_HANDLE_BYTES: Final = 32

PasskeyResponse = Mapping[str, Any]
"""`PublicKeyCredential.toJSON()` of a browser."""


class PasskeyRefused(Exception):
    """An answer is not accepted; the text says why. `user_id`: whose passkey it names, if that is known."""

    def __init__(self, text: str, user_id: int | None = None) -> None:
        super().__init__(text)
        self.user_id = user_id


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The server as authenticators know it: its domain, and the origin of its pages."""

    id: str
    origin: str
    name: str = "runvitals"


def relying_party(url: str, name: str = "") -> RelyingParty | None:
    """Return the relying party of a server at this address; None where browsers allow no passkeys.

    They allow none over plain HTTP, unless it is this machine, and none at an IP address.

    Example:
        >>> relying_party("https://runs.lab.example:8443/page")
        RelyingParty(id='runs.lab.example', origin='https://runs.lab.example:8443', name='runvitals')
        >>> relying_party("http://runs.lab.example") is None
        True
    """
    scheme, _, host_and_path = url.lower().partition("://")
    host, _, port = host_and_path.partition("/")[0].partition(":")
    secure = scheme == "https" or (scheme == "http" and host == "localhost")
    is_domain = _DOMAIN.fullmatch(host) is not None and not host.rpartition(".")[2].isdigit()
    if not secure or not is_domain or not (port == "" or port.isdigit()):
        return None
    origin = f"{scheme}://{host}" + ("" if port in ("", _PORTS[scheme]) else f":{port}")
    return RelyingParty(host, origin, name or "runvitals")


class Passkeys:
    """Makes challenges and checks answers. Thread-safe.

    Args:
        key: signs challenges; the same in all processes of a server.
        now_ms: the time in ms UTC.
    """

    def __init__(self, accounts: AccountStore, key: bytes, now_ms: Callable[[], int]) -> None:
        self._accounts = accounts
        self._key = key
        self._now_ms = now_ms

    def registration(
        self, party: RelyingParty, user_id: int, user_name: str, display_name: str, session_id: int
    ) -> dict[str, Any]:
        """Return what a browser needs to make a passkey: `PublicKeyCredentialCreationOptionsJSON`."""
        handle = self._accounts.passkeys.handle(user_id, secrets.token_bytes(_HANDLE_BYTES))
        assert handle is not None
        return {
            "rp": {"id": party.id, "name": party.name},
            "user": {"id": _text_of(handle), "name": user_name, "displayName": display_name},
            "challenge": self._challenge(_registering(session_id)),
            "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in _ALGORITHMS],
            "timeout": CHALLENGE_MS,
            "excludeCredentials": _descriptors(self._accounts.passkeys.of_user(user_id)),
            "authenticatorSelection": {
                "residentKey": "required",
                "requireResidentKey": True,
                "userVerification": "required",
            },
            "attestation": "none",
        }

    def register(
        self,
        party: RelyingParty,
        user_id: int,
        session_id: int,
        credential: PasskeyResponse,
        name: str,
        by: Actor,
    ) -> PasskeyRow:
        """Add the passkey that a browser has made.

        Raises:
            PasskeyRefused: it was not made for this.
            ValueError: the name is invalid, or the user has as many passkeys as are allowed.
        """
        challenge, expires_ms = self._checked_challenge(credential, _registering(session_id))
        new = _new_passkey(party, credential, challenge)
        use = _use(challenge, expires_ms, new.sign_count)
        try:
            return self._accounts.passkeys.add(user_id, new, name, use, by, self._now_ms())
        except NoLongerValid as error:
            raise PasskeyRefused(str(error)) from None

    def signing_in(self, party: RelyingParty) -> dict[str, Any]:
        """Return what a browser needs to sign in with any passkey that it has for this server."""
        return self._request(party, _SIGNING_IN, (), "required")

    def sign_in(self, party: RelyingParty, credential: PasskeyResponse) -> int:
        """Return the id of the user whose passkey has answered `signing_in`.

        Raises:
            PasskeyRefused: the answer is not accepted.
        """
        row = self._passkey(credential)
        handle = _bytes_of(credential, "response", "userHandle")
        if not hmac.compare_digest(handle, self._accounts.passkeys.handle(row.user_id) or b""):
            raise PasskeyRefused("this passkey is another user's")
        self._check(party, credential, row, _SIGNING_IN, verified=True)
        return row.user_id

    def asking(self, party: RelyingParty, user_id: int, purpose: str, *, verified: bool) -> dict[str, Any]:
        """Return what a browser needs to prove that a user has one of their passkeys.

        Args:
            purpose: an answer to this challenge is accepted for this purpose only.
            verified: whether the authenticator must recognise the user, by PIN or finger.
        """
        rows = self._accounts.passkeys.of_user(user_id)
        return self._request(party, f"{purpose}:{user_id}", rows, "required" if verified else "preferred")

    def confirm(
        self, party: RelyingParty, user_id: int, purpose: str, credential: PasskeyResponse, *, verified: bool
    ) -> None:
        """Check the answer to `asking`, or raise PasskeyRefused."""
        row = self._passkey(credential)
        if row.user_id != user_id:
            raise PasskeyRefused("this passkey is another user's")
        self._check(party, credential, row, f"{purpose}:{user_id}", verified=verified)

    def _request(
        self, party: RelyingParty, purpose: str, rows: Sequence[PasskeyRow], verification: str
    ) -> dict[str, Any]:
        return {
            "challenge": self._challenge(purpose),
            "timeout": CHALLENGE_MS,
            "rpId": party.id,
            "allowCredentials": _descriptors(rows),
            "userVerification": verification,
        }

    def _passkey(self, credential: PasskeyResponse) -> PasskeyRow:
        row = self._accounts.passkeys.by_credential(_bytes_of(credential, "rawId"))
        if row is None:
            raise PasskeyRefused("this passkey is not known here: it was removed, or never added")
        return row

    def _check(
        self,
        party: RelyingParty,
        credential: PasskeyResponse,
        row: PasskeyRow,
        purpose: str,
        *,
        verified: bool,
    ) -> None:
        from webauthn import verify_authentication_response  # not when a server starts: it takes 0.1 s
        from webauthn.helpers.exceptions import WebAuthnException

        challenge, expires_ms = self._checked_challenge(credential, purpose)
        try:
            proof = verify_authentication_response(
                credential=dict(credential),
                expected_challenge=challenge,
                expected_rp_id=party.id,
                expected_origin=party.origin,
                credential_public_key=row.public_key,
                credential_current_sign_count=0,  # the store compares it, in the transaction that writes it
                require_user_verification=verified,
            )
        except (WebAuthnException, *_INVALID) as error:
            raise PasskeyRefused(f"this passkey was not accepted: {error}", row.user_id) from error
        use = _use(challenge, expires_ms, proof.new_sign_count)
        try:
            self._accounts.passkeys.use(row.id, use, self._now_ms())
        except ValueError as error:
            raise PasskeyRefused(str(error), row.user_id) from None

    def _challenge(self, purpose: str) -> str:
        expires_ms = self._now_ms() + CHALLENGE_MS
        head = secrets.token_bytes(_RANDOM_BYTES) + expires_ms.to_bytes(_TIME_BYTES, "big")
        return _text_of(head + self._mac(head, purpose))

    def _mac(self, head: bytes, purpose: str) -> bytes:
        return hmac.digest(self._key, head + purpose.encode(), "sha256")[:_MAC_BYTES]

    def _checked_challenge(self, credential: PasskeyResponse, purpose: str) -> tuple[bytes, int]:
        """Return the challenge that was answered, and when it expires.

        Raises:
            PasskeyRefused: this server did not make it for this purpose, or too long ago.
        """
        if len(json.dumps(credential, default=str)) > MAX_RESPONSE:
            raise PasskeyRefused("the answer is too long")
        client_data = _client_data(credential)
        if client_data.get("crossOrigin") is True:
            raise PasskeyRefused("the answer comes from a page that is embedded in another site")
        challenge = _decode(client_data.get("challenge"))
        head, mac = challenge[: _RANDOM_BYTES + _TIME_BYTES], challenge[_RANDOM_BYTES + _TIME_BYTES :]
        if not hmac.compare_digest(mac, self._mac(head, purpose)):
            raise PasskeyRefused("this challenge was made for something else")
        expires_ms = int.from_bytes(head[_RANDOM_BYTES:], "big")
        if expires_ms <= self._now_ms():
            raise PasskeyRefused("the challenge has expired; try again")
        return challenge, expires_ms


_SIGNING_IN: Final = "sign in"
_INVALID: Final = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What the library raises for malformed answers, besides its own exceptions."""


def _registering(session_id: int) -> str:
    return f"register:{session_id}"


def _new_passkey(party: RelyingParty, credential: PasskeyResponse, challenge: bytes) -> MadePasskey:
    from webauthn import verify_registration_response
    from webauthn.helpers import parse_cbor
    from webauthn.helpers.cose import COSEAlgorithmIdentifier
    from webauthn.helpers.exceptions import WebAuthnException

    from runvitals.server.accounts.storage.passkeys import MadePasskey

    try:
        _check_attestation(parse_cbor(_bytes_of(credential, "response", "attestationObject")))
        registration = verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
            supported_pub_key_algs=[COSEAlgorithmIdentifier(number) for number in _ALGORITHMS],
        )
    except (WebAuthnException, *_INVALID) as error:
        raise PasskeyRefused(f"this passkey was not accepted: {error}") from error
    names = credential.get("response", {}).get("transports")
    transports = names if isinstance(names, list) else []
    return MadePasskey(
        registration.credential_id,
        registration.credential_public_key,
        registration.sign_count,
        tuple(name for name in _TRANSPORTS if name in transports),
        registration.credential_backed_up,
    )


def _check_attestation(attestation: object) -> None:
    """Check the types before the library takes them: it makes bytes of a number by taking that much memory.

    Certificates of manufacturers are refused: none were asked for.

    Raises:
        PasskeyRefused: no browser sends this attestation to this server.
    """
    members = attestation if isinstance(attestation, dict) else {}
    statement = members.get("attStmt")
    if not isinstance(members.get("authData"), bytes) or not isinstance(statement, dict):
        raise PasskeyRefused("the attestation is incomplete")
    kind = members.get("fmt")
    if kind != "none" and not (kind == "packed" and statement.keys() <= {"alg", "sig"}):
        raise PasskeyRefused(f"the attestation is {str(kind)[:40]!r}; expected none")
    if not isinstance(statement.get("sig", b""), bytes):
        raise PasskeyRefused("the attestation's signature is not bytes")


def _use(challenge: bytes, expires_ms: int, sign_count: int) -> PasskeyUse:
    from runvitals.server.accounts.storage.passkeys import PasskeyUse

    return PasskeyUse(hashlib.sha256(challenge).digest(), expires_ms, sign_count)


def _descriptors(rows: Sequence[PasskeyRow]) -> list[dict[str, Any]]:
    return [
        {
            "type": "public-key",
            "id": _text_of(row.credential_id),
            **({"transports": row.transports.split(",")} if row.transports else {}),
        }
        for row in rows
    ]


def _client_data(credential: PasskeyResponse) -> Mapping[str, Any]:
    try:
        client_data = json.loads(_bytes_of(credential, "response", "clientDataJSON"))
    except (ValueError, RecursionError):
        client_data = None
    if not isinstance(client_data, dict):
        raise PasskeyRefused("the answer's client data is not a JSON object")
    return client_data


def _bytes_of(credential: PasskeyResponse, *path: str) -> bytes:
    value: Any = credential
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return _decode(value)


def _decode(value: Any) -> bytes:
    """Bytes in base64url, without padding; empty for anything else."""
    if not isinstance(value, str) or not value.isascii():
        return b""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return b""


def _text_of(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")
