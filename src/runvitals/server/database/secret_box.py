"""Encrypts secrets that must be read again, such as those of second factors: AES-256-GCM, by keys in a file.

The file has a key a line, `id:base64`. The last one encrypts, all decrypt: to replace a key, add a line.
The file is no part of a backup: with the database alone the secrets cannot be read.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from runvitals.store import private_files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_MAX_FILE: Final = 64 * 1024


class SecretUnreadable(Exception):
    """A secret that no key in the file decrypts: the key file is another one, or the secret was changed."""


class SecretBox:
    """Seals and opens secrets.

    Args:
        keys: 32 bytes by id, in the order of the file.

    Example:
        >>> box = SecretBox({"a1": bytes(32)})
        >>> box.open(box.seal(b"secret", "totp:7"), "totp:7")
        b'secret'
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = dict(keys)
        self._newest = list(keys)[-1]

    @cached_property
    def _ciphers(self) -> Mapping[str, AESGCM]:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 7 MB: only where there are secrets

        return {name: AESGCM(key) for name, key in self._keys.items()}

    def derived_key(self, purpose: str) -> bytes:
        """Return a key of 32 bytes for signatures of one purpose; adding a key does not change it."""
        return hmac.digest(next(iter(self._keys.values())), purpose.encode(), "sha256")

    def seal(self, secret: bytes, purpose: str) -> bytes:
        """Return the encrypted secret. `purpose` says whose and what it is: it opens for nothing else."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._newest].encrypt(nonce, secret, purpose.encode())
        return self._newest.encode() + b":" + nonce + sealed

    def open(self, sealed: bytes, purpose: str) -> bytes:
        """Decrypt a secret.

        Raises:
            SecretUnreadable: no key decrypts it, or it was sealed for another purpose.
        """
        name, _, rest = sealed.partition(b":")
        from cryptography.exceptions import InvalidTag

        cipher = self._ciphers.get(name.decode("ascii", "replace"))
        if cipher is None:
            raise SecretUnreadable("the key of this secret is not in the key file")
        try:
            return bytes(cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], purpose.encode()))
        except (InvalidTag, ValueError):
            raise SecretUnreadable("this secret was changed, or sealed by another key") from None


def open_secret_box(path: str) -> SecretBox:
    """Return the box with the keys in a file, which is created with a new key if it does not exist.

    Raises:
        OSError: the file cannot be read or created.
        ValueError: it holds something else.
    """
    if not os.path.exists(path):
        _create(path)
    with open(path, encoding="ascii", errors="replace") as file:
        lines = file.read(_MAX_FILE).split()
    keys = dict(_key(path, line) for line in lines)
    if not keys:
        raise ValueError(f"the key file {path} is empty")
    return SecretBox(keys)


def temporary_secret_box() -> SecretBox:
    """Return a box with a new key that is stored nowhere: what it seals is lost with the process."""
    return SecretBox({secrets.token_hex(4): secrets.token_bytes(_KEY_BYTES)})


def add_key(path: str) -> str:
    """Add a key to a file; returns its id. From now on it encrypts."""
    name, key = secrets.token_hex(4), secrets.token_bytes(_KEY_BYTES)
    line = f"{name}:{base64.b64encode(key).decode('ascii')}\n"
    with open(path, "a", encoding="ascii") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return name


def _create(path: str) -> None:
    """Create the file with a key in it, unless another process just did: nobody sees it half written."""
    draft = f"{path}.{secrets.token_hex(4)}"
    private_files.create(draft, exclusive=True)
    try:
        add_key(draft)
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)


def _key(path: str, line: str) -> tuple[str, bytes]:
    name, _, text = line.partition(":")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not name or len(key) != _KEY_BYTES:
        raise ValueError(f"the key file {path} has an invalid line; expected ID:BASE64 of {_KEY_BYTES} bytes")
    return name, key


def team_secret_purpose(team_id: int, name: str) -> str:
    """Return the purpose of a team's secret, by its name."""
    return f"team secret:{team_id}:{name}"


def slack_purpose(team_id: int) -> str:
    """Return the purpose of the URLs of a team's Slack destinations."""
    return f"slack destination:{team_id}"


def user_slack_purpose(user_id: int) -> str:
    """Return the purpose of the URL by which Slack tells a user."""
    return f"slack of user:{user_id}"


def apprise_purpose(team_id: int) -> str:
    """Return the purpose of the URLs that a team reaches by Apprise."""
    return f"apprise destination:{team_id}"
