"""Addresses under which this server shows images from elsewhere.

The page loads images from its own server only, so that no image tells its author who reads a page. An image
from elsewhere gets a signed address here: only what our own Markdown names is ever fetched.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

from runvitals.server.outbound.policy import Blocked

PATH: Final = "/-/image"
PURPOSE: Final = "outside images"
"""Of the key: `SecretBox.derived_key`."""
_MAX_URL: Final = 2000
_OWN: Final = re.compile(r"/-/picture/[0-9a-f]{64}(?:\?s=(?:64|512))?")


class ImageLinks:
    """Makes and reads those addresses.

    Args:
        key: 32 secret bytes.
        enabled: the setting `outside_images` is `proxy`. Otherwise there are no addresses, and texts show a
            link instead of the image.

    Example:
        >>> links = ImageLinks(bytes(32))
        >>> address = links.address("https://example.org/a.png")
        >>> _, _, _, signature, name = address.split("/")
        >>> links.url(signature, name)
        'https://example.org/a.png'
    """

    def __init__(self, key: bytes, enabled: bool = True) -> None:
        self._key = key
        self._enabled = enabled

    def address(self, url: str) -> str | None:
        """Return the path on this server for an image; None if it is not shown.

        Pictures of users and teams keep their own path.
        """
        if _OWN.fullmatch(url):
            return url
        if not (self._enabled and url.startswith("https://") and url.isprintable() and len(url) <= _MAX_URL):
            return None
        name = base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode("ascii")
        return f"{PATH}/{self._signature(name)}/{name}"

    def url(self, signature: str, name: str) -> str:
        """Return the URL of an image, by the two parts of its path.

        Raises:
            Blocked: this server did not make this path, or images from elsewhere are switched off.
        """
        expected = self._signature(name)
        if not self._enabled or not hmac.compare_digest(expected.encode(), signature.encode()):
            raise Blocked("this image is not in any text")
        try:
            return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise Blocked("this image is not in any text") from None

    def _signature(self, name: str) -> str:
        return hmac.new(self._key, name.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]
