"""Tokens for runvitals servers: from the file written by `runvitals login`, or from `RUNVITALS_TOKEN`.

A token is only sent to its own server. `RUNVITALS_TOKEN` belongs to the server that `RUNVITALS_SERVER` names,
or, if that is not set, to the one server the user has logged in to. It is not sent to servers named
elsewhere: in a project's `runvitals.toml`, in `destinations`, or with `--to`. The file is readable only by
the user. `WANDB_API_KEY` is used for the server that `WANDB_BASE_URL` names, where there is no token for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from runvitals.base.http_client import HttpClient
from runvitals.base.json_codec import dumps, loads
from runvitals.base.private_folders import config_dir, make_private

VARIABLE = "RUNVITALS_TOKEN"
SERVER_VARIABLE = "RUNVITALS_SERVER"
_ABOUT = "/api/v1/about"
_ACCOUNT = "/api/v1/account"
_CHECK_TIMEOUT_S = 10.0


def login_file(environ: Mapping[str, str]) -> str:
    """Return the file that holds the tokens: `runvitals/login.toml` in the user's configuration folder."""
    return os.path.join(config_dir(environ), "login.toml")


def token(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the token for a server, or None.

    Raises:
        ValueError: the login file could not be read.
    """
    saved = {_key(server): entry.get("token") for server, entry in _servers(login_file(environ)).items()}
    value = environ.get(VARIABLE)
    if value and _key(url) == _server_of_variable(environ, list(saved)):
        return value
    return saved.get(_key(url)) or _key_of_wandb(url, environ)


def _key_of_wandb(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the key in `WANDB_API_KEY`, if `WANDB_BASE_URL` names this server."""
    url_of_wandb = environ.get("WANDB_BASE_URL")
    return environ.get("WANDB_API_KEY") or None if url_of_wandb and _key(url_of_wandb) == _key(url) else None


def _server_of_variable(environ: Mapping[str, str], saved: list[str]) -> str | None:
    """Return the server that `RUNVITALS_TOKEN` belongs to."""
    address = environ.get(SERVER_VARIABLE)
    if address:
        return _key(address)
    return saved[0] if len(saved) == 1 else None


def remedy(url: str, environ: Mapping[str, str]) -> str:
    """Return what the user can do about a server that rejected the credentials."""
    text = f"`runvitals login {url}` asks for another token"
    if not environ.get(VARIABLE):
        return text
    if token(url, environ) == environ[VARIABLE]:
        return f"the token in {VARIABLE} is not, or no longer, valid there; without that variable {text}"
    return f"{VARIABLE} is only sent to the server that {SERVER_VARIABLE} names; {text}"


def file_version(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Changes whenever the login file does; None if there is no file."""
    try:
        status = os.stat(login_file(environ))
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def check(url: str, secret: str) -> None:
    """Check that a server accepts a token.

    Raises:
        ValueError: it does not, or it is not a runvitals server.
        OSError: it could not be reached.
    """
    client = HttpClient(url, _CHECK_TIMEOUT_S)
    try:
        response = client.request("GET", _ABOUT, None, {"Authorization": f"Bearer {secret}"})
    except OSError as error:
        raise OSError(f"{error}; the token was not saved") from error
    finally:
        client.close()
    if response.status == 403:  # independent of the token: the server does not use this host name
        raise ValueError(f"{url} rejected the request (403): {response.text()}; the token was not saved")
    if response.status == 401:
        raise ValueError(
            f"{url} rejected the token (401); create one there with `runvitals token create NAME`"
        )
    if response.temporary:
        reason = f"{response.status} {response.text()}".strip()
        raise ValueError(f"{url} could not check the token: {reason}; it was not saved")
    try:
        about = loads(response.body)
        kind = about.get("kind") if response.status == 200 and isinstance(about, dict) else None
    except ValueError:
        kind = None
    if kind == "local":
        raise ValueError(
            f"{url} shows the journals of its machine (`runvitals ui`); runs are sent to a `runvitals server`"
        )
    if kind != "server":
        raise ValueError(f"{url} is not a runvitals server: {_ABOUT} returned {response.status}")


def known_server(url: str | None, environ: Mapping[str, str]) -> str:
    """Return the server of a URL, or the only one that a key is stored for.

    Raises:
        ValueError: there is none, or there are several.
    """
    if url is not None:
        return _key(url)
    address = environ.get(SERVER_VARIABLE)
    servers = [_key(address)] if address else list(_servers(login_file(environ)))
    if len(servers) != 1:
        problem = f"several servers: {', '.join(servers)}" if servers else "no server"
        raise ValueError(f"there are keys for {problem}; expected the URL of one")
    return servers[0]


def account(url: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Whom the key for a server stands for.

    Raises:
        ValueError: there is no key for it, or the server does not accept it.
        OSError: the server could not be reached.
    """
    secret = token(url, environ)
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    client = HttpClient(url, _CHECK_TIMEOUT_S)
    try:
        response = client.request("GET", _ACCOUNT, None, headers)
    except OSError as error:
        raise OSError(f"could not connect to {url}: {error}") from error
    finally:
        client.close()
    if response.status == 401:
        if secret is None and not environ.get(VARIABLE):
            raise ValueError(f"{url} needs a key, and none is stored; `runvitals login {url}` stores one")
        problem = "does not accept the key" if secret is not None else "needs a key, and none is stored"
        raise ValueError(f"{url} {problem}; {remedy(url, environ)}")
    body = loads(response.body) if response.status == 200 else None
    if not isinstance(body, dict):
        raise ValueError(f"{url} did not say who this is: {_ACCOUNT} returned {response.status}")
    return body


def tokens(environ: Mapping[str, str]) -> list[str]:
    """Return all saved tokens; raise ValueError if the login file cannot be read."""
    return [entry["token"] for entry in _servers(login_file(environ)).values() if "token" in entry]


def save(url: str, secret: str, environ: Mapping[str, str]) -> str:
    """Save the token of a server; returns the path of the file.

    Raises:
        OSError: the file could not be written. ValueError: it could not be read.
    """
    path = login_file(environ)
    servers = _servers(path)
    for server in [server for server in servers if _key(server) == _key(url)]:
        del servers[server]
    servers[_key(url)] = {"token": secret}
    _write(path, servers)
    return path


def delete(url: str | None, environ: Mapping[str, str]) -> list[str]:
    """Delete the token of one server, or of all; returns the servers whose tokens were deleted.

    Raises:
        OSError: the file could not be written. ValueError: it could not be read.
    """
    path = login_file(environ)
    servers = _servers(path)
    deleted = [server for server in servers if url is None or _key(server) == _key(url)]
    if deleted:
        _write(path, {server: entry for server, entry in servers.items() if server not in deleted})
    return deleted


def _key(url: str) -> str:
    """Return a server's URL in a normal form, for comparison."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None  # invalid; reported when connecting
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "") if ":" not in (parts.hostname or "") else f"[{parts.hostname}]"
    netloc = host if port in (None, usual) else f"{host}:{port}"
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


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
        raise ValueError(f"could not read {path}: {error}") from None
    servers = table.get("servers", {})
    return {url: entry for url, entry in servers.items() if isinstance(entry, dict)}


def _write(path: str, servers: Mapping[str, Mapping[str, str]]) -> None:
    lines = ["# Written by `runvitals login`. Anyone who has a token can write to that server."]
    for url, entry in servers.items():
        lines += [
            "",
            f"[servers.{_quote(url)}]",
            *(f"{name} = {_quote(text)}" for name, text in entry.items()),
        ]
    make_private(os.path.dirname(path))
    part = f"{path}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(part, 0o600)
    os.replace(part, path)


def _quote(text: str) -> str:
    """Return a TOML basic string; its escapes are those of JSON."""
    return dumps(text).decode("ascii")
