"""Paths of a server: where to go after signing in or at first, and the path that it is below itself."""

from __future__ import annotations

import re

MAX_PATH = 4096
_STEP_UP = re.compile(r"(?i)^[^?#]*/(?:\.|%2e){2}(?:[/?#]|\Z)")
_MAX_SERVER_PATH = 300
_SERVER_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~@:+=%-]+)+")
"""Nothing that could end an attribute of a cookie, or begin a host, a query or a fragment."""


def local_path(requested: str) -> str:
    r"""Return a path of this server; `/` for anything else.

    Browsers treat `//host` and `/\host` as another site, and remove tabs and line ends first. A step up would
    leave the path that the server is below.

    Example:
        >>> local_path("/runs/abc?charts=gpu"), local_path("//evil.example"), local_path("/a/%2e./b")
        ('/runs/abc?charts=gpu', '/', '/')
    """
    inside = requested.startswith("/") and not requested.startswith("//") and "\\" not in requested
    valid = requested.isprintable() and " " not in requested and len(requested) <= MAX_PATH
    return requested if inside and valid and _STEP_UP.search(requested) is None else "/"


def checked_server_path(text: str) -> str:
    """Return a path below which a server is, without a slash at its end; empty for the root.

    Raises:
        ValueError: not a path of plain names.

    Example:
        >>> checked_server_path("/team/runvitals/"), checked_server_path("/")
        ('/team/runvitals', '')
    """
    path = text.rstrip("/")
    if path and (len(path) > _MAX_SERVER_PATH or _SERVER_PATH.fullmatch(path) is None):
        raise ValueError(f"{text[:100]!r} is no path of plain names; expected one such as /runvitals")
    return path
