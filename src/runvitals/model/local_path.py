"""Paths of a server that its users name: where to go after signing in, or at first."""

from __future__ import annotations

MAX_PATH = 4096


def local_path(requested: str) -> str:
    r"""Return a path of this server; `/` for anything else.

    Browsers treat `//host` and `/\host` as another site, and remove tabs and line ends first.

    Example:
        >>> local_path("/runs/abc?charts=gpu"), local_path("//evil.example"), local_path("https://evil.example")
        ('/runs/abc?charts=gpu', '/', '/')
    """
    inside = requested.startswith("/") and not requested.startswith("//") and "\\" not in requested
    valid = requested.isprintable() and " " not in requested and len(requested) <= MAX_PATH
    return requested if inside and valid else "/"
