"""Finds the files that `run.save` names."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator

from runvitals.sdk.data_folder import working_folder

MAX_FILES = 10_000
"""Most files that one call saves."""
_WILDCARDS = "*?["


def matching_files(pattern: str, base: str | None, fault: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the names and paths of the regular files that match a pattern.

    What is not saved is reported: FIFOs, devices and sockets, and symbolic links that lead out of the base,
    because a pattern may match what others put into the folder.

    Args:
        pattern: a path; `*`, `?` and `[…]` match within a name, `**` any folders.
        base: the names are relative to it. Default: the working directory if it contains the files, otherwise
            the last folder of the pattern before a wildcard.

    Raises:
        ValueError: `base` does not contain the files.
    """
    pattern, fixed, base = _folders(pattern, base)
    real_base, real_fixed = os.path.realpath(base), os.path.realpath(fixed)
    count = 0
    for path in sorted(glob.iglob(pattern, recursive=True)):
        real = os.path.realpath(path)
        parent = os.path.dirname(path)
        if os.path.realpath(parent) != os.path.normpath(
            os.path.join(real_fixed, os.path.relpath(parent, fixed))
        ):
            continue  # below a link to a folder, which `**` could follow without end
        try:
            mode = os.stat(real).st_mode
        except OSError as error:
            fault(f"a file to save that cannot be read ({error.strerror})")
            continue
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            fault("a FIFO, device or socket among the files to save")
        elif not _contains(real_base, real):
            fault("a symbolic link among the files to save that leads out of their folder")
        elif count >= MAX_FILES:
            fault(f"more than {MAX_FILES} files to save at once")
            return
        else:
            count += 1
            yield os.path.relpath(path, base).replace(os.sep, "/"), real


def check_base(pattern: str, base: str | None) -> None:
    """Check that a base contains the files of a pattern.

    Raises:
        ValueError: it does not.
    """
    _folders(pattern, base)


def _folders(pattern: str, base: str | None) -> tuple[str, str, str]:
    """Return the whole pattern, its last folder before a wildcard, and the base."""
    pattern = os.path.normpath(os.path.join(working_folder(), os.path.expanduser(pattern)))
    fixed = _fixed_folder(pattern)
    if base is None:
        current = _current_folder()
        base = current if current is not None and _contains(current, fixed) else fixed
    base = os.path.normpath(os.path.join(working_folder(), os.path.expanduser(base)))
    if not _contains(base, fixed):
        raise ValueError(f"save(): {fixed} is not in the base {base}")
    return pattern, fixed, base


def _fixed_folder(pattern: str) -> str:
    """Return the last folder of a pattern before a wildcard."""
    parts = pattern.split(os.sep)
    index = next((i for i, part in enumerate(parts) if any(c in part for c in _WILDCARDS)), len(parts) - 1)
    return os.sep.join(parts[:index]) or os.sep


def _current_folder() -> str | None:
    """Return the working directory; None if it was deleted or is not accessible."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _contains(folder: str, path: str) -> bool:
    try:
        return os.path.commonpath((folder, path)) == folder
    except ValueError:  # on different drives
        return False
