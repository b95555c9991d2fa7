"""Where journals lie: `$RUNVITALS_DIR/runs/<run id>/<writer>.<segment>.rvj`."""

from __future__ import annotations

import os
import sys

SUFFIX = ".rvj"
_RUN_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


def data_dir() -> str:
    """The data folder: `RUNVITALS_DIR`, else `runvitals` in the user's data home of this operating system."""
    named = os.environ.get("RUNVITALS_DIR")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Application Support")
    else:
        home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(home, "runvitals")


def check_run_id(run_id: str) -> str:
    """The id itself, if it may name a folder.

    Raises:
        ValueError: an id that is empty, too long, begins with a dot or a dash, or holds other characters than A-Z a-z 0-9 _ . -
    """
    if not 1 <= len(run_id) <= 128 or run_id[0] in ".-" or not _RUN_ID_CHARACTERS.issuperset(run_id):
        raise ValueError(
            f"run id {run_id!r} is not allowed: 1 to 128 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash"
        )
    return run_id


def safe_name(text: str) -> str:
    """`text` as part of a file name: other characters become `_`."""
    cleaned = "".join(c if c in _RUN_ID_CHARACTERS else "_" for c in text).strip(".-")
    return cleaned[:64] or "_"


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
        if writer and number.isdigit():
            found.setdefault(writer, []).append(int(number))
    return {writer: sorted(numbers) for writer, numbers in sorted(found.items())}
