"""Which project files the user trusts.

A `runvitals.toml` comes with whatever repository was cloned, and whoever wrote it is not the user. What it
may set by itself is harmless. Settings that name servers, destinations, endpoints, paths or headers count
only after the user has trusted that very content: its checksum is kept in the user's configuration home, so
that any change of the file ends the trust.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from runvitals.journal.json_codec import dumps, loads
from runvitals.journal.paths import config_dir
from runvitals.sdk.messages import tell
from runvitals.terminal import inert

_said: set[str] = set()


def home(environ: Mapping[str, str]) -> str:
    """The folder of this user's configuration of runvitals."""
    return config_dir(environ)


def kept_in(environ: Mapping[str, str]) -> str:
    """The file that the checksums are kept in."""
    return os.path.join(home(environ), "trusted.json")


def objection(path: str, content: bytes, environ: Mapping[str, str]) -> str:
    """Why a project file, as it is, is not trusted; "" where it is."""
    try:
        known = listed(environ).get(os.path.realpath(path))
    except ValueError as error:
        return str(error)
    if known is None:
        return "you have not trusted it"
    return "" if known == _checksum(content) else "it has changed since you trusted it"


def trust(path: str, content: bytes, environ: Mapping[str, str]) -> None:
    """Trust a project file as long as its content stays as it is.

    Raises:
        ValueError: the file of checksums cannot be used. OSError: it cannot be written.
    """
    _write({**listed(environ), os.path.realpath(path): _checksum(content)}, environ)


def remove(path: str, environ: Mapping[str, str]) -> bool:
    """Trust a project file no longer; whether it was.

    Raises:
        ValueError: the file of checksums cannot be used. OSError: it cannot be written.
    """
    known = listed(environ)
    was = known.pop(os.path.realpath(path), None) is not None
    if was:
        _write(known, environ)
    return was


def listed(environ: Mapping[str, str]) -> dict[str, str]:
    """Path → SHA-256 of every project file that was trusted.

    Raises:
        ValueError: the file cannot be read, or others can write to it.
    """
    path = kept_in(environ)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            value = loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): remove it, then `runvitals trust` again"
        ) from None
    if hasattr(os, "geteuid") and (status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022):
        raise ValueError(f"{path} can be written by other users: chmod 600 it, and look who owns it")
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or not all(isinstance(one, str) for one in files.values()):
        raise ValueError(f"{path} is damaged: remove it, then `runvitals trust` again")
    return files


def say_ignored(path: str, names: Sequence[str], why: str, environ: Mapping[str, str]) -> None:
    """Say once which settings of a project file do not count, and what to do about it."""
    users = os.path.join(home(environ), "settings.toml")
    say_once(
        f"{inert(path)} sets {', '.join(names)}: ignored, for {inert(why)}. Read it, then "
        f"`runvitals trust {inert(path)}`; or set them in {inert(users)} or the environment"
    )


def say_once(text: str) -> None:
    """Say something about settings, which are looked up more than once."""
    if text not in _said:
        _said.add(text)
        tell(text)


def _checksum(content: bytes) -> str:
    import hashlib  # 2 ms that a project file without such settings need not pay

    return hashlib.sha256(content).hexdigest()


def _write(files: Mapping[str, str], environ: Mapping[str, str]) -> None:
    path = kept_in(environ)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(dumps({"files": dict(files)}) + b"\n")
    os.chmod(part, 0o600)
    os.replace(part, path)
