"""An authenticator and the browser before it: makes passkeys and answers challenges, byte by byte."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, BACKUP, HAS_KEY = 0x01, 0x04, 0x18, 0x40


def text_of(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode("ascii").rstrip("=")


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Authenticator:
    """One device with one passkey. What is passed to a method replaces what a correct browser would do.

    Attributes:
        origin: of the page that asks.
        count: of uses; stays 0 for one that does not count.
    """

    origin: str
    count: int = 1
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    handle: bytes = b""

    def make(self, options: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """The answer to the options of a registration."""
        self.handle = bytes_of(options["user"]["id"])
        client_data = self._client_data("webauthn.create", options, changes)
        flags = changes.get("flags", PRESENT | VERIFIED | BACKUP | HAS_KEY)
        public = changes.get("public_key", self._public_key())
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + public
        rp_id = changes.get("rp_id", options["rp"]["id"])
        authenticator_data = self._data(rp_id, flags, self.count) + (attested if flags & HAS_KEY else b"")
        attestation = {
            "fmt": changes.get("fmt", "none"),
            "attStmt": changes.get("statement", {}),
            "authData": authenticator_data,
        }
        return self._answer(
            {
                "clientDataJSON": text_of(client_data),
                "attestationObject": text_of(cbor2.dumps(attestation)),
                "transports": ["internal", "hybrid", "made-up"],
            }
        )

    def answer(self, options: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """The answer to the options of a sign-in, or of a confirmation."""
        if self.count:
            self.count += 1
        client_data = self._client_data("webauthn.get", options, changes)
        rp_id = changes.get("rp_id", options["rpId"])
        flags = changes.get("flags", PRESENT | VERIFIED | BACKUP)
        data = self._data(rp_id, flags, changes.get("count", self.count))
        signed = data + hashlib.sha256(client_data).digest()
        signature = changes.get("key", self.key).sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": text_of(client_data),
                "authenticatorData": text_of(data),
                "signature": text_of(changes.get("signature", signature)),
                "userHandle": text_of(changes.get("handle", self.handle)),
            }
        )

    def _client_data(self, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> bytes:
        client_data = {
            "type": changes.get("type", kind),
            "challenge": changes.get("challenge", options["challenge"]),
            "origin": changes.get("origin", self.origin),
            "crossOrigin": changes.get("cross_origin", False),
        }
        return json.dumps(client_data).encode()

    def _public_key(self) -> bytes:
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})

    def _data(self, rp_id: str, flags: int, count: int) -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")

    def _answer(self, response: dict[str, Any]) -> dict[str, Any]:
        name = text_of(self.credential_id)
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "response": response,
            "clientExtensionResults": {},
        }
