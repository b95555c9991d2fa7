"""The paths to which files of an artifact are written: within one folder, each a file of its own."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Final

_ROOT: Final = "artifacts"


def folder_of(name: str, version: int) -> str:
    """Return the folder of a download for which none is named: `artifacts/NAME:vN`.

    Raises:
        ValueError: the name, which a server has sent, leads elsewhere.

    Example:
        >>> folder_of("weights", 3)
        'artifacts/weights:v3'
    """
    separators = {"/", "\\", ":", "\0"}
    if not name or not separators.isdisjoint(name) or not isinstance(version, int):
        raise ValueError(
            f"the server named the version {name!r}:v{version!r}: name the folder of the download"
        )
    return os.path.join(_ROOT, f"{name}{'-' if os.name == 'nt' else ':'}v{version}")


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
        target = os.path.realpath(path)
        if os.path.commonpath((inside, target)) != inside:
            raise ValueError(
                f"{path} is a link to {target}, outside of {root}: {name!r} cannot be written there"
            )
        os.makedirs(path, exist_ok=True)
    os.makedirs(path, exist_ok=True)
    return os.path.join(path, last)


def check_apart(paths: Mapping[str, str], written_names: Collection[str]) -> None:
    """Check that files that were written are not one file under two names.

    Args:
        paths: where each name is.
        written_names: of those that were written; the others were there.

    Raises:
        ValueError: two are, as `a` and `A` on disks that do not distinguish them.
    """
    names: dict[tuple[int, int], str] = {}
    for name, path in paths.items():
        status = os.lstat(path)
        other = names.setdefault((status.st_dev, status.st_ino), name)
        if other != name and not {other, name}.isdisjoint(written_names):
            raise ValueError(f"{other!r} and {name!r} are the same file at {path}: choose another folder")
