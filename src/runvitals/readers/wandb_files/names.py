"""Finds `.wandb` files."""

from __future__ import annotations

import os

SUFFIX = ".wandb"
_MAX_FILES = 10_000


def files_below(folder: str) -> list[str]:
    """The `.wandb` files of a folder, of its run folders, and of the `wandb` folder in it."""
    paths: dict[str, str] = {}
    for parent in (folder, os.path.join(folder, "wandb")):
        for entry in _entries(parent):
            if entry.name.endswith(SUFFIX) and entry.is_file():
                paths.setdefault(os.path.realpath(entry.path), entry.path)
            elif entry.is_dir() and ("run-" in entry.name):  # run-…, offline-run-…; `latest-run` is a link
                for inner in _entries(entry.path):
                    if inner.name.endswith(SUFFIX) and inner.is_file():
                        paths.setdefault(os.path.realpath(inner.path), inner.path)
    return sorted(paths)[:_MAX_FILES]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
