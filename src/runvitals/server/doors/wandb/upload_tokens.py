"""The addresses to which clients upload files. Uploads carry no key, so the address itself allows one."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import astuple, dataclass
from typing import Final

import msgspec

LIFE_MS: Final = 3_600_000
_PURPOSE: Final = b"upload of a wandb client\0"
_SIGNATURE_BYTES: Final = 32
_MAX_CHARACTERS: Final = 8192


@dataclass(frozen=True, slots=True)
class Upload:
    """What an address allows: to upload the file of this name to a run.

    Args:
        writer_id: the writer under which the file is recorded.
        host: the machine of the client.
        until_ms: when the address ends.
    """

    run_id: int
    writer_id: int
    host: str
    name: str
    until_ms: int


_decode = msgspec.json.Decoder(tuple[int, int, str, str, int]).decode


class UploadTokens:
    """Makes and checks the last part of such addresses.

    Args:
        key: a secret of the server.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(_PURPOSE + key).digest()

    def token(self, upload: Upload) -> str:
        """The text that stands for an upload."""
        content = msgspec.json.encode(astuple(upload))
        return base64.urlsafe_b64encode(self._signature(content) + content).decode("ascii").rstrip("=")

    def upload(self, token: str, now_ms: int) -> Upload | None:
        """What a text allows; None if it is not from this server, or has ended."""
        if len(token) > _MAX_CHARACTERS:
            return None
        try:
            data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        signature, content = data[:_SIGNATURE_BYTES], data[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(content)):
            return None
        upload = Upload(*_decode(content))
        return upload if now_ms < upload.until_ms else None

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")
