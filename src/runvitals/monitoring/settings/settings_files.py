"""The settings files: the user's and the project's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from stat import S_IWOTH
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.monitoring.settings import trust

PROJECT_FILE = "runvitals.toml"
_MAX_BYTES = 1024 * 1024


def user_file(environ: Mapping[str, str]) -> str | None:
    """Return the user's settings file, or None."""
    path = os.path.join(trust.home(environ), "settings.toml")
    return path if os.path.isfile(path) else None


def project_file(cwd: str) -> str | None:
    """Return the nearest `runvitals.toml` in `cwd` or a parent folder.

    Ignores files of other users in world-writable folders such as `/tmp`.
    """
    folder = os.path.abspath(cwd)
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(path) and not _is_planted(path, folder):
            return path
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_planted(path: str, folder: str) -> bool:
    """Return whether another user may have placed the file in a world-writable folder."""
    if not hasattr(os, "getuid"):
        return False
    try:
        return os.stat(folder).st_mode & S_IWOTH != 0 and os.stat(path).st_uid not in (os.getuid(), 0)
    except OSError:
        return True  # it was removed just now


def read(path: str) -> bytes:
    """Return the content of a settings file.

    Raises:
        ValueError: the file cannot be read or is too large.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{inert(path)} cannot be read: {inert(error.strerror)}") from None
    if len(content) > _MAX_BYTES:
        raise ValueError(f"{inert(path)} cannot be read: larger than {_MAX_BYTES} bytes")
    return content


def parse(path: str, content: bytes) -> dict[str, Any]:
    """Return the settings in a file's content, by name.

    Raises:
        ValueError: invalid TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{inert(path)} cannot be read: {inert(error)}") from None
    return table
