"""The project files that the user trusts.

A `runvitals.toml` can come with a cloned repository, so its author need not be the user. Untrusted,
it may only change harmless settings. Settings that name servers, destinations, endpoints, paths or headers
apply only after the user has trusted the file. Trust is stored as a checksum in the user's configuration
folder, so any change of the file revokes it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from runvitals.base.json_codec import dumps, loads
from runvitals.base.private_folders import config_dir, make_private
from runvitals.base.terminal_text import inert
from runvitals.monitoring.settings.messages import notify

_warned: set[str] = set()


def home(environ: Mapping[str, str]) -> str:
    """This user's configuration folder."""
    return config_dir(environ)


def trust_file(environ: Mapping[str, str]) -> str:
    """Return the file with the checksums."""
    return os.path.join(home(environ), "trusted.json")


def reason_untrusted(path: str, content: bytes, environ: Mapping[str, str]) -> str:
    """Return why a project file with this content is not trusted; "" if it is."""
    try:
        checksum = trusted_files(environ).get(os.path.realpath(path))
    except ValueError as error:
        return str(error)
    if checksum is None:
        return "the file is not trusted"
    return "" if checksum == _checksum(content) else "the file has changed since you trusted it"


def trust(path: str, content: bytes, environ: Mapping[str, str]) -> None:
    """Trust a project file until its content changes.

    Raises:
        ValueError: the trust file is not usable. OSError: it is not writable.
    """
    _write({**trusted_files(environ), os.path.realpath(path): _checksum(content)}, environ)


def remove(path: str, environ: Mapping[str, str]) -> bool:
    """Revoke the trust in a project file; whether it was trusted.

    Raises:
        ValueError: the trust file is not usable. OSError: it is not writable.
    """
    trusted = trusted_files(environ)
    was = trusted.pop(os.path.realpath(path), None) is not None
    if was:
        _write(trusted, environ)
    return was


def trusted_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Return path → SHA-256 of every trusted project file.

    Raises:
        ValueError: the trust file cannot be read, or other users can write to it.
    """
    path = trust_file(environ)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            value = loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); remove it, then run `runvitals trust` again"
        ) from None
    if hasattr(os, "geteuid") and (status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022):
        raise ValueError(f"{path} is writable by other users; check its owner and run chmod 600 on it")
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        raise ValueError(f"{path} is corrupt; remove it, then run `runvitals trust` again")
    return files


def warn_ignored(path: str, names: Sequence[str], why: str, environ: Mapping[str, str]) -> None:
    """Warn once which settings of a project file are ignored, and what to do about it."""
    users = os.path.join(home(environ), "settings.toml")
    warn_once(
        f"ignoring {', '.join(names)} in {inert(path)}: {inert(why)}. Review it and run "
        f"`runvitals trust {inert(path)}`, or set them in {inert(users)} or the environment"
    )


def warn_once(text: str) -> None:
    """Print a warning about settings, which are resolved more than once, only the first time."""
    if text not in _warned:
        _warned.add(text)
        notify(text)


def _checksum(content: bytes) -> str:
    import hashlib  # 2 ms, paid only for project files with settings that need trust

    return hashlib.sha256(content).hexdigest()


def _write(files: Mapping[str, str], environ: Mapping[str, str]) -> None:
    path = trust_file(environ)
    make_private(os.path.dirname(path))
    part = f"{path}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(dumps({"files": dict(files)}) + b"\n")
    os.chmod(part, 0o600)
    os.replace(part, path)
