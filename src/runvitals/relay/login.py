"""Tokens for servers: `RUNVITALS_TOKEN`, else what `runvitals login` kept in a file that only the user can
read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from runvitals.journal.jsontext import dumps

VARIABLE = "RUNVITALS_TOKEN"


def login_file(environ: Mapping[str, str]) -> str:
    """Where tokens are kept: `runvitals/login.toml` in the user's configuration home."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "runvitals", "login.toml")


def token(url: str, environ: Mapping[str, str]) -> str | None:
    """The token for a server, or None.

    Raises:
        ValueError: the login file cannot be read.
    """
    return environ.get(VARIABLE) or _servers(login_file(environ)).get(_key(url), {}).get("token")


def tokens(environ: Mapping[str, str]) -> list[str]:
    """Every token that is kept, of whatever server.

    Raises:
        ValueError: the login file cannot be read.
    """
    return [entry["token"] for entry in _servers(login_file(environ)).values() if "token" in entry]


def keep(url: str, secret: str, environ: Mapping[str, str]) -> str:
    """Write a server's token down; the path of the file.

    Raises:
        OSError: it cannot be written. ValueError: it cannot be read.
    """
    path = login_file(environ)
    servers = _servers(path)
    servers[_key(url)] = {"token": secret}
    _write(path, servers)
    return path


def forget(url: str | None, environ: Mapping[str, str]) -> list[str]:
    """Forget a server's token, or all; the servers that were forgotten.

    Raises:
        OSError: the file cannot be written. ValueError: it cannot be read.
    """
    path = login_file(environ)
    servers = _servers(path)
    gone = [known for known in servers if url is None or known == _key(url)]
    if gone:
        _write(path, {known: entry for known, entry in servers.items() if known not in gone})
    return gone


def _key(url: str) -> str:
    return url.rstrip("/")


def _servers(path: str) -> dict[str, dict[str, str]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            table: dict[str, Any] = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    servers = table.get("servers", {})
    return {url: entry for url, entry in servers.items() if isinstance(entry, dict)}


def _write(path: str, servers: Mapping[str, Mapping[str, str]]) -> None:
    lines = ["# Kept by `runvitals login`. Whoever has a token can write to that server."]
    for url, entry in servers.items():
        lines += [
            "",
            f"[servers.{_quoted(url)}]",
            *(f"{name} = {_quoted(text)}" for name, text in entry.items()),
        ]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(part, 0o600)
    os.replace(part, path)


def _quoted(text: str) -> str:
    """A TOML basic string, whose escapes are JSON's."""
    return dumps(text).decode("ascii")
