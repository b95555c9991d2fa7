"""Tokens for servers: what `runvitals login` kept in a file that only the user can read; `RUNVITALS_TOKEN`.

A token is shown to nobody but the server it is for. `RUNVITALS_TOKEN` is for the server that
`RUNVITALS_SERVER` names; where that is not set, for the one server that the user has logged in to. Whatever
else names a server (a `runvitals.toml` of a project that somebody else wrote, `destinations`, `--to`) does
not get it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from runvitals.journal.jsontext import dumps, loads
from runvitals.journal.paths import config_dir
from runvitals.relay.web import HttpClient

VARIABLE = "RUNVITALS_TOKEN"
SERVER_VARIABLE = "RUNVITALS_SERVER"
_ABOUT = "/api/v1/about"
_CHECK_TIMEOUT_S = 10.0


def login_file(environ: Mapping[str, str]) -> str:
    """Where tokens are kept: `runvitals/login.toml` in the user's configuration home."""
    return os.path.join(config_dir(environ), "login.toml")


def token(url: str, environ: Mapping[str, str]) -> str | None:
    """The token for a server, or None.

    Raises:
        ValueError: the login file cannot be read.
    """
    kept = {_key(known): entry.get("token") for known, entry in _servers(login_file(environ)).items()}
    given = environ.get(VARIABLE)
    if given and _key(url) == _meant(environ, list(kept)):
        return given
    return kept.get(_key(url))


def _meant(environ: Mapping[str, str], kept: list[str]) -> str | None:
    """The server that `RUNVITALS_TOKEN` is for."""
    named = environ.get(SERVER_VARIABLE)
    if named:
        return _key(named)
    return kept[0] if len(kept) == 1 else None


def remedy(url: str, environ: Mapping[str, str]) -> str:
    """What a person does about a server that does not let us in."""
    text = f"`runvitals login {url}` asks for another token"
    if not environ.get(VARIABLE):
        return text
    if token(url, environ) == environ[VARIABLE]:
        return f"the one in {VARIABLE} is not, or no longer, known there; without that variable {text}"
    return f"{VARIABLE} is only for the server that {SERVER_VARIABLE} names, and is not sent; {text}"


def stamp(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """What changes whenever the login file does; None where there is none."""
    try:
        status = os.stat(login_file(environ))
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def check(url: str, secret: str) -> None:
    """See that a server takes a token.

    Raises:
        ValueError: it does not, or is no shared server of runvitals.
        OSError: it cannot be reached.
    """
    web = HttpClient(url, _CHECK_TIMEOUT_S)
    try:
        answer = web.request("GET", _ABOUT, None, {"Authorization": f"Bearer {secret}"})
    except OSError as error:
        raise OSError(f"{url} cannot be reached: {error}; the token is not kept") from error
    finally:
        web.close()
    if answer.status == 403:  # whatever the token: a name that the server does not go by
        raise ValueError(f"{url} does not let us in: {answer.text()}; the token is not kept")
    if answer.status == 401:
        raise ValueError(f"{url} does not know this token: `runvitals token create NAME` there prints one")
    if answer.temporary:
        said = f"{answer.status} {answer.text()}".strip()
        raise ValueError(f"{url} cannot say whether it knows this token: {said}; it is not kept")
    try:
        about = loads(answer.body)
        kind = about.get("kind") if answer.status == 200 and isinstance(about, dict) else None
    except ValueError:
        kind = None
    if kind == "local":
        raise ValueError(
            f"{url} shows the journals of its machine (`runvitals ui`); runs are sent to a `runvitals server`"
        )
    if kind != "server":
        raise ValueError(f"{url} is no runvitals server: it answers {answer.status} for {_ABOUT}")


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
    for known in [known for known in servers if _key(known) == _key(url)]:
        del servers[known]
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
    gone = [known for known in servers if url is None or _key(known) == _key(url)]
    if gone:
        _write(path, {known: entry for known, entry in servers.items() if known not in gone})
    return gone


def _key(url: str) -> str:
    """A server's URL as it is compared: without what may be written in several ways."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None  # no number: whoever connects says so
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "") if ":" not in (parts.hostname or "") else f"[{parts.hostname}]"
    place = host if port in (None, usual) else f"{host}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


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
