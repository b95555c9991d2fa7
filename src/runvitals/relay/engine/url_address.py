"""The address of a destination that is a URL, with our own options after `#`.

`remote_write:https://host/api/v1/write?tenant=a#version=2` sends to that URL; the query is part of it.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl, urlsplit

from runvitals.base.http_client import HttpClient


class UrlAddress:
    """A parsed address.

    Args:
        name: name of the destination, for messages.
        text: the address.
        options: the names allowed after `#`.
        path: the path of a URL without one.

    Attributes:
        http: the HTTP client of the server.
        path: the path of requests, with the query.
        options: the options after `#`.

    Raises:
        ValueError: invalid URL, a password in it, or an unknown option.

    Example:
        >>> address = UrlAddress("remote_write", "http://host:9090#version=2", ["version"], "/api/v1/write")
        >>> address.http.url, address.path, address.options
        ('http://host:9090', '/api/v1/write', {'version': '2'})
    """

    def __init__(self, name: str, text: str, options: Collection[str], path: str) -> None:
        url, _, fragment = text.partition("#")
        parts = urlsplit(url)
        self.http = HttpClient(f"{parts.scheme}://{parts.netloc}")
        self.path = (parts.path if parts.path.strip("/") else path) + (
            f"?{parts.query}" if parts.query else ""
        )
        self.options = dict(parse_qsl(fragment, keep_blank_values=True))
        unknown = sorted(self.options.keys() - set(options))
        if unknown:
            raise ValueError(f"{name}: unknown option {unknown[0]!r}; expected one of {', '.join(options)}")
