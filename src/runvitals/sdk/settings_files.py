"""Where settings lie on the disk: the user's file, and the project's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from stat import S_IWOTH
from typing import Any

from runvitals.sdk import trust

PROJECT_FILE = "runvitals.toml"
_LONGEST_BYTES = 1024 * 1024


def user_file(environ: Mapping[str, str]) -> str | None:
    """The user's settings file, if there is one."""
    path = os.path.join(trust.home(environ), "settings.toml")
    return path if os.path.isfile(path) else None


def project_file(cwd: str) -> str | None:
    """The nearest `runvitals.toml` in `cwd` or a folder above it.

    A file of another user in a folder that everybody may write to, such as `/tmp`, is nobody's project.
    """
    folder = os.path.abspath(cwd)
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        if os.path.isfile(path) and not _is_strangers(path, folder):
            return path
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_strangers(path: str, folder: str) -> bool:
    if not hasattr(os, "getuid"):
        return False
    try:
        return os.stat(folder).st_mode & S_IWOTH != 0 and os.stat(path).st_uid not in (os.getuid(), 0)
    except OSError:
        return True  # it has just been taken away


def read(path: str) -> bytes:
    """The content of a settings file.

    Raises:
        ValueError: it cannot be read, or is no such file.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_LONGEST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if len(content) > _LONGEST_BYTES:
        raise ValueError(f"{path} cannot be read: it is longer than {_LONGEST_BYTES} bytes")
    return content


def parsed(path: str, content: bytes) -> dict[str, Any]:
    """Settings by name, as a file has them.

    Raises:
        ValueError: no TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table: dict[str, Any] = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return table
