"""The paths to which files of an artifact are written: within one folder, each a file of its own."""

from __future__ import annotations

import os


def local_path(root: str, name: str) -> str:
    """Return the path of a file below a folder. The folders in between are created.

    Args:
        name: a valid path of an artifact, with `/`.

    Raises:
        ValueError: a link on the way leads out of the folder.
    """
    *folders, last = name.split("/")
    inside = os.path.realpath(root)
    path = root
    for folder in folders:
        path = os.path.join(path, folder)
        there = os.path.realpath(path)
        if os.path.commonpath((inside, there)) != inside:
            raise ValueError(
                f"{path} is a link to {there}, outside of {root}: {name!r} cannot be written there"
            )
        os.makedirs(path, exist_ok=True)
    os.makedirs(path, exist_ok=True)
    return os.path.join(path, last)


class WrittenFiles:
    """The files that a download has written, to notice when two names are one file."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], str] = {}

    def check(self, path: str, name: str) -> None:
        """Check that nothing was written to this path under another name.

        Raises:
            ValueError: another file of the artifact is at the path.
        """
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        other = self._names.get((status.st_dev, status.st_ino))
        if other is not None:
            raise ValueError(f"{other!r} and {name!r} are the same file at {path}: choose another folder")

    def add(self, path: str, name: str) -> None:
        """Note the file that was written."""
        status = os.lstat(path)
        self._names[status.st_dev, status.st_ino] = name
