"""The address of a destination on the web: a URL, and after `#` what is meant for us alone.

`remote_write:https://host/api/v1/write?tenant=a#version=2` sends to that URL, whose query is the far side's.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl, urlsplit

from runvitals.relay.web import HttpClient


class UrlAddress:
    """An address, read.

    Args:
        name: of the destination, for messages.
        text: the address.
        options: the names that may stand after `#`.
        path: that of a URL without one.

    Attributes:
        web: the server.
        path: what is asked of it, with its query.
        options: what stood after `#`.

    Raises:
        ValueError: no URL of a server, a password in it, or an option that there is not.

    Example:
        >>> address = UrlAddress("remote_write", "http://host:9090#version=2", ["version"], "/api/v1/write")
        >>> address.web.url, address.path, address.options
        ('http://host:9090', '/api/v1/write', {'version': '2'})
    """

    def __init__(self, name: str, text: str, options: Collection[str], path: str) -> None:
        place, _, after = text.partition("#")
        parts = urlsplit(place)
        self.web = HttpClient(f"{parts.scheme}://{parts.netloc}")
        self.path = (parts.path if parts.path.strip("/") else path) + (
            f"?{parts.query}" if parts.query else ""
        )
        self.options = dict(parse_qsl(after, keep_blank_values=True))
        unknown = sorted(self.options.keys() - set(options))
        if unknown:
            raise ValueError(f"{name}: no option {unknown[0]!r}; after # there may be {', '.join(options)}")
