"""Where journals lie: `$RUNVITALS_DIR/runs/<run id>/<writer>.<segment>.rvj`."""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX = ".rvj"
OPEN_FLAGS: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


def data_dir() -> str:
    """The data folder: `RUNVITALS_DIR`, else `runvitals` in the user's data home of this operating system.

    A user without a home (a container whose user is a bare number) has `.runvitals` in the current folder.
    """
    named = os.environ.get("RUNVITALS_DIR")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(home):  # the XDG specification: a relative one is to be ignored
            home = os.path.expanduser("~/.local/share")
    if not os.path.isabs(home):  # `~` that stands for nothing, or a relative `HOME`
        return os.path.abspath(".runvitals")
    return os.path.join(home, "runvitals")


def config_dir(environ: Mapping[str, str]) -> str:
    """The folder of this user's configuration: `runvitals` in his configuration home.

    Never one in the current folder, whatever `HOME` is, or where there is none: a cloned repository may have
    brought its own.
    """
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.expanduser("~/.config")
    return os.path.join(os.sep, home, "runvitals")


def check_run_id(run_id: str) -> str:
    """The id itself, if it may name a folder.

    Raises:
        ValueError: anything else than 1 to 128 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash.
    """
    return _check_name("run id", run_id)


def check_writer(writer: str) -> str:
    """The writer's name itself, if it may name files. The same is allowed as in a run id.

    Raises:
        ValueError: see `check_run_id`.
    """
    return _check_name("writer", writer)


def role_and_host(writer: str) -> tuple[str, str]:
    """What a writer's name tells: `monitor.<host>.<start>`, `train.<host>.<pid>.<start>` or the same with
    `console`.

    Example:
        >>> role_and_host("train.node1.example.org.4711.19f3a")
        ('train', 'node1.example.org')
    """
    role, _, rest = writer.partition(".")
    host = rest.rsplit(".", 2 if role in ("train", "console") else 1)[0]
    return role, host or writer


def _check_name(what: str, name: str) -> str:
    if not _is_name(name):
        raise ValueError(
            f"{what} {name!r} is not allowed: 1 to 128 of A-Z a-z 0-9 _ . -, not beginning with . or -"
        )
    return name


def _is_name(name: str) -> bool:
    return 1 <= len(name) <= 128 and name[0] not in ".-" and _NAME_CHARACTERS.issuperset(name)


def safe_name(text: str) -> str:
    """`text` as part of a file name: other characters become `_`."""
    cleaned = "".join(c if c in _NAME_CHARACTERS else "_" for c in text).strip(".-")
    return cleaned[:64] or "_"


def make_private(folder: str) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask allows.

    Raises:
        OSError: it cannot be made.
    """
    parent = os.path.dirname(folder)
    if parent and not os.path.exists(parent):
        make_private(parent)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def runs_dir(directory: str | None = None) -> str:
    return os.path.join(directory or data_dir(), "runs")


def run_dir(run_id: str, directory: str | None = None) -> str:
    return os.path.join(runs_dir(directory), check_run_id(run_id))


def segment_path(folder: str, writer: str, segment: int) -> str:
    return os.path.join(folder, f"{writer}.{segment:05d}{SUFFIX}")


def segments(folder: str) -> dict[str, list[int]]:
    """The segments of every writer in a run's folder, in order.

    Example:
        >>> segments("/data/runs/abc")
        {'monitor.node1.19f3a': [0, 1, 2], 'train.node1.4711': [0]}
    """
    found: dict[str, list[int]] = {}
    for name in os.listdir(folder):
        if not name.endswith(SUFFIX):
            continue
        writer, _, number = name[: -len(SUFFIX)].rpartition(".")
        if _is_name(writer) and number.isascii() and number.isdigit() and number == f"{int(number):05d}":
            found.setdefault(writer, []).append(int(number))
    return {writer: sorted(numbers) for writer, numbers in sorted(found.items())}


def open_file(path: str) -> int:
    """A descriptor to read a journal file with, whatever somebody put in its place.

    Raises:
        OSError: it cannot be read; of what is no file, a FIFO or a device say, that it is not.
    """
    # O_NONBLOCK: opening a FIFO must not wait for somebody to write to it.
    fd = os.open(path, os.O_RDONLY | OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    if not os.path.isfile(fd):
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a file", path)
    return fd


def read_stretch(path: str, start: int, size: int) -> bytes:
    """At most `size` bytes of a journal file, from byte `start` on.

    Raises:
        OSError: see `open_file`.
    """
    fd = open_file(path)
    try:
        os.lseek(fd, start, os.SEEK_SET)
        return os.read(fd, size)
    finally:
        os.close(fd)
