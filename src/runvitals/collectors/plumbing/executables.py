"""Where other programs lie: by itself, so that the question alone costs a monitor next to nothing."""

from __future__ import annotations

import os


def find(name: str, *fallbacks: str) -> str | None:
    """Where a program lies: the first of that name on PATH, else the first of the absolute paths that is one.

    A batch job's PATH often lacks /usr/local/bin or /opt/…; relative folders in PATH are not searched.

    Example:
        >>> find("rocm-smi", "/opt/rocm/bin/rocm-smi")
        '/opt/rocm/bin/rocm-smi'
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    on_path = [os.path.join(folder, name) for folder in folders if os.path.isabs(folder)]
    for path in (*on_path, *fallbacks):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
