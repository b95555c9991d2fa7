"""Links in mails by which their receivers mute a run, project or team without signing in.

A link holds who it is for and which run it is about, signed. It can mute and nothing else.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import Final

PURPOSE: Final = "links that mute alerts"
_SIGNATURE_BYTES: Final = 16
_MAX_LINK: Final = 100


@dataclass(frozen=True, slots=True)
class MuteLink:
    """Whose alerts about which run, and about its project and team, the link mutes."""

    user_id: int
    run_id: int

    def text(self, key: bytes) -> str:
        """Return the link, signed by a key."""
        signature = base64.urlsafe_b64encode(_signature(self, key)).rstrip(b"=").decode("ascii")
        return f"{self.user_id}.{self.run_id}.{signature}"


def mute_link(text: str, key: bytes) -> MuteLink:
    """Return what a link mutes.

    Raises:
        ValueError: no link that this key signed.
    """
    parts = text.split(".")
    if len(text) > _MAX_LINK or len(parts) != 3 or not all(_is_id(part) for part in parts[:2]):
        raise ValueError("invalid link")
    link = MuteLink(int(parts[0]), int(parts[1]))
    if not hmac.compare_digest(link.text(key).encode(), text.encode()):
        raise ValueError("invalid link")
    return link


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10


def _signature(link: MuteLink, key: bytes) -> bytes:
    message = f"mute:{link.user_id}:{link.run_id}".encode()
    return hmac.digest(key, message, "sha256")[:_SIGNATURE_BYTES]
