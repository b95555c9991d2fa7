"""Finds the source files that `run.log_code` records."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature

from runvitals.errors import UsageError

_MAX_FILES = 10_000
_LEFT_OUT = ("__pycache__", "node_modules", "site-packages", "wandb")


def source_files(
    folder: str, included: Callable[..., bool] | None, excluded: Callable[..., bool] | None
) -> list[str]:
    """Return the paths of source files below a folder, sorted; hidden folders and packages are left out.

    Raises:
        UsageError: more than 10,000 files.
    """
    is_included = _with_root(included, folder) if included is not None else _is_python
    is_excluded = _with_root(excluded, folder) if excluded is not None else None
    paths: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(parent, name)
            if not is_included(path) or (is_excluded is not None and is_excluded(path)):
                continue
            if os.path.isfile(path) and not os.path.islink(path):
                paths.append(path)
            if len(paths) > _MAX_FILES:
                raise UsageError(f"log_code(): {folder} has more than {_MAX_FILES:,} files of code")
    return paths


def _is_python(path: str) -> bool:
    return path.endswith(".py")


def _with_root(function: Callable[..., bool], folder: str) -> Callable[[str], bool]:
    """Return a function of the path alone; some take the root, too."""
    if len(signature(function).parameters) > 1:
        return lambda path: function(path, folder)
    return function
