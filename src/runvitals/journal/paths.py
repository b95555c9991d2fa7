"""Paths and names of journal files: `$RUNVITALS_DIR/runs/<run id>/<writer>.<segment>.rvj`."""

from __future__ import annotations

import errno
import os
import sys

from runvitals.model.media import is_sha256

SUFFIX = ".rvj"
FOLDER_HERE = ".runvitals"
"""The data folder in the current directory, without a home directory. It may come with a repository."""
OPEN_FLAGS: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


def data_dir() -> str:
    """The data folder: `RUNVITALS_DIR`, or else `runvitals` in the operating system's folder for user data.

    Without a home directory (such as in a container that runs under a numeric user id) it is `.runvitals` in
    the current directory.
    """
    folder = os.environ.get("RUNVITALS_DIR")
    if folder:
        return os.path.abspath(os.path.expanduser(folder))
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(home):  # the XDG specification: relative paths are invalid and ignored
            home = os.path.expanduser("~/.local/share")
    if not os.path.isabs(home):  # `~` could not be expanded, or `HOME` is relative
        return os.path.abspath(FOLDER_HERE)
    return os.path.join(home, "runvitals")


def check_run_id(run_id: str) -> str:
    """Return the id if it is valid as a folder name.

    Raises:
        ValueError: not 1 to 128 characters of A-Z a-z 0-9 _ . -, or it begins with a dot or a dash.
    """
    return _check_name("run id", run_id)


def check_writer(writer: str) -> str:
    """Return the writer's name if it is valid in file names: by the rules of a run id."""
    return _check_name("writer", writer)


def role_and_host(writer: str) -> tuple[str, str]:
    """Role and host from a writer's name.

    `monitor.<host>.<start>`, or `train.<host>.<pid>.<start>`, which `console`, `media` and `edit` resemble.

    Example:
        >>> role_and_host("train.node1.example.org.4711.19f3a")
        ('train', 'node1.example.org')
    """
    role, _, rest = writer.partition(".")
    host = rest.rsplit(".", 2 if role in ("train", "console", "media", "edit") else 1)[0]
    return role, host or writer


def is_edit(writer: str) -> bool:
    """Return whether a writer records edits by users, and nothing of the run's processes."""
    return writer.startswith("edit.")


def _check_name(what: str, name: str) -> str:
    if not _is_name(name):
        raise ValueError(
            f"invalid {what} {name!r}: expected 1 to 128 of A-Z a-z 0-9 _ . -, not beginning with . or -"
        )
    return name


def _is_name(name: str) -> bool:
    return 1 <= len(name) <= 128 and name[0] not in ".-" and _NAME_CHARACTERS.issuperset(name)


def safe_name(text: str) -> str:
    """Make `text` usable as part of a file name: other characters become `_`, at most 64 are kept."""
    cleaned = "".join(c if c in _NAME_CHARACTERS else "_" for c in text).strip(".-")
    return cleaned[:64] or "_"


def sync_folder(folder: str) -> None:
    """Write the names in a folder to the disk, so that a power failure does not lose them.

    Does nothing on Windows, which has no call for it.

    Raises:
        OSError: the folder could not be opened or synced.
    """
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY | OPEN_FLAGS)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def runs_dir(directory: str | None = None) -> str:
    """Return the folder of all runs."""
    return os.path.join(directory or data_dir(), "runs")


def run_dir(run_id: str, directory: str | None = None) -> str:
    """Return the folder of a run."""
    return os.path.join(runs_dir(directory), check_run_id(run_id))


def segment_path(folder: str, writer: str, segment: int) -> str:
    """Return the file of a writer's segment."""
    return os.path.join(folder, f"{writer}.{segment:05d}{SUFFIX}")


def files_dir(folder: str) -> str:
    """Return the folder of a run's media and saved files, each named by its SHA-256."""
    return os.path.join(folder, "files")


def content_path(folder: str, sha256: str) -> str:
    """Return the path of a file of a run by its SHA-256, or raise ValueError for another text."""
    if not is_sha256(sha256):
        raise ValueError(f"invalid SHA-256 {sha256[:80]!r}: expected 64 of 0-9 a-f")
    return os.path.join(files_dir(folder), sha256)


def segments(folder: str) -> dict[str, list[int]]:
    """Return the segment numbers of every writer in a run's folder, in order.

    Example:
        >>> segments("/data/runs/abc")
        {'monitor.node1.19f3a': [0, 1, 2], 'train.node1.4711': [0]}
    """
    by_writer: dict[str, list[int]] = {}
    for name in os.listdir(folder):
        if not name.endswith(SUFFIX):
            continue
        writer, _, number = name[: -len(SUFFIX)].rpartition(".")
        if _is_name(writer) and number.isascii() and number.isdigit() and number == f"{int(number):05d}":
            by_writer.setdefault(writer, []).append(int(number))
    return {writer: sorted(numbers) for writer, numbers in sorted(by_writer.items())}


def open_file(path: str) -> int:
    """Open a journal file for reading. Returns a descriptor.

    Raises:
        OSError: it could not be opened, or is not a regular file (a FIFO or device, for example).
    """
    # O_NONBLOCK: opening a FIFO must not wait for a process that writes to it.
    fd = os.open(path, os.O_RDONLY | OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    if not os.path.isfile(fd):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return fd


def read_range(path: str, start: int, size: int) -> bytes:
    """Read at most `size` bytes of a journal file, from byte `start` on.

    Raises:
        OSError: see `open_file`.
    """
    fd = open_file(path)
    try:
        os.lseek(fd, start, os.SEEK_SET)
        return os.read(fd, size)
    finally:
        os.close(fd)
